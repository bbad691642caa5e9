"""Lines that are none of an access log: some of each micro-batch are kept in a file, however many there are."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["Malformed"]

_MOST_LINES = 10_000
_LONGEST = 8_192
_MOST_BYTES = 64 * 2**20


class Malformed:
    """A sink of a stream's bad rows. path: of the file. say: tells a line.

    left_out: how many malformed lines are not in the file: those of a micro-batch beyond 10,000, and all when it has
    64 MB. The first 8,192 characters of a line are.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self.left_out = 0
        self._full = False
        path.touch()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        lines = frame.where("line is not null").select(F.substring("line", 1, _LONGEST).alias("line"))
        kept = 0
        with self._path.open("ab") as file:
            if not self._full:
                for row in lines.limit(_MOST_LINES).toLocalIterator():
                    line = f"{row.line}\n".encode()
                    self._full = file.tell() + len(line) > _MOST_BYTES
                    if self._full:
                        self._say(f"{self._path.name} is full: further malformed lines are counted alone")
                        break
                    file.write(line)
                    kept += 1
        if kept < _MOST_LINES and not self._full:
            return
        left_out = lines.count() - kept
        self.left_out += left_out
        if left_out and not self._full:
            self._say(f"batch {batch_id}: {self._path.name} has {kept:,} malformed lines of it, and {left_out:,} not")
