"""Large regions in files: moved there and back, grown, freed; over a fork; and where the disk is full or none."""

import faulthandler
import gc
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.regions import allow_memory, in_files, take_problem, use_files
from tests.support.countedrows import ROWS, add, is_whole, store
from tests.support.disk import bytes_in_files, files_on_disk
from tests.support.forks import code_of_a_child, in_a_child

OWNED = 3
ASAN = "asan" in os.environ.get("LD_PRELOAD", "")


@pytest.fixture
def disk():
    before = in_files()
    with files_on_disk() as folder:
        yield folder
        gc.collect()
        assert in_files() == before


@pytest.mark.usefixtures("disk")
def test_rows_move_to_a_file_and_back():
    rows = store()
    assert rows.place(False) == 0
    taken = rows.place(True)
    assert taken >= ROWS * rows.stride
    assert in_files() == (1, taken)
    assert is_whole(rows)
    assert rows.place(True) == taken
    assert is_whole(rows)
    assert rows.place(False) == 0
    assert bytes_in_files() == 0
    assert is_whole(rows)


@pytest.mark.usefixtures("disk")
def test_rows_in_a_file_grow_there():
    rows = store()
    before = rows.place(True)
    add(rows, 3 * ROWS)
    assert is_whole(rows)
    assert bytes_in_files() > 2 * before
    assert in_files()[0] == 1


@pytest.mark.usefixtures("disk")
def test_small_rows_stay_in_memory():
    rows = store(100)
    assert rows.place(True) == 0
    assert is_whole(rows)


@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize("kind", ["int64", "bytes"])
def test_keys_in_files_are_those_that_were_in_memory(kind):
    one, other = KeyTable(kind), KeyTable(kind)
    for batch in range(6):
        values = np.arange(batch * 7_000, (batch + 2) * 7_000)
        for table in (one, other):
            if kind == "int64":
                ids = table.intern_int64(values)
            else:
                texts = [str(value).encode() * 3 for value in values]
                ends = np.cumsum([0, *map(len, texts)])
                ids = table.intern_bytes(ends, np.frombuffer(b"".join(texts), np.uint8))
            table.retain_ids(ids)
            if batch > 2:
                table.release_ids(ids[::3].copy())
            table.sweep()
        assert one.place(batch != 3) > 0 or batch == 3
        one._check()
        assert one.ids().tolist() == other.ids().tolist()
        take = [t.take_int64(t.ids())[0] if kind == "int64" else t.take_bytes(t.ids())[1] for t in (one, other)]
        assert take[0].tolist() == take[1].tolist()


@pytest.mark.usefixtures("disk")
def test_beyond_what_memory_may_grow_new_rows_lie_in_files():
    allow_memory(1 << 20)
    rows = store(10 * ROWS)
    assert bytes_in_files() >= 10 * ROWS * rows.stride
    assert is_whole(rows)
    allow_memory(None)
    other = store(10 * ROWS)
    assert in_files()[0] == 1
    assert is_whole(other)


def test_without_a_folder_all_stays_in_memory():
    allow_memory(0)
    rows = store()
    allow_memory(None)
    assert rows.place(True) == 0
    assert is_whole(rows)
    assert take_problem() is None


@pytest.mark.usefixtures("disk")
def test_a_child_that_lets_go_leaves_the_parent_alone():
    stores = [store(owned=(OWNED,)) for _ in range(3)]
    for rows in stores:
        rows.set_blobs(rows.slots(), OWNED, np.arange(ROWS + 1) * 8, np.arange(8 * ROWS, dtype=np.uint8))
        rows.place(True)

    def child() -> None:
        assert in_files() == (0, 0)
        held = [bytearray(1 << 20) for _ in range(20)]  # it may lie where the parent's regions are
        stores.clear()
        gc.collect()
        own = store(2 * ROWS)
        assert own.place(True)
        for one in held:
            one[:] = b"\xff" * len(one)
        add(own, ROWS)
        assert is_whole(own)
        in_a_child(lambda: None)

    in_a_child(child)
    assert in_files()[0] == 3
    assert all(map(is_whole, stores))
    kept = stores.pop()
    stores.clear()
    held = [bytearray(1 << 20) for _ in range(20)]  # where the regions were that are gone

    def other_child() -> None:
        for one in held:
            one[:] = b"\xff" * len(one)

    in_a_child(other_child)
    assert not any(map(any, held))
    assert is_whole(kept)


@pytest.mark.usefixtures("disk")
def test_a_child_that_touches_what_stayed_with_its_parent_is_stopped():
    rows = store()
    rows.place(True)

    def child() -> None:
        faulthandler.disable()
        rows.slots()

    # AddressSanitizer tells of it itself, and ends the child.
    assert code_of_a_child(child) in ((1,) if ASAN else (-signal.SIGSEGV, -signal.SIGBUS))
    assert is_whole(rows)


@pytest.mark.usefixtures("disk")
def test_threads_move_rows_at_once():
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            rows = store(int(rng.integers(1, ROWS)))
            for _ in range(4):
                rows.place(bool(rng.integers(2)))
                add(rows, int(rng.integers(ROWS)))
            assert is_whole(rows)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4), timeout=300))


@pytest.mark.usefixtures("disk")
def test_rows_stay_where_the_disk_is_full():
    """A limit on the size of files is to a file what a full disk is."""
    moved, rows = store(), store()
    moved.place(True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        assert rows.place(True) == 0
        assert take_problem() is not None
        assert take_problem() is None
        add(moved, 3 * ROWS)  # goes on in memory
        assert bytes_in_files() == 0
        allow_memory(0)
        add(rows, 3 * ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert is_whole(moved)
    assert is_whole(rows)


def test_a_folder_that_will_not_do_is_refused(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        use_files(str(tmp_path / "none"))
    if os.access("/dev/shm", os.W_OK) and os.path.ismount("/dev/shm"):
        with pytest.raises(OSError, match="it lies in memory"):
            use_files("/dev/shm")
    rows = store()
    assert rows.place(True) == 0


LIMITED = """
import resource, sys
import numpy as np
from fastwin.core.memory.regions import use_files
from tests.support.countedrows import ROWS, is_whole, store

store(1)
if sys.argv[1]:
    use_files(sys.argv[1])
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + (24 << 20), -1))
stores = []
for _ in range(30):
    stores.append(store(2 * ROWS))
    stores[-1].place(True)
assert all(map(is_whole, stores))
"""


@pytest.mark.skipif(ASAN, reason="AddressSanitizer takes memory of its own")
@pytest.mark.parametrize("with_disk", [False, True])
def test_a_process_of_limited_memory_holds_more_rows_than_that(disk, with_disk):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", LIMITED, str(disk) if with_disk else ""]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode == 0) == with_disk, done.stderr
    assert ("MemoryError" in done.stderr) != with_disk
