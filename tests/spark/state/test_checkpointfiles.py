"""The files of a checkpoint, on a store where a rename is a copy that can stop half-way. No Spark runs."""

from dataclasses import dataclass
from glob import glob
from pathlib import Path, PosixPath

import pytest

from fastwin.errors import SpecError
from spark_glue.state.checkpointfiles import CheckpointFiles


class Place(PosixPath):
    """A path, as Hadoop has it."""

    def getParent(self) -> Path:  # noqa: N802
        return self.parent


@dataclass
class Found:
    """What Hadoop tells of a file."""

    path: Path

    def getPath(self) -> Path:  # noqa: N802
        return self.path


class Store:
    """Renames by a copy of each file, and stops at the second one. how: an error, or what Hadoop returns."""

    def __init__(self, how: object) -> None:
        self.how = how

    def exists(self, path: Path) -> bool:
        return path.exists()

    def globStatus(self, path: Path) -> list["Found"]:  # noqa: N802
        return [Found(Path(one)) for one in glob(str(path))]

    def mkdirs(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def rename(self, path: Path, to: Path) -> bool:
        to.mkdir()
        (to / "metadata").write_bytes((path / "metadata").read_bytes())
        if isinstance(self.how, BaseException):
            raise self.how
        return bool(self.how)

    def delete(self, path: Path, recursive: bool) -> None:
        assert recursive
        for one in path.iterdir():
            one.unlink()
        path.rmdir()


def files(folder: Path, store: Store) -> CheckpointFiles:
    made = object.__new__(CheckpointFiles)
    made._fs, made._root, made.path = store, folder, str(folder)
    made._path_of = Place
    return made


@pytest.mark.parametrize("how", [False, OSError("the store is away"), KeyboardInterrupt()])
def test_a_rename_that_fails_leaves_nothing_under_the_new_name(tmp_path, how):
    old, new, store = tmp_path / "new.rescaling", tmp_path / "new", Store(how)
    old.mkdir()
    (old / "metadata").write_text("{}")
    with pytest.raises(SpecError if how is False else type(how)):
        files(old, store).rename_to(files(new, store))
    assert not new.exists()
    assert (old / "metadata").exists()


def test_what_somebody_else_has_put_there_is_left_alone(tmp_path):
    old, new, store = tmp_path / "new.rescaling", tmp_path / "new", Store(True)
    for folder in (old, new):
        folder.mkdir()
    with pytest.raises(SpecError, match=r"new is there by now"):
        files(old, store).rename_to(files(new, store))
    assert new.exists()


def test_a_move_that_is_refused_is_told(tmp_path):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "metadata").write_text("{}")
    with pytest.raises(SpecError, match=r"to: .*/sources could not be renamed to .*/aside/sources"):
        files(tmp_path, Store(False)).move("sources", "aside/sources")
    files(tmp_path, Store(True)).move("sources", "other/sources")
    assert (tmp_path / "other" / "sources" / "metadata").exists()
    files(tmp_path, Store(False)).move("nothing", "other/nothing")


class Kept(Store):
    """Removes nothing, and says so."""

    def delete(self, path: Path, recursive: bool) -> bool:
        return False


@pytest.mark.parametrize("name", ["", "sources"])
def test_what_cannot_be_removed_is_told(tmp_path, name):
    folder = tmp_path / "new"
    (folder / "sources").mkdir(parents=True)
    with pytest.raises(SpecError, match=rf"to: {folder / name} could not be removed"):
        files(folder, Kept(True)).remove(name)
    files(folder, Kept(True)).remove("nothing")


@pytest.mark.parametrize("how", [False, OSError("the store is away")])
def test_what_is_left_of_a_rename_that_failed_hides_no_error(tmp_path, caplog, how):
    old, new, store = tmp_path / "new.rescaling", tmp_path / "new", Kept(how)
    old.mkdir()
    (old / "metadata").write_text("{}")
    with pytest.raises((SpecError, OSError), match=r"the store is away|could not be renamed to"):
        files(old, store).rename_to(files(new, store))
    (told,) = caplog.messages
    assert told.startswith(
        f"rescale: {new} is left of a call that has failed, and is of no use: to: {new} could not be"
    )


def record_of(folder: object, files: tuple[str, ...] = ("0_ab12", "7_cd34")) -> str:
    """What Spark notes of an operator. folder: that of the checkpoint, as JSON has it."""
    paths = ",".join(f'"{folder}/state/0/_stateSchema/default/{name}"' for name in files)
    return (
        'v2\n{"operatorInfo":{"operatorId":0},"stateStoreInfo":[{"storeName":"default","numPartitions":2,'
        f'"stateSchemaFilePaths":[{paths}]}}],"operatorPropertiesJson":"{{\\"timeMode\\":\\"None\\"}}"}}'
    )


@pytest.mark.parametrize(
    "before",
    [
        "file:/real/checkpoint",
        "hdfs://machine:8020/checkpoint",
        "file:/state/3/checkpoint",
        r"file:/a \"b\" \\c/checkpoint",
    ],
)
def test_records_follow_whatever_path_the_query_was_given(tmp_path, monkeypatch, before):
    old, new, store = tmp_path / "new.rescaling", tmp_path / "new", Store(True)
    record = old / "state" / "0" / "_metadata" / "v2" / "7"
    record.parent.mkdir(parents=True)
    record.write_text(record_of(before))
    (old / "metadata").write_text("{}")
    monkeypatch.setattr(CheckpointFiles, "_read", lambda self, path: path.read_text())
    monkeypatch.setattr(CheckpointFiles, "_write", lambda self, path, text: path.write_text(text))
    files(old, store).rename_to(files(new, store))
    assert record.read_text() == record_of(new)
