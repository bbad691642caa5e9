"""Copies of state on an executor: trusted by token only, bounded, gone with the processes that made them."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_glue.state import copies as cache
from spark_glue.state.copies import Live, LiveStreams, Shelf

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(cache.ROOT_VARIABLE, str(tmp_path / "shelves"))
    monkeypatch.setattr(cache, "_held", {})
    monkeypatch.setattr(cache, "_swept", -cache._SWEEP_S)
    return cache.cache_root()


def names(root: Path) -> set[str]:
    return {path.name for path in root.glob("*/*") if path.name != cache._ALIVE}


def test_a_named_folder_keeps_what_else_lies_in_it(root, monkeypatch):
    monkeypatch.setenv(cache.BYTES_VARIABLE, "100")
    precious = root.parent / "data" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_bytes(bytes(1_000))
    assert Shelf("run").put("a", bytes(60))
    assert Shelf("run").put("b", bytes(60))
    cache.sweep()
    cache.forget_run("data")
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


def test_the_oldest_make_room(root):
    shelf = Shelf("run", limit=2_500)
    for i, token in enumerate("abc"):
        assert shelf.put(token, bytes(1_000))
        os.utime(root / "run" / token, (1_000 + i,) * 2)
    assert names(root) == {"b", "c"}
    assert Shelf("other", limit=2_500).put("d", bytes(1_000))
    assert names(root) == {"c", "d"}


def test_a_full_cache_is_no_error(root):
    shelf = Shelf("run", limit=100)
    assert not shelf.put("a", bytes(101))
    assert shelf.get("a", 101) is None
    assert shelf.put("b", bytes(100))


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    shelf = Shelf("run", root=tmp_path / "file")
    assert not shelf.put("a", b"x")
    assert shelf.get("a", 1) is None
    shelf.remove("a")


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


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_no_error(root):
    root.parent.mkdir()
    root.mkdir(mode=0o500)
    assert not Shelf("run").put("a", b"x")


HOLDER = """
import sys, time
from spark_glue.state.copies import Shelf
assert Shelf(sys.argv[1]).put("token", b"x" * 1000)
print("held", flush=True)
time.sleep(60)
"""


def hold(run: str) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, run], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_killed_worker_leaves_nothing_for_long(root, monkeypatch):
    process = hold("one")
    try:
        cache.sweep()
        assert names(root) == {"token"}  # its owner lives
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert names(root) == {"token"}
    monkeypatch.setattr(cache, "_swept", -cache._SWEEP_S)
    assert Shelf("two").put("mine", b"y")  # the next worker's first write sweeps
    assert names(root) == {"mine"}
    assert not (root / "one").exists()


def test_a_folder_in_use_by_two_stays_when_one_goes(root):
    first, second = hold("shared"), hold("shared")
    try:
        first.send_signal(signal.SIGKILL)
        first.wait(10)
        cache.sweep()
        assert names(root) == {"token"}
    finally:
        second.kill()
        second.wait(10)
    cache.sweep()
    assert not list(root.glob("*"))


def test_a_run_that_has_ended_is_forgotten(root):
    shelf = Shelf("run")
    shelf.put("a", b"x")
    cache.forget_run("run")
    cache.forget_run("never there")
    assert not list(root.glob("*"))
    assert shelf.put("b", b"y")  # a late attempt still works
    assert shelf.get("b", 1) == b"y"


def test_a_folder_that_nobody_uses_goes_though_somebody_holds_it(root):
    process = hold("idle")
    try:
        Shelf("mine").put("a", b"x")
        cache.sweep()
        assert names(root) == {"token", "a"}
        for run in ("idle", "mine"):
            os.utime(root / run / cache._ALIVE, (time.time() - cache._IDLE_S - 1,) * 2)
        Shelf("mine").put("b", b"y")  # in use again
        cache.sweep()
        assert names(root) == {"a", "b"}
    finally:
        process.kill()
        process.wait(10)


def test_what_a_worker_keeps_of_a_run_that_was_forgotten_goes(root, monkeypatch):
    live = LiveStreams()
    monkeypatch.setattr(cache, "LIVE", live)
    for run in ("ended", "other"):
        Shelf(run).put("a", b"x")
        live.put((run, 1), Live("t", run, None, 10))
    cache.forget_run("ended")
    Shelf("other").put("b", b"y")
    assert len(live) == 2  # it is not looked at each time
    monkeypatch.setattr(cache, "_swept", time.monotonic() - cache._SWEEP_S)
    Shelf("other").put("c", b"z")
    assert live.take(("ended", 1)) is None
    assert live.take(("other", 1)).stream == "other"
    assert {path.name for path in root.iterdir()} == {"other"}


def test_a_folder_that_is_being_swept_is_left_alone(root):
    (root / "run").mkdir(parents=True)
    handle = os.open(root / "run" / cache._ALIVE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert not Shelf("run").put("a", b"x")
    finally:
        os.close(handle)
    assert Shelf("run").put("a", b"x")


def test_a_stream_is_taken_once():
    live = LiveStreams()
    live.put(("run", 1), Live("token", "stream", None, 10))
    assert live.take(("run", 2)) is None
    assert live.take(("run", 1)).stream == "stream"
    assert live.take(("run", 1)) is None


def test_streams_beyond_the_limit_go_oldest_first():
    live = LiveStreams(limit=25)
    for place in range(3):
        live.put(("run", place), Live("t", place, None, 10))
    assert live.nbytes == 20
    assert live.take(("run", 0)) is None
    assert live.take(("run", 2)).stream == 2
    live.put(("run", 5), Live("t", "large", None, 100))
    assert len(live) == 0


def test_streams_of_runs_long_unused_go(monkeypatch):
    live = LiveStreams()
    now = time.monotonic()
    live.put(("old", 1), Live("t", 1, None, 10))
    monkeypatch.setattr(cache.time, "monotonic", lambda: now + cache._IDLE_S + 1)
    live.put(("new", 1), Live("t", 2, None, 10))
    assert len(live) == 1
