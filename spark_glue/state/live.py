"""The streams that a Python worker leaves standing between micro-batches, within a budget of all workers together.

The module is imported by the workers, not pickled to them: what it holds outlives the micro-batch.
"""

import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastwin.machine.cgroups import processors
from fastwin.machine.memory import bytes_of_memory, give_back
from spark_glue.state.folders import cache_root, limit_of, say_once
from spark_glue.state.ledger import Ledger
from spark_glue.state.spilled import bring_back, bytes_in_files, keep_within, spill

__all__ = ["LIVE", "LIVE_VARIABLE", "Live", "LiveStreams"]

LIVE_VARIABLE = "FASTWIN_LIVE_BYTES"

_MOST_BY_DEFAULT = 2 << 30
_IDLE_S = 600.0
_GIVE_BACK_S = 30.0  # memory of streams that went is not given back more often,
_GIVE_BACK_BYTES = 64 << 20  # nor for less
_KEEP_VARIABLE = "MALLOC_TRIM_THRESHOLD_"  # glibc's own: how many free bytes it keeps at the end of its heap
_KEEPS_ALL = 1 << 30
_PATIENCE_S = 5.0  # after another worker has held the ledger for too long, it is not asked again for


@dataclass
class Live:
    """A stream as a task has left it. metrics: as they stood then. nbytes: what it takes, about; of these, ``spilled``
    lie in files and not in memory."""

    token: str
    stream: Any
    metrics: Any
    nbytes: int
    used: float = 0.0
    spilled: int = 0

    @property
    def in_memory(self) -> int:
        """Bytes that it takes of memory, about."""
        return max(0, self.nbytes - self.spilled)


