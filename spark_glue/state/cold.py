"""Streams beyond the budget that stay with their worker: their memory lies in a file on the executor's local disk.

The file has no name, so nobody else reads or changes it, and it goes with the memory: when the stream is dropped or the
worker ends, however it ends. The system writes to it what is not touched, and reads what is.
"""

import bisect
import os
import tempfile
from pathlib import Path
from typing import Any

from fastwin.core.memory.onfile import is_in_memory, leave_memory, pages_in, put_on_file
from spark_glue.state.folders import limit_of, say_once

__all__ = ["FOLDER_VARIABLE", "SPILL_VARIABLE", "put_away"]

SPILL_VARIABLE = "FASTWIN_SPILL_BYTES"
FOLDER_VARIABLE = "FASTWIN_SPILL_DIR"

_SMALLEST = 1 << 16  # a smaller block stays in memory,
_PART = 0.5  # and a stream of which less than this would lie in the file


def put_away(stream: Any, nbytes: int) -> int | None:
    """Puts a stream's memory into a file, as far as it does not lie there; returns the bytes that stay in memory.

    None: it cannot be, and the log says why; or FASTWIN_SPILL_BYTES does not allow it. The stream may go on either way.
    nbytes: that the stream takes.
    """
    limit = limit_of(SPILL_VARIABLE, 0) // (os.cpu_count() or 1)
    if limit <= 0:
        return None
    folder = _folder()
    try:
        found = _mapped(folder)
        pages = [one for one in (pages_in(*block) for block in stream.blocks()) if one[1] >= _SMALLEST]
        fresh = [one for one in pages if not _covers(found, *one)]
        size = sum(length for _, length in pages)
        taken = sum(end - start for start, end in found)
        if size < _PART * nbytes or taken + sum(length for _, length in fresh) > limit:
            return None
        if fresh:
            _move(fresh, folder)
        for at, length in pages:
            leave_memory(at, length)
    except OSError as problem:
        say_once(
            f"streams: those beyond the budget cannot lie in {folder} ({problem}), so they are read anew each time"
        )
        return None
    return max(nbytes - size, 0)


def _folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE) or os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(named or tempfile.gettempdir()).resolve()


def _move(pages: list[tuple[int, int]], folder: Path) -> None:
    file = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if is_in_memory(file):
            raise OSError(f"{folder} lies in memory")
        offset = 0
        for at, length in pages:
            offset += put_on_file(at, length, file, offset)
    finally:
        os.close(file)


def _mapped(folder: Path) -> list[tuple[int, int]]:
    """Returns which addresses of this process are shared with a file without a name in a folder, ascending."""
    found = []
    with open("/proc/self/maps") as lines:
        for line in lines:
            bounds, rights, *_, path = line.rstrip("\n").split(" ", 5)
            if rights == "rw-s" and path.strip().startswith(f"{folder}/#") and path.endswith(" (deleted)"):
                start, end = bounds.split("-")
                found.append((int(start, 16), int(end, 16)))
    return found


def _covers(found: list[tuple[int, int]], at: int, length: int) -> bool:
    place = bisect.bisect_right(found, (at, 1 << 64)) - 1
    return place >= 0 and found[place][0] <= at and at + length <= found[place][1]
