"""RocksDB: killed while it writes, opened twice, damaged."""

import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fastwin.errors import StoreError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of
from tests.support.numbered_clicks import MODULES, batch, spec

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import sys
import fastwin as fw
from fastwin.store import PaneStore
from tests.support.numbered_clicks import batch, spec
with PaneStore.open(sys.argv[1], spec()) as store:
    for number in range(1_000_000):
        store.put(batch(number), (1, number))
        print(number, flush=True)
"""


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.2])
def test_killed_while_writing(tmp_path, wait):
    """All of a batch is there or nothing of it; what was said to be written is there; writing goes on."""
    url = f"rocksdb:{tmp_path / 'store'}"
    command = [sys.executable, "-c", WRITER, url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 20:
                break
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        said = int((line + process.stdout.read()).splitlines()[-1])
    with PaneStore.open(url, spec()) as store:
        for pane in range(100):
            start = FIRST + pane * 3 * MINUTE
            counts = set(store.query(start=start, end=start + 3 * MINUTE)["pv"].to_pylist())
            assert len(counts) <= 1, f"half a batch: {counts}"
            last = said - (said - pane) % 100
            if last >= 0:
                assert counts in ({last + 1}, {last + 101}), f"pane {pane} has {counts}, batch {last} was written"
        hours = store.query(start=FIRST, end=FIRST + HOUR)["pv"].to_pylist()
        parts = [
            store.query(start=FIRST + m * MINUTE, end=FIRST + (m + 3) * MINUTE)["pv"][0].as_py()
            for m in range(0, 60, 3)
        ]
        assert set(hours) == {sum(parts)}
        store.put(batch(said + 1), (2, 0))


def test_opened_twice_for_writing(tmp_path):
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0))
        with pytest.raises(StoreError, match=r"open for writing already.*read_only=True"):
            PaneStore.open(url, spec())
        code = f"from fastwin.store import PaneStore; PaneStore.open({url!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 1
        assert "StoreError" in done.stderr and "open for writing already" in done.stderr
        with PaneStore.open(url, read_only=True) as reader:
            assert reader.query().num_rows == len(MODULES)
    PaneStore.open(url, spec()).close()


def test_only_a_held_lock_is_told_as_one(tmp_path):
    (tmp_path / "clock").write_text("a file")
    (tmp_path / "store" / "LOCK").mkdir(parents=True)
    for folder in ("clock/store", "store"):
        with pytest.raises(StoreError, match="cannot be opened"):
            PaneStore.open(f"rocksdb:{tmp_path / folder}", spec())


def test_the_scheme_is_known_in_any_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in (f"RocksDB:{tmp_path / 'one'}", f"ROCKSDB://{tmp_path / 'two'}"):
        PaneStore.open(url, spec()).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_nothing_of_rocksdb_grows_or_stays(tmp_path):
    """Its text log is bounded; a reader that nobody closes leaves no folder."""
    with PaneStore.open(f"rocksdb:{tmp_path / 'store'}", spec()) as store:
        store.put(batch(0))
        reader = PaneStore.open(f"rocksdb:{tmp_path / 'store'}", read_only=True)
        scratch = reader._reader._scratch.path
        for log in (tmp_path / "store" / "LOG", scratch / "LOG"):
            told = re.sub(" +", " ", log.read_text())
            assert "Options.max_log_file_size: 10485760" in told and "Options.stats_dump_period_sec: 0" in told
        del reader
        gc.collect()
        assert not scratch.exists()


def test_a_killed_reader_leaves_nothing_for_long(tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    url = f"rocksdb:{tmp_path / 'store'}"
    PaneStore.open(url, spec()).close()
    reads = (
        "from fastwin.store import PaneStore; s = PaneStore.open({!r}, read_only=True); print(1, flush=True); input()"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", reads.format(url)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    try:
        assert reader.stdout.readline() == b"1\n"
        with PaneStore.open(url, read_only=True):
            assert len(list(temporary.iterdir())) == 2
        assert len(list(temporary.iterdir())) == 1
    finally:
        reader.kill()
        reader.communicate(timeout=60)
    PaneStore.open(url, read_only=True).close()
    assert not list(temporary.iterdir())


def test_reader_follows_the_writer(tmp_path):
    table = clicks(1_000, hours=2)
    url = f"rocksdb:{tmp_path / 'store'}"
    windows = spec_of("1 hour", "3 minutes")
    panes = windows.panes().run(table).main.sort_by("window_start")
    with PaneStore.open(url, windows) as store:
        store.put(panes.slice(0, 10))
        with PaneStore.open(url, read_only=True) as reader:
            first = reader.watermark
            store.put(panes.slice(10))
            end = time.monotonic() + 20
            while reader.watermark == first:
                assert time.monotonic() < end, "the reader does not follow"
                time.sleep(0.05)
            assert by_module(reader.query()) == counted(table, FIRST + HOUR, FIRST + 2 * HOUR)


def test_no_store_to_read(tmp_path):
    with pytest.raises(StoreError, match="there is no store at"):
        PaneStore.open(f"rocksdb:{tmp_path / 'nothing'}", read_only=True)
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        PaneStore.open(f"rocksdb:{tmp_path / 'file'}", spec())


def test_closed_store_says_so(tmp_path):
    store = PaneStore.open(f"rocksdb:{tmp_path / 'store'}", spec())
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.meta()


FULL = """
import resource, sys
from fastwin.errors import StoreError
from fastwin.store import PaneStore
from tests.support.numbered_clicks import batch, spec
full = resource.RLIM_INFINITY
with PaneStore.open(sys.argv[1], spec()) as store:
    store.put(batch(0), (1, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, full))
    for number in range(1, 100):
        try:
            store.put(batch(number), (1, number))
        except StoreError as problem:
            print("told", number, problem, flush=True)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))
    for number in range(number, 100):
        store.put(batch(number), (1, number))
    print("goes on")
"""


def test_full_disk(tmp_path):
    """The writer says so, and goes on once there is space. A file that may not grow stands for a disk that is full."""
    url = f"rocksdb:{tmp_path / 'store'}"
    done = subprocess.run(
        [sys.executable, "-c", FULL, url], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told, last = done.stdout.splitlines()
    assert told.startswith("told") and "cannot be written" in told and last == "goes on"
    with PaneStore.open(url, read_only=True) as store:
        for number in range(100):
            start = FIRST + number * 3 * MINUTE
            assert set(store.query(start=start, end=start + 3 * MINUTE)["pv"].to_pylist()) == {number + 1}
