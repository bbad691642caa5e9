"""A folder for the files of one process, which goes with it, however the process ends."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fastwin.machine import scratch
from fastwin.machine.scratch import Scratch
from tests.support.forks import in_a_child

HOLDER = """
import sys
from fastwin.machine.scratch import Scratch
held = Scratch("test")
(held.path / "file").write_text("x")
print(held.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    """The temporary directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def held_by_another(parent) -> tuple[subprocess.Popen, str]:
    """Returns a process that has a folder until its standard input ends, and the name of the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(parent)},
    )
    return process, os.path.basename(process.stdout.readline().strip())


def names(parent) -> set[str]:
    return {path.name for path in parent.iterdir()}


def test_it_is_removed_when_it_is_dropped_or_forgotten(parent):
    first, second = Scratch("test"), Scratch("test")
    (first.path / "file").write_text("x")
    assert names(parent) == {first.path.name, second.path.name}
    assert first.path.name.startswith("fastwin-test-")
    first.drop()
    first.drop()
    assert names(parent) == {second.path.name}
    del second
    gc.collect()
    assert not names(parent)


@pytest.mark.parametrize("by", [None, signal.SIGTERM, signal.SIGKILL])
def test_the_next_one_removes_what_a_killed_process_has_left(parent, by):
    process, name = held_by_another(parent)
    try:
        mine = Scratch("test")
        assert names(parent) == {name, mine.path.name}, "it was removed while its process lived"
        if by is not None:
            process.send_signal(by)
        process.communicate(timeout=60)  # which ends its input
        assert (name in names(parent)) == (by is not None), "a process that ends by itself leaves nothing"
        other = Scratch("other")
        assert (name in names(parent)) == (by is not None), "it is of another kind"
        again = Scratch("test")
        assert names(parent) == {mine.path.name, other.path.name, again.path.name}
    finally:
        process.kill()
        process.wait(60)


def test_what_nobody_here_made_stays(parent):
    """Nor does it end in an error: a folder without a lock, a file, and links."""
    (parent / "fastwin-test-old").mkdir()
    (parent / "fastwin-test-file").write_text("x")
    (parent / "elsewhere").mkdir()
    (parent / "elsewhere" / "in-use").write_text("")
    (parent / "fastwin-test-link").symlink_to(parent / "elsewhere")
    (parent / "fastwin-test-linked").mkdir()
    (parent / "fastwin-test-linked" / "in-use").symlink_to(parent / "elsewhere" / "in-use")
    before = names(parent)
    Scratch("test").drop()
    assert names(parent) == before
    assert (parent / "elsewhere" / "in-use").exists()


def test_another_users_folder_stays(parent, monkeypatch):
    process, name = held_by_another(parent)
    process.kill()
    process.communicate(timeout=60)
    monkeypatch.setattr(os, "geteuid", lambda uid=os.geteuid(): uid + 1)
    Scratch("test").drop()
    assert names(parent) == {name}


def test_nobody_sees_a_folder_whose_lock_is_not_held_yet(parent, monkeypatch):
    """Another process may look at any moment; here it does around each step of making one."""
    looked = []

    def around(module, name):
        call = getattr(module, name)

        def watched(*args):
            if len(looked) < 8:  # looking takes locks, too
                looked.append(name)
                scratch._sweep(parent, "fastwin-test-")
            found = call(*args)
            if name == "replace":
                looked.append("after")
                scratch._sweep(parent, "fastwin-test-")
            return found

        monkeypatch.setattr(module, name, watched)

    around(os, "replace")
    around(scratch.fcntl, "flock")
    mine = Scratch("test")
    assert {"replace", "flock", "after"} <= set(looked)
    assert (mine.path / "in-use").exists()


def test_what_could_not_be_removed_is_found_again(parent, monkeypatch):
    mine = Scratch("test")
    for name in ("one", "two"):
        (mine.path / name).write_text("x")
    unlink = Path.unlink

    def busy(path, *args, **more):
        if path.name == "one":
            raise OSError("busy")
        unlink(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", busy)
        mine.drop()
    assert names(mine.path) == {"one", "in-use"}
    Scratch("test").drop()
    assert not names(parent)


def test_a_folder_that_somebody_else_has_removed(parent):
    mine = Scratch("test")
    shutil.rmtree(mine.path)
    mine.drop()
    assert not names(parent)


@pytest.mark.parametrize("within", [[], ["in-use.new"]])
def test_what_was_left_before_it_was_locked_goes_after_an_hour(parent, within):
    left = parent / "fastwin-test-left"
    left.mkdir()
    for name in within:
        (left / name).write_text("")
    Scratch("test").drop()
    assert left.exists(), "somebody may be about to lock it"
    os.utime(left, (1_700_000_000, 1_700_000_000))
    Scratch("test").drop()
    assert not left.exists()


def test_a_forked_process_leaves_it(parent):
    mine = Scratch("test")

    def child():
        mine.drop()
        assert mine.path.exists()

    in_a_child(child)
    assert mine.path.exists()
    mine.drop()


def test_one_that_cannot_be_locked_is_not_left(parent, monkeypatch):
    def fails(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(scratch.fcntl, "flock", fails)
    with pytest.raises(OSError, match="no locks here"):
        Scratch("test")
    assert not names(parent)
