"""The files of a checkpoint, on a store where a rename is a copy that can stop half-way. No Spark runs."""

from pathlib import Path

import pytest

from fastwin.errors import SpecError
from spark_glue.state.checkpointfiles import CheckpointFiles


class Store:
    """Renames by a copy of each file, and stops at the second one. how: an error, or what Hadoop returns."""

    def __init__(self, how: object) -> None:
        self.how = how

    def exists(self, path: Path) -> bool:
        return path.exists()

    def globStatus(self, path: object) -> None:  # noqa: N802
        return None

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
    made._path_of = Path
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
