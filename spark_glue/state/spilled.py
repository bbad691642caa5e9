"""Streams beyond the budget that stay with their worker: what is large of them lies in files on the executor's disk.

The system writes to the files what is not touched, takes it out of memory when that runs short, and reads what is
touched again. The files have no names, so they go with the streams, or with the worker, however it ends.
"""

import os
from typing import Any

from fastwin.core.memory.regions import allow_memory, files_folder, in_files, take_problem, use_files
from fastwin.machine.cgroups import processors
from spark_glue.state.folders import limit_of, say_once

__all__ = ["FOLDER_VARIABLE", "SPILL_VARIABLE", "bring_back", "bytes_in_files", "keep_within", "spill"]

SPILL_VARIABLE = "FASTWIN_SPILL_BYTES"
FOLDER_VARIABLE = "FASTWIN_SPILL_DIR"

_NO_LIMIT = 1 << 62
_tried = ""  # the folders that the environment named when one was last looked for
_problems = ""  # that they had then


def spill(stream: Any, again: bool = False) -> int:
    """Puts what is large of a stream into files, and what lies there already out of memory; returns its bytes there.

    again: some of it lies there; so it is not held to FASTWIN_SPILL_BYTES.
    0: it cannot be, and the log says why, or FASTWIN_SPILL_BYTES does not allow it. The stream may go on either way.
    """
    if not _is_ready():
        if _problems:
            say_once(
                f"streams: those beyond the budget cannot lie on a local disk ({_problems}), so they are read anew "
                f"each time"
            )
        return 0
    if not again and bytes_in_files() >= _limit():
        say_once(f"streams: the files of this worker take the {_limit()} bytes that {SPILL_VARIABLE} leaves to each")
        return 0
    found = int(stream.place(True))
    problem = take_problem()
    if problem is not None:
        say_once(
            f"streams: not all of those beyond the budget can lie in {files_folder()} ({problem}); those that stay in "
            f"memory and do not fit are read anew each time",
            topic=f"{files_folder()}: {problem}",
        )
    return found


def bytes_in_files() -> int:
    """Returns how many bytes of all streams of this process lie in files."""
    return in_files()[1]


def bring_back(stream: Any) -> int:
    """Puts a stream into memory again; returns the bytes that are still in files."""
    return int(stream.place(False))


def keep_within(nbytes: int | None) -> None:
    """Says by how many bytes a stream that is opened or fed now may grow in memory; beyond, it grows in files.

    None: by any number. Where nothing may lie in files, that changes nothing.
    """
    if nbytes is None or _is_ready():
        allow_memory(None if bytes_in_files() >= _limit() else nbytes)


def _limit() -> int:
    return limit_of(SPILL_VARIABLE, _NO_LIMIT) // processors()


def _is_ready() -> bool:
    """Whether there is a folder for files, which is looked for once; else _problems says why, if one was named."""
    global _tried, _problems
    named = os.environ.get(FOLDER_VARIABLE) or os.environ.get("SPARK_LOCAL_DIRS", "")
    if limit_of(SPILL_VARIABLE, _NO_LIMIT) <= 0:
        named = ""
    if named == _tried:
        return bool(files_folder())
    _tried = named
    folders = [folder for folder in named.split(",") if folder]
    problems = []
    for i in range(len(folders)):
        folder = folders[(os.getpid() + i) % len(folders)]  # not all workers on one disk
        try:
            use_files(folder)
        except OSError as problem:
            problems.append(f"{folder}: {problem.strerror}")
        else:
            return True
    use_files(None)
    _problems = "; ".join(problems)
    return False
