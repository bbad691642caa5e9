"""Copies of state on an executor: trusted by token only, bounded, gone with the processes that made them."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_glue.state import copies, folders
from spark_glue.state.copies import Shelf
from tests.support.first_line import first_line

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(folders.ROOT_VARIABLE, str(tmp_path / "shelves"))
    monkeypatch.setattr(folders, "_held", {})
    monkeypatch.setattr(folders, "_swept", -folders._SWEEP_S)
    monkeypatch.setattr(folders, "_said", set())
    return folders.cache_root()


def names(root: Path) -> set[str]:
    return {path.name for path in root.glob("*/*") if not path.name.startswith(".")}


def said(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_named_folder_keeps_what_else_lies_in_it(root, monkeypatch):
    monkeypatch.setenv(copies.BYTES_VARIABLE, "100")
    precious = root.parent / "data" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_bytes(bytes(1_000))
    assert Shelf("run").put("a", bytes(60))
    assert not Shelf("run").put("b", bytes(60))
    folders.sweep()
    folders.forget_run("data")
    assert precious.read_bytes() == bytes(1_000)
    assert os.listdir(precious.parent) == ["precious"]


def test_what_was_put_is_there_by_its_token_only(root):
    shelf = Shelf("run")
    assert shelf.put("a" * 32, b"delta")
    assert shelf.get("a" * 32, 5) == b"delta"
    assert shelf.get("b" * 32, 5) is None
    assert Shelf("another run").get("a" * 32, 5) is None
    shelf.remove("a" * 32)
    shelf.remove("a" * 32)
    assert shelf.get("a" * 32, 5) is None


def test_a_file_of_another_size_is_none_and_goes(root):
    shelf = Shelf("run")
    shelf.put("a", b"delta")
    (root / "run" / "a").write_bytes(b"del")
    assert shelf.get("a", 5) is None
    assert names(root) == set()


def test_a_full_shelf_keeps_what_it_has(root, caplog):
    """A cold worker reads a log from its beginning, so the oldest are the last to go without."""
    shelf = Shelf("run", limit=2_500)
    assert [shelf.put(token, bytes(1_000)) for token in "abc"] == [True, True, False]
    assert not Shelf("other", limit=2_500).put("d", bytes(1_000))
    assert names(root) == {"a", "b"}
    shelf.remove("a")
    assert shelf.put("c", bytes(1_000))
    assert not shelf.put("d", bytes(1_000))
    assert names(root) == {"b", "c"}
    (line,) = said(caplog)
    assert line == f"copies of state: {root} is full; deltas beyond it are read from the state store"


def test_the_room_of_a_run_that_was_forgotten_is_found_again(root, monkeypatch):
    assert Shelf("other").put("other", b"x")
    assert Shelf("ended", limit=2_500).put("a", bytes(2_000))
    folders.forget_run("ended")
    monkeypatch.setattr(copies, "_COUNT_S", 0.0)
    assert Shelf("run", limit=2_500).put("b", bytes(2_000))
    folders.forget_run("run")
    monkeypatch.setattr(copies, "_COUNT_S", 60.0)
    assert not Shelf("next", limit=2_500).put("c", bytes(2_000))  # all files have just been counted
    monkeypatch.setattr(copies, "_COUNT_S", 0.0)
    assert Shelf("next", limit=2_500).put("c", bytes(2_000))


def test_what_a_share_has_left_behind_makes_room(root, monkeypatch):
    """It goes on elsewhere, so no worker here hears what its log forgets; nor of attempts that were not committed."""
    monkeypatch.setattr(copies, "_COUNT_S", 0.0)
    shelf = Shelf("run", limit=10_000)
    assert all(shelf.put(f"left{i}", bytes(1_000)) for i in range(8))
    assert all(shelf.put(token, bytes(1_000)) for token in ("read", "fresh"))
    assert not shelf.put("more", bytes(1_000))
    for path in (root / "run").iterdir():
        if path.name != "fresh":
            os.utime(path, (time.time() - copies._STALE_S - 1,) * 2)
    assert shelf.get("read", 1_000) is not None
    assert shelf.put("more", bytes(1_000))
    assert names(root) == {"read", "fresh", "more"}
    assert all(shelf.put(f"new{i}", bytes(1_000)) for i in range(7))
    assert not shelf.put("too much", bytes(1_000))
    assert (root / "run" / folders._ALIVE).exists()


def test_what_killed_workers_have_half_written_goes(root, monkeypatch):
    """After an hour, as its worker may be one of another container, whose processes nobody here sees."""
    monkeypatch.setattr(copies, "_RECOUNT_S", 0.0)
    shelf = Shelf("run", limit=10_000)
    assert shelf.put("a", b"x")
    left = {".70ce.12": 2, ".70ce.34": 0.5, ".live": 2, ".live.3": 2, ".alive": 2}
    for name, hours in left.items():
        (root / "run" / name).write_bytes(bytes(1_000))
        os.utime(root / "run" / name, (time.time() - hours * 3_600,) * 2)
    assert shelf.put("b", b"x")
    assert set(os.listdir(root / "run")) == {"a", "b", ".alive", ".live", ".live.3", ".70ce.34"}


def test_files_are_counted_while_nobody_waits(root, monkeypatch):
    """Other workers go on meanwhile, and what they put counts."""
    monkeypatch.setattr(folders, "_LOCK_S", 0.05)
    shelf, other = Shelf("run", limit=3_500), Shelf("other", limit=3_500)
    count = Shelf._count

    def slow(self, drop):
        found = count(self, drop)
        monkeypatch.setattr(Shelf, "_count", count)
        assert other.put("b", bytes(1_000))
        return found

    monkeypatch.setattr(Shelf, "_count", slow)
    assert shelf.put("a", bytes(1_000))
    assert shelf.put("c", bytes(1_000))
    assert not shelf.put("d", bytes(1_000))
    assert names(root) == {"a", "b", "c"}


def test_a_put_looks_at_no_other_file(root, monkeypatch):
    shelf = Shelf("run")
    shelf.put("first", b"x")

    def scandir(_):
        raise AssertionError("looked through a folder")

    monkeypatch.setattr(copies.os, "scandir", scandir)
    assert all(shelf.put(f"t{i}", b"delta") for i in range(100))
    shelf.remove("t7")


def test_a_full_cache_is_no_error(root):
    shelf = Shelf("run", limit=100)
    assert not shelf.put("a", bytes(101))
    assert shelf.get("a", 101) is None
    assert shelf.put("b", bytes(100))


def test_a_folder_that_cannot_be_made_is_no_error(root, tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    shelf = Shelf("run", root=tmp_path / "file")
    assert not shelf.put("a", b"x")
    assert shelf.get("a", 1) is None
    shelf.remove("a")
    assert "is not a folder of this user" in caplog.text


@pytest.mark.parametrize("make", ["others may write", "a link"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, make):
    """A delta may hold pickles: nobody else shall be able to slip one in."""
    root, other = tmp_path / "root", tmp_path / "other"
    other.mkdir()
    if make == "a link":
        root.symlink_to(other)
    else:
        root.mkdir()
        root.chmod(0o777)
    (root / "run").mkdir()
    (root / "run" / "token").write_bytes(b"bad")
    shelf = Shelf("run", root)
    assert shelf.get("token", 3) is None
    assert not shelf.put("mine", b"good")
    assert [path.name for path in (root / "run").iterdir()] == ["token"]


def test_a_folder_without_rights_is_no_error(root, monkeypatch, caplog):
    root.parent.mkdir()
    root.mkdir(mode=0o500)
    if os.getuid() == 0:  # it may write everywhere

        def refuse(path, *_, **__):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

        monkeypatch.setattr(os, "mkdir", refuse)
    assert not Shelf("run").put("a", b"x")
    assert said(caplog) == [
        f"copies of state: {root} cannot be written to (Permission denied); the state store is read"
    ]


HOLDER = """
import signal, sys, time
from spark_glue.stages.worker import leave_when_hung_up
from spark_glue.state.copies import Shelf
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as Spark's daemon does, also where a shell has it ignored
leave_when_hung_up()
assert Shelf(sys.argv[1]).put("token", b"x" * 1000)
print("held", flush=True)
time.sleep(60)
"""


def hold(run: str) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, run], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert first_line(process) == "held\n"
    return process


def test_a_killed_worker_leaves_nothing_for_long(root, monkeypatch):
    process = hold("one")
    try:
        folders.sweep()
        assert names(root) == {"token"}  # its owner lives
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert names(root) == {"token"}
    folders.sweep()
    assert names(root) == {"token"}  # its query may go on with another one
    os.utime(root / "one" / folders._ALIVE, (time.time() - folders._IDLE_S - 1,) * 2)
    monkeypatch.setattr(folders, "_swept", -folders._SWEEP_S)
    assert Shelf("two").put("mine", b"y")  # the next worker's first write sweeps
    assert names(root) == {"mine"}
    assert not (root / "one").exists()


def test_a_folder_in_use_by_two_stays_when_one_goes(root):
    first, second = hold("shared"), hold("shared")
    try:
        first.send_signal(signal.SIGKILL)
        first.wait(10)
        folders.sweep()
        assert names(root) == {"token"}
    finally:
        second.kill()
        second.wait(10)


@pytest.mark.parametrize("idle_s", [90, 3_600])
def test_a_new_worker_finds_what_the_last_ones_have_left(root, monkeypatch, idle_s):
    """Where micro-batches are more than a minute apart, Spark has ended all workers when the next one begins."""
    process = hold("run")
    process.kill()
    process.wait(10)
    os.utime(root / "run" / folders._ALIVE, (time.time() - idle_s,) * 2)
    monkeypatch.setattr(folders, "_swept", -folders._SWEEP_S)
    shelf = Shelf("run")
    assert shelf.put("mine", b"y")
    assert shelf.get("token", 1_000) is not None
    folders.sweep()
    assert names(root) == {"token", "mine"}


def test_a_new_worker_leaves_the_runs_of_others(root, monkeypatch):
    process = hold("other")
    process.kill()
    process.wait(10)
    os.utime(root / "other" / folders._ALIVE, (time.time() - 90,) * 2)
    monkeypatch.setattr(folders, "_swept", -folders._SWEEP_S)
    assert Shelf("run").put("mine", b"y")
    assert names(root) == {"token", "mine"}


def test_a_folder_that_was_made_anew_is_held_anew(root):
    shelf = Shelf("run")
    shelf.put("a", b"x")
    shutil.rmtree(root / "run")
    other = hold("run")
    try:
        assert shelf.put("b", b"y")
    finally:
        other.send_signal(signal.SIGHUP)
        other.wait(10)
    assert names(root) == {"token", "b"}


def test_workers_that_end_with_their_executor_leave_nothing(root):
    """Spark hangs them up. The last one removes what all of them used."""
    first, second = hold("shared"), hold("shared")
    for process, left in ((first, {"token"}), (second, set())):
        process.send_signal(signal.SIGHUP)
        assert process.wait(10) == -signal.SIGHUP
        assert names(root) == left
    assert not list(root.glob("*"))


def test_a_run_that_has_ended_is_forgotten(root):
    shelf = Shelf("run")
    shelf.put("a", b"x")
    folders.forget_run("run")
    folders.forget_run("never there")
    assert not list(root.glob("*"))
    assert shelf.put("b", b"y")  # a late attempt still works
    assert shelf.get("b", 1) == b"y"


def test_a_folder_that_nobody_uses_goes_though_somebody_holds_it(root):
    process = hold("idle")
    try:
        Shelf("mine").put("a", b"x")
        folders.sweep()
        assert names(root) == {"token", "a"}
        for run in ("idle", "mine"):
            os.utime(root / run / folders._ALIVE, (time.time() - folders._IDLE_S - 1,) * 2)
        Shelf("mine").put("b", b"y")  # in use again
        folders.sweep()
        assert names(root) == {"a", "b"}
    finally:
        process.kill()
        process.wait(10)


def test_a_folder_that_is_being_swept_is_left_alone(root):
    (root / "run").mkdir(parents=True)
    handle = os.open(root / "run" / folders._ALIVE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert not Shelf("run").put("a", b"x")
    finally:
        os.close(handle)
    assert Shelf("run").put("a", b"x")


@pytest.mark.parametrize("there", [True, False], ids=["small", "absent"])
def test_without_room_in_memory_the_log_says_once_where_copies_lie(root, tmp_path, monkeypatch, caplog, there):
    """Containers have 64 MB there, or nothing."""
    memory, other = tmp_path / "shm", tmp_path / "tmp"
    other.mkdir()
    if there:
        memory.mkdir()
    monkeypatch.delenv(folders.ROOT_VARIABLE)
    monkeypatch.setattr(folders, "_MEMORY", memory)
    free = iter(range(60 << 20, 0, -(1 << 20)))  # others write there as well
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(other))
    for token in "ab":
        assert Shelf("run").put(token, b"x")
    assert names(folders.cache_root()) == {"a", "b"}
    assert folders.cache_root().parent == other
    (line,) = said(caplog)
    assert f"they lie in {other}" in line
    assert ("MB free" if there else "is not there") in line
    if there:  # where copies are already, they stay, however little room is left
        (memory / folders.cache_root().name).mkdir()
        assert folders.cache_root().parent == memory
        folders.forget_run("run")  # also what lies elsewhere
        assert not list(other.glob("*/run"))


def test_a_folder_of_somebody_else_is_said_once(root, caplog):
    root.mkdir(parents=True)
    root.chmod(0o777)
    shelf = Shelf("run")
    assert [shelf.put("a", b"x"), shelf.get("a", 1), shelf.put("b", b"x")] == [False, None, False]
    (line,) = said(caplog)
    assert f"{root} is not a folder of this user that nobody else may write to" in line


def test_a_limit_that_is_no_number_is_said(root, monkeypatch, caplog):
    monkeypatch.setenv(copies.BYTES_VARIABLE, "2G")
    assert Shelf("run").put("a", b"x")
    assert "FASTWIN_CACHE_BYTES: must be a number of bytes, got '2G'" in said(caplog)[0]
