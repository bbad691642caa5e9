"""The files of a stopped query's checkpoint, wherever it is kept: to copy them, and to change their log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from fastwin.errors import SpecError

__all__ = ["CheckpointFiles", "LogEntry"]

_LOG = logging.getLogger(__name__)
_PATHS = "stateSchemaFilePaths"
_WHOLE_PATH = re.compile(r'"(?:[^"\\]|\\.)*(/state/\d+/[^"\\]+")')  # as JSON has it; the group stays
_WITHOUT_SINK = "fastwin-rescaled.json"


@dataclass(frozen=True)
class LogEntry:
    """What Spark's log says of a micro-batch: its metadata, and behind them a line for each source.

    version: of the log, which is its first line.
    """

    metadata: dict[str, Any]
    sources: tuple[str, ...] = ()
    version: str = "v1"

    def text(self) -> str:
        """Returns the contents of the log's file."""
        return "\n".join([self.version, json.dumps(self.metadata, separators=(",", ":")), *self.sources])


class CheckpointFiles:
    """A checkpoint's folder, read and written through Spark's own file systems. path: its folder."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._root = self._path_of(path)
        self._fs = self._root.getFileSystem(self._conf)
        self.path = str(self._fs.makeQualified(self._root))

    def _path_of(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _in(self, name: str) -> Any:
        return self._path_of(f"{self.path}/{name}")

    def exists(self, name: str = "") -> bool:
        """Whether the folder, or something in it, is there."""
        return bool(self._fs.exists(self._in(name) if name else self._root))

    def copy_to(self, other: CheckpointFiles) -> None:
        """Copies all to a folder that is not there yet. Raises SpecError if that could not be done."""
        copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
        if other.exists() or not copy(self._fs, self._root, other._fs, other._root, False, self._conf):
            raise SpecError(f"to: {self.path} could not be copied to {other.path}")
        other._moved_to(other.path)

    def rename_to(self, other: CheckpointFiles) -> None:
        """Gives the folder another name, which is free. Raises SpecError if that could not be done.

        Nothing is left under that name then: where a rename is a copy, a part of the checkpoint could be there.
        """
        self._moved_to(other.path)
        if other.exists():
            raise SpecError(f"to: {other.path} is there by now")
        try:
            done = bool(self._fs.rename(self._root, other._root))
        except BaseException:
            other.discard()
            raise
        if not done:
            other.discard()
            raise SpecError(f"to: {self.path} could not be renamed to {other.path}")

    def _moved_to(self, now: str) -> None:
        """Corrects the records in which Spark names files of the checkpoint by their whole paths.

        These begin as the query was told, which may be by a symbolic link, or with the port of a name node.
        """
        for found in self._fs.globStatus(self._in("state/*/_metadata/v2/*")) or ():
            path = found.getPath()
            text = self._read(path)
            if _PATHS in text:
                self._write(path, _WHOLE_PATH.sub(lambda found: f'"{now}{found[1]}', text))

    def remove(self, name: str = "") -> None:
        """Removes the folder, or something in it, if it is there. Raises SpecError if that could not be done."""
        self._fs.delete(self._in(name) if name else self._root, True)
        if self.exists(name):
            raise SpecError(f"to: {self.path}{name and '/'}{name} could not be removed")

    def discard(self) -> None:
        """Removes the folder because of an error, which stays the one that is told of; the log has what is left."""
        try:
            self.remove()
        except Exception as problem:
            _LOG.warning("rescale: %s is left of a call that has failed, and is of no use: %s", self.path, problem)

    def move(self, name: str, to: str) -> None:
        """Moves something within the folder, if it is there. Raises SpecError if that could not be done."""
        if self.exists(name):
            self._fs.mkdirs(self._in(to).getParent())
            if not self._fs.rename(self._in(name), self._in(to)):
                raise SpecError(f"to: {self.path}/{name} could not be renamed to {self.path}/{to}")

    def has(self, log: str, batch: int) -> bool:
        """Whether a log has an entry of a micro-batch."""
        return self.exists(f"{log}/{batch}")

    def last(self, log: str) -> int:
        """Returns the number of the last entry of a log; -1: it has none."""
        found = self._fs.globStatus(self._in(f"{log}/*")) or ()
        names = [str(one.getPath().getName()) for one in found]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def entry(self, log: str, batch: int) -> LogEntry:
        """Returns a log's entry of a micro-batch. Raises SpecError for one that cannot be read."""
        version, *lines = self._read(self._in(f"{log}/{batch}")).splitlines() or [""]
        if not lines or not lines[0].startswith("{"):
            raise SpecError(f"{self.path}/{log}/{batch}: cannot be read: it begins with {version!r}")
        return LogEntry(json.loads(lines[0]), tuple(lines[1:]), version)

    def write(self, log: str, batch: int, entry: LogEntry) -> None:
        """Writes a log's entry of a micro-batch, over the one that was there."""
        self._write(self._in(f"{log}/{batch}"), entry.text())

    def without_sink(self) -> set[int]:
        """Returns the numbers of the micro-batches that ``rescale`` has run, of which no sink knows."""
        return set(json.loads(self._read(self._in(_WITHOUT_SINK)))) if self.exists(_WITHOUT_SINK) else set()

    def add_without_sink(self, batches: Iterable[int]) -> None:
        """Notes numbers of micro-batches for ``without_sink``."""
        self._write(self._in(_WITHOUT_SINK), json.dumps(sorted(self.without_sink().union(batches))))

    def _read(self, path: Any) -> str:
        stream = self._fs.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write(self, path: Any, text: str) -> None:
        stream = self._fs.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
