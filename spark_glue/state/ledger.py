"""The ledger of a machine's workers: which streams each of them keeps, so that one budget holds for all together.

A file for each run of a query, in the folder that the workers share. Where containers share the folder, each has files
of its own: it cannot tell which processes of another one live. A file says who keeps a stream of which share, of how
many bytes, and how many states of the share have come since. What the ledger does not grant any more has to go; it
counts until its owner has heard of that, and let go of it.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from spark_glue.state.book import MOST_BEHIND
from spark_glue.state.folders import hold, is_private, lock

__all__ = ["Ledger"]

_FILE = ".live"
_IDLE_S = 600.0  # a file of another container that was not written for so long is taken to be of one that is gone
_GOING = -1  # in place of the state of a stream whose owner has not heard yet that it is to go


class Ledger:
    """The streams that all workers keep of one run. root: the folder of all runs. owner: the worker, by its pid.

    Raises OSError where the file cannot be read or written.
    """

    def __init__(self, root: Path, run: str, owner: int) -> None:
        self._root = root
        self._folder = root / run
        self._file = self._folder / f"{_FILE}{_namespace()}"
        self._owner = str(owner)
        self.room = 0  # bytes that the last call of kept() has found free

    def there(self) -> bool:
        """Whether anybody keeps a stream of the run, as far as can be told."""
        try:
            return self._file.exists()
        except OSError:
            return True

    def kept(self, share: str, nbytes: int, limit: int, again: bool = False) -> set[str]:
        """Notes that the worker has put a stream of a share away; returns the shares of which it may keep streams.

        nbytes: of memory. limit: bytes for the streams of all runs. again: the stream of the last call takes another
        number of bytes now.

        Where there are too many, those go first that are behind their share's state, then those of shares that have not
        been visited for two rounds, then the new one: what is kept stays the same from round to round, and so is of
        use. So does the new one while others still have to let go. O(streams of the run).
        """
        with self._opened() as book:
            held, states = book["held"], book["states"]
            for pid in [pid for pid in held if pid != self._owner and not _lives(int(pid))]:
                del held[pid]
            book["puts"] += not again
            states[share] = states.get(share, 0) + (not again)
            mine = held.setdefault(self._owner, {})
            for key in [key for key, told in mine.items() if told[1] == _GOING]:
                del mine[key]  # the worker hears of it now
            mine[share] = [nbytes, states[share], book["puts"]]
            for pid, kept in held.items():
                for key, (_, state, _) in list(kept.items()):
                    if state != _GOING and states[key] - state > MOST_BEHIND:
                        self._let_go(held, pid, key)
            taken, part = self._others(limit)
            streams = [(pid, key, *told) for pid, kept in held.items() for key, told in kept.items()]
            staying = sum(size for _, _, size, state, _ in streams if state != _GOING)
            round_ago = book["puts"] - 2 * len(states)

            def goes(stream: tuple[Any, ...]) -> tuple[int, int]:
                pid, key, _, state, put = stream
                if state < states[key]:
                    return 0, put
                if (pid, key) == (self._owner, share):
                    return 2, 0
                return (1, put) if put < round_ago else (3, put)

            for pid, key, size, state, _ in sorted(streams, key=goes):
                if staying <= limit - part:
                    break
                if state != _GOING:
                    self._let_go(held, pid, key)
                    staying -= size
            there = sum(told[0] for kept in held.values() for told in kept.values())
            self.room = limit - max(taken, part) - there
            if share in mine and there > limit - taken:
                del mine[share]
            if share not in mine:
                book["refused"] = book["puts"]
            return set(mine)

    def _let_go(self, held: dict[str, Any], pid: str, key: str) -> None:
        if pid == self._owner:
            del held[pid][key]
        else:
            held[pid][key][1] = _GOING

    def _others(self, limit: int) -> tuple[int, int]:
        """Returns the bytes of the streams in other files, and how many are to be left to them.

        They are those of other runs, and of other containers. A run that has been refused a stream of late is left its
        part, though it has less. No run has to go below its own part.
        """
        found = [self._read(path) for path in self._root.glob(f"*/{_FILE}*") if path != self._file]
        others = [book for book in found if book is not None]
        own = limit // (len(others) + 1)
        taken = left = 0
        for book in others:
            size = sum(told[0] for kept in book["held"].values() for told in kept.values())
            waits = book.get("refused", 0) > max(0, book["puts"] - len(book["states"]))
            taken += size
            left += max(size, own) if waits else size
        return taken, min(left, limit - own)

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Returns what another file tells of workers that live; None: it is of a container that is gone, perhaps."""
        try:
            book = _parsed(path.read_bytes())
            if path.name != self._file.name:
                return book if time.time() - path.stat().st_mtime < _IDLE_S else None
        except OSError:
            return _parsed(b"")
        book["held"] = {pid: kept for pid, kept in book["held"].items() if _lives(int(pid))}
        return book

    @contextlib.contextmanager
    def _opened(self) -> Iterator[dict[str, Any]]:
        if not is_private(self._root):
            raise PermissionError(f"{self._root}: others may write to it")
        hold(self._folder)
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+b") as file:
            lock(file.fileno())
            book = _parsed(file.read())
            yield book
            file.seek(0)
            file.write(json.dumps(book).encode())
            file.truncate()


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        return json.loads(text)
    except ValueError:  # fresh, or written half by a worker that was killed
        return {"puts": 0, "states": {}, "held": {}}


@cache
def _namespace() -> str:
    """Returns what tells the container of this process: in which numbers of processes mean the same."""
    try:
        name = f"-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
    try:  # a later container may get the same number, and its first process has started at another time
        return f"{name}-{_started(Path('/proc/1/stat').read_text(errors='replace'))}"
    except (OSError, IndexError):
        return name


def _started(stat: str) -> str:
    """Returns when a process has started, of its ``/proc/PID/stat``: field 22, and the name in 2 may have blanks."""
    return stat.rpartition(")")[2].split()[19]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
