"""Files that are there as a whole or not at all."""

import os
from pathlib import Path

__all__ = ["put_whole"]


def put_whole(path: Path, data: bytes, part: Path, seconds: float | None = None) -> None:
    """Puts a file in place of the one before, as one step, also over a power cut.

    part: its name until it is whole, on the same disk. seconds: when it was changed, since 1970; None: now.
    """
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if seconds is not None:
        os.utime(part, (seconds, seconds))
    os.replace(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
