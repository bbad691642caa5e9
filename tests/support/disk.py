"""A folder on a disk, for regions that lie in files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastwin.core.memory.regions import allow_memory, in_files, use_files

__all__ = ["bytes_in_files", "files_on_disk"]


@contextmanager
def files_on_disk() -> Iterator[Path]:
    """Lets regions lie in files meanwhile; yields their folder. Skips the test where no disk can be used."""
    for place in (None, Path(__file__).parent):  # the temporary folder may lie in memory
        with tempfile.TemporaryDirectory(dir=place) as name:
            try:
                use_files(name)
            except OSError:
                continue
            try:
                yield Path(name)
            finally:
                use_files(None)
                allow_memory(None)
            assert not list(Path(name).iterdir())
            return
    pytest.skip("no folder on a disk")


def bytes_in_files() -> int:
    """Returns how many bytes lie in files now."""
    return in_files()[1]
