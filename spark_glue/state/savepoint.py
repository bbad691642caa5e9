"""A savepoint: all state of a stopped query in files, from which another query starts."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fastwin.errors import SpecError

__all__ = ["STATE_FOLDER", "Savepoint", "files_in", "local_folder", "spark_path"]

STATE_FOLDER = "_state"
"""Beside the files that people read, which do not see it: Parquet's readers leave names with an underscore out."""
_ABOUT = "_savepoint.json"
_FORMAT = 3
_OLDEST_FORMAT = 1  # without pieces; 2 without types
_AGAIN = "copy the whole folder again, or write it anew"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


@dataclass(frozen=True)
class Savepoint:
    """What is to be known of a savepoint before its state is read.

    key_groups: into how many its keys are divided. watermark: that of the next micro-batch, ms; None: none yet.
    fingerprint: of the spec, in hex. batch: the last micro-batch that is in it; None: not known. time_zone: in which
    event times without a zone were read; None: they have one, or an earlier version has written this. files: of the
    state, by name, with their bytes; None: an earlier version has written this. types: ``StateSpec.to_json``, which
    tells the types of the state; None: there are no rows of it, or an earlier version has written this.
    """

    key_groups: int
    watermark: int | None
    fingerprint: str
    batch: int | None = None
    time_zone: str | None = None
    files: dict[str, int] | None = None
    types: list[Any] | None = None

    def write(self, folder: Path) -> None:
        """Writes this to the folder of a savepoint."""
        (folder / _ABOUT).write_text(json.dumps({"format": _FORMAT} | asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: str) -> Savepoint:
        """Returns what is known of the savepoint in a folder. Raises SpecError if there is none."""
        try:
            fields = json.loads((Path(path) / _ABOUT).read_text(encoding="utf-8"))
            version = fields.pop("format")
            known = _OLDEST_FORMAT <= version <= _FORMAT
            found = cls(**fields) if known else None  # one of a newer version has other fields
        except (OSError, ValueError, TypeError, KeyError) as problem:
            raise SpecError(f"history: {path} is no folder that export_state has written: {problem}") from problem
        if found is None:
            raise SpecError(
                f"history: {path} has format {version}, this version of fastwin reads {_OLDEST_FORMAT} to {_FORMAT}"
            )
        return found

    def check_whole(self, folder: Path) -> None:
        """Raises SpecError unless the files of the state in a savepoint's folder are those that were written."""
        place = folder / STATE_FOLDER
        found = files_in(place) if place.is_dir() else {}
        if not found:
            raise SpecError(f"history: {place} has no files, and export_state writes the state there; {_AGAIN}")
        if self.files is None:
            return
        for name in sorted(found.keys() | self.files.keys()):
            there, written = found.get(name, 0), self.files.get(name, 0)
            if there != written:
                raise SpecError(
                    f"history: {place / name} has {there} bytes, and export_state has written {written}; {_AGAIN}"
                )


def files_in(folder: Path) -> dict[str, int]:
    """Returns the files of a folder that Spark reads, by name, with their bytes."""
    return {path.name: path.stat().st_size for path in folder.iterdir() if not path.name.startswith((".", "_"))}


def local_folder(path: str | Path) -> Path | None:
    """Returns the folder of this machine that a path names; None: it is a URI of another store, or of another machine.

    A URI of a local file has no escapes, as in Spark's own paths.
    """
    found = _URI.match(str(path))
    if found is None:
        return Path(path)
    rest = str(path)[found.end() :]
    names_a_machine = rest.startswith("//") and not rest.startswith("///")
    return None if found[1].lower() != "file" or names_a_machine else Path("/" + rest.lstrip("/"))


def spark_path(folder: Path) -> str:
    """Returns a folder of this machine as Spark's readers take it, wherever they look for plain paths.

    They read patterns, and no URI's escapes.
    """
    return "file://" + re.sub(r"[][{}*?\\]", r"\\\g<0>", str(folder.absolute()))
