"""RocksDB with damaged, cut and lost files: the right answer or an error, never something else."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from fastwin.errors import StoreError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR
from tests.support.numbered_clicks import batch, spec

FILES = ["data", "log", "MANIFEST", "CURRENT", "FASTWIN"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store whose first batches are in a data file and whose last ones in the log only, as after a writer was killed."""
    folder = tmp_path_factory.mktemp("whole")
    with PaneStore.open(f"rocksdb:{folder / 'open'}", spec()) as store:
        for number in range(40):
            store.put(batch(number), (1, number))
    with PaneStore.open(f"rocksdb:{folder / 'open'}", spec()) as store:
        for number in range(40, 60):
            store.put(batch(number), (1, number))
        shutil.copytree(folder / "open", folder / "store")  # as it is on the disk, its writer not gone
    return folder / "store"


def answers(folder: Path, **options: bool) -> dict:
    """Returns what a store says, all of it."""
    with PaneStore.open(f"rocksdb:{folder}", **options) as store:
        hours = [store.query(start=FIRST + h * HOUR, end=FIRST + (h + 1) * HOUR).to_pydict() for h in range(3)]
        return {"watermark": store.watermark, "keys": store.keys().to_pydict(), "hours": hours}


def found(folder: Path, kind: str) -> Path:
    """Returns the largest file of a kind."""
    pattern = {"data": "*.sst", "log": "*.log"}.get(kind, f"{kind}*")
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "lost":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        at = {"begin": 0, "middle": len(content) // 2, "end": len(content) * 9 // 10}[how]
        content[at : at + 8] = bytes(byte ^ 0x5A for byte in content[at : at + 8])
        path.write_bytes(content)


@pytest.mark.parametrize("read_only", [True, False], ids=["reader", "writer"])
@pytest.mark.parametrize("how", ["lost", "cut", "begin", "middle", "end"])
@pytest.mark.parametrize("kind", FILES)
def test_damaged_files(whole, tmp_path, kind, how, read_only):
    store = shutil.copytree(whole, tmp_path / "store")
    expected = answers(whole, read_only=True)
    damage(found(store, kind), how)
    told, said = None, str(store)
    try:
        told = answers(store, read_only=read_only)
    except StoreError as problem:
        said = str(problem)
    assert told in (None, expected)
    assert str(store) in said


@pytest.mark.parametrize("kind", ["data", "log"])
def test_damage_is_told(whole, tmp_path, kind):
    """The files with panes: reader and writer name the store and what is wrong."""
    store = shutil.copytree(whole, tmp_path / "store")
    damage(found(store, kind), "middle")
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"rocksdb: .*(damaged|cannot be (read|opened)|Corruption)"):
            answers(store, read_only=read_only)


def test_damage_under_an_open_reader(whole, tmp_path):
    """What it has in memory may still be right; what it must read from the disk is an error and not a smaller answer."""
    store = shutil.copytree(whole, tmp_path / "store")
    expected = answers(whole, read_only=True)
    with PaneStore.open(f"rocksdb:{store}", read_only=True) as reader:
        path = found(store, "data")
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.write(bytes(byte ^ 0x5A for byte in content[: len(content) // 2]))
        with contextlib.suppress(StoreError):
            assert reader.keys().to_pydict() == expected["keys"]
        with contextlib.suppress(StoreError):
            assert reader.query(start=FIRST, end=FIRST + HOUR).to_pydict() == expected["hours"][0]


def test_meta_that_is_no_meta(whole, tmp_path):
    import rocksdict

    store = shutil.copytree(whole, tmp_path / "store")
    database = rocksdict.Rdict(str(store), rocksdict.Options(raw_mode=True))
    database[b"m"] = b"{half"
    database.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match="damaged"), PaneStore.open(f"rocksdb:{store}", read_only=read_only) as one:
            one.query()


@pytest.mark.parametrize("how", ["begin", "middle", "end"])
def test_writer_over_a_damaged_file(whole, tmp_path, how):
    """What it must read to write is an error as well; what it need not is one for whoever reads it."""
    store = shutil.copytree(whole, tmp_path / "store")
    damage(found(store, "data"), how)

    def write_and_read() -> None:
        write_all(f"rocksdb:{store}")
        answers(store)

    with pytest.raises(StoreError, match="rocksdb: "):
        write_and_read()


def write_all(url: str) -> None:
    """Puts panes over all that is there."""
    with PaneStore.open(url, spec(), retention="1 hour") as writer:
        for number in (*range(40), *range(60, 100)):
            writer.put(batch(number), (2, number))


@pytest.mark.parametrize("content", [b"", bytes(40)])
def test_empty_mark_is_written_anew(whole, tmp_path, content):
    """As after a power cut on a file system that had not yet written it: the database itself is whole."""
    store = shutil.copytree(whole, tmp_path / "store")
    said = (store / "FASTWIN").read_bytes()
    (store / "FASTWIN").write_bytes(content)
    with pytest.raises(StoreError, match="FASTWIN is damaged"):
        answers(store, read_only=True)
    assert answers(store) == answers(whole, read_only=True)
    assert (store / "FASTWIN").read_bytes() == said


def test_mark_is_forced_to_the_disk(whole, tmp_path, monkeypatch):
    """First the file, then the folder that has its name."""
    store = shutil.copytree(whole, tmp_path / "store")
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: steps.append(os.readlink(f"/proc/self/fd/{file}")) or fsync(file))
    monkeypatch.setattr(os, "replace", lambda old, new: steps.append("replaced") or replace(old, new))
    with PaneStore.open(f"rocksdb:{store}", spec()) as writer:
        writer.put(batch(60), (2, 0))
    assert steps == [str(store / "FASTWIN.new"), "replaced", str(store)]