class LiveStreams:
    """The streams of one Python worker, by place: the run, then what tells a share of it.

    limit: bytes for all workers of the machine; None: FASTWIN_LIVE_BYTES, or 2 GiB, or a quarter of the memory of the
    machine or its container if that is less. root: the folder that the workers share; None: ``cache_root()``. owner:
    the worker; None: this process.
    """

    def __init__(self, limit: int | None = None, root: Path | None = None, owner: int | None = None) -> None:
        self._limit = limit
        self._root = root
        self._owner = owner
        self._held: dict[tuple, Live] = {}
        self._granted: dict[str, set[str]] = {}  # what the ledger of each run has said last
        self._spilled: set[tuple] = set()  # places of streams that lie in files
        self._hopeless: set[tuple] = set()  # places of streams that do not fit even so
        self._patient_until = 0.0
        self._in_files = 0  # bytes of all streams when the last one was taken
        self._gone = 0  # bytes of streams that went out of memory, and were not given back to the system yet
        self._given_back = -_GIVE_BACK_S
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes that the streams take of memory, about."""
        return sum(live.in_memory for live in self._held.values())

    @property
    def spilled(self) -> int:
        """Bytes of the streams that lie in files."""
        return sum(live.spilled for live in self._held.values())

    def take(self, place: tuple) -> Live | None:
        """Returns the stream left at a place, which is then no longer there.

        Until one is put there, what grows beyond the budget grows in files, if there may be any.
        """
        if os.getpid() != self._process:  # after a fork: what lies in files has stayed with the parent
            self.clear()
            self._process = os.getpid()
        self._give_back()
        found = self._held.pop(place, None)
        self._in_files = bytes_in_files()
        keep_within(0 if place in self._spilled else max(0, self._bytes_allowed() - self.nbytes))
        return found

    def put(self, place: tuple, live: Live) -> None:
        """Leaves a stream at a place, if the budget has room for it, and lets go of those that have to go."""
        keep_within(None)
        live.used = time.monotonic()
        self._held[place] = live
        before = self.nbytes
        self._keep(place, live)
        self._gone += max(0, before - self.nbytes)

    def _keep(self, place: tuple, live: Live) -> None:
        limit = self._bytes_allowed()
        run = place[0]
        if place in self._spilled or bytes_in_files() > self._in_files:
            self._spill(place, live)
        if live.used < self._patient_until:
            self._keep_granted(place)
            return
        try:
            kept = self._kept(place, live, limit)
        except BlockingIOError:
            self._patient_until = live.used + _PATIENCE_S
            say_once(
                "streams: another worker stands still with the ledger of what the workers keep, so this one keeps "
                "what it has been granted"
            )
            self._keep_granted(place)
        except OSError as problem:
            part = limit // processors()
            say_once(
                f"streams: the workers cannot tell each other what they keep ({problem}), so each keeps at most "
                f"{part} bytes"
            )
            if self.nbytes > part:
                self._spill(place, live)
            self._keep_part(part, live.used)
        else:
            self._granted[run] = kept
            self._drop_others(run, live.used)

    def _give_back(self) -> None:
        """Has the C library let go of the memory of streams that went, unless it is told to keep all, as in local mode.

        Not when they go: who has put the last one still holds it.
        """
        now, keep = time.monotonic(), limit_of(_KEEP_VARIABLE, 0)
        if self._gone >= _GIVE_BACK_BYTES and keep < _KEEPS_ALL and now - self._given_back >= _GIVE_BACK_S:
            give_back(keep)
            self._gone, self._given_back = 0, now

    def _bytes_allowed(self) -> int:
        return limit_of(LIVE_VARIABLE, _by_default()) if self._limit is None else self._limit

    def _kept(self, place: tuple, live: Live, limit: int) -> set[str]:
        """Returns of which shares streams may be kept. One that has no room goes to files, and comes back where there
        is room for two of it."""
        ledger, share = self._ledger(place[0]), _share(place)
        kept = ledger.kept(share, live.in_memory, limit)
        if share in kept:
            if place not in self._spilled or ledger.room < 2 * live.nbytes:
                return kept
            live.spilled = bring_back(live.stream)
            self._spilled.discard(place)
        elif place in self._spilled or place in self._hopeless or not self._spill(place, live):
            self._spilled.discard(place)
            return kept
        kept = ledger.kept(share, live.in_memory, limit, again=True)
        if share not in kept:
            self._hopeless.add(place)
            self._spilled.discard(place)
            say_once(
                f"streams: {live.in_memory} bytes of one stay in memory, and find no room in what {LIVE_VARIABLE} "
                f"leaves to all ({limit}); such streams are read anew each time",
                topic="streams: no room",
            )
        return kept

    def _spill(self, place: tuple, live: Live) -> bool:
        """Puts a stream into files, or what of it is not there yet; returns whether some of it is."""
        again = place in self._spilled or bytes_in_files() > self._in_files
        live.spilled = min(spill(live.stream, again), live.nbytes)
        if live.spilled:
            self._spilled.add(place)
        else:
            self._spilled.discard(place)
        return live.spilled > 0

    def _keep_granted(self, place: tuple) -> None:
        """Drops the stream just put away, unless the ledger has granted it before."""
        if _share(place) not in self._granted.get(place[0], ()):
            del self._held[place]

    def _drop_others(self, run: str, now: float) -> None:
        """Drops what is not granted of a run, and what nobody uses of others."""
        runs = {place[0] for place in self._held}
        left = {one for one in runs if one != run and not self._ledger(one).there()}
        for place, live in list(self._held.items()):
            if place[0] == run:
                goes = _share(place) not in self._granted[run]
            else:
                goes = place[0] in left or now - live.used >= _IDLE_S
            if goes:
                del self._held[place]
                self._spilled.discard(place)
        self._granted = {one: shares for one, shares in self._granted.items() if one in runs - left}

    def _keep_part(self, limit: int, now: float) -> None:
        """Keeps the first streams of each run that take no more than its part of the limit."""
        for place in [place for place, live in self._held.items() if now - live.used >= _IDLE_S]:
            del self._held[place]
        runs = {place[0] for place in self._held}
        totals = dict.fromkeys(runs, 0)
        for place, live in list(self._held.items()):
            if totals[place[0]] + live.in_memory <= limit // len(runs):
                totals[place[0]] += live.in_memory
            else:
                del self._held[place]

    def _ledger(self, run: str) -> Ledger:
        root = cache_root() if self._root is None else self._root
        return Ledger(root, run, os.getpid() if self._owner is None else self._owner)

    def forget(self, run: str) -> None:
        """Lets go of all of a run that has ended."""
        before = self.nbytes
        self._held = {place: live for place, live in self._held.items() if place[0] != run}
        self._spilled = {place for place in self._spilled if place[0] != run}
        self._hopeless = {place for place in self._hopeless if place[0] != run}
        self._granted.pop(run, None)
        self._gone += before - self.nbytes
        self._give_back()

    def clear(self) -> None:
        """Lets go of all."""
        self._held.clear()
        self._spilled.clear()
        self._hopeless.clear()
        self._granted.clear()


@cache
def _by_default() -> int:
    memory = bytes_of_memory()
    return _MOST_BY_DEFAULT if memory is None else min(_MOST_BY_DEFAULT, memory // 4)


def _share(place: tuple) -> str:
    return "/".join(map(_text, place[1:]))


def _text(part: object) -> str:
    return part.hex() if isinstance(part, bytes) else str(part)


LIVE = LiveStreams()
