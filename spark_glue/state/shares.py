"""The stream of a share: taken from where it is quickest to have, stored, and left standing for the next batch."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import fastwin as fw
from fastwin.errors import StateError
from fastwin.run.replica import Replica, open_replica
from fastwin.state.chunks import read_meta
from spark_glue.plan.frameplan import FramePlan
from spark_glue.state.book import Entry
from spark_glue.state.copies import Shelf
from spark_glue.state.live import LIVE, Live, LiveStreams
from spark_glue.state.log import Head, StateLog

__all__ = ["Opened", "States", "Stored"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """A stream in the state of a share; what it counted before; and the head of the share's log.

    how: it stood there ("kept"), went on by deltas ("caught_up"), was "loaded" whole, or is "new". load_ms: it took.
    why: it had to be loaded: the worker had none ("cold"), one too far behind ("behind"), copies were "damaged", or the
    spec has "changed". deltas: how many it has taken. copies: how many of them this machine had a copy of.
    """

    stream: Replica
    before: fw.Metrics
    head: Head
    how: Literal["kept", "caught_up", "loaded", "new"] = "new"
    load_ms: int = 0
    why: Literal["", "cold", "behind", "damaged", "changed"] = ""
    deltas: int = 0
    copies: int = 0


@dataclass(frozen=True)
class Stored:
    """What storing a share has written, bytes; how long it took; how many deltas its log has, and their bytes.

    live: bytes of memory of the streams that the worker keeps; spilled: bytes of them in files.
    """

    written: int
    ms: int
    deltas: int = 0
    log_bytes: int = 0
    live: int = 0
    spilled: int = 0


class States:
    """Opens and stores the streams of a task's shares.

    log: of the share that Spark is at. shares: how many there are. live: None for that of this process.
    """

    def __init__(
        self, frame_plan: FramePlan, log: StateLog, shares: int, shelf: Shelf, run: str, live: LiveStreams | None = None
    ) -> None:
        self._frame_plan = frame_plan
        self._log = log
        self._shares = shares
        self._shelf = shelf
        self._place = (run, frame_plan.operator, frame_plan.plan.fingerprint)
        self._live = LIVE if live is None else live
        self._copies = 0  # that the stream opened last has found

    def open(self, share: int) -> Opened:
        """Returns the stream of the current share, whose number is given, in the state that the store knows.

        Raises StateError if the stored state is damaged or of another query.
        """
        begun = time.monotonic()
        self._copies = 0
        opened = self._open(share)
        opened = replace(opened, load_ms=_ms_since(begun), copies=self._copies)
        if opened.how == "loaded":
            log = opened.head.log
            _LOG.info(
                "share %d: loaded %d deltas of %d bytes in %d ms, %s: %d copies were here",
                share, len(log.entries), log.size, opened.load_ms, opened.why, opened.copies,
            )  # fmt: skip
        return opened

    def _open(self, share: int) -> Opened:
        head = self._log.load(share)
        left = self._live.take((*self._place, share))
        if head.log.token is None:
            return self._fresh(head, [])
        if left is not None:
            if left.token == head.log.token:
                return Opened(left.stream, left.metrics, head, "kept")
            for _, missing in head.log.since_one_of({left.token}):
                if self._catches_up(left.stream, head, missing):
                    return Opened(left.stream, left.stream.metrics, head, "caught_up", deltas=len(missing))
        entries = head.log.entries
        if head.earlier:
            return self._migrated(head, [self._log.read(head, entry) for entry in entries])
        try:
            deltas = [self._fetch(head, entry) for entry in entries]
            return self._fresh(head, deltas, "cold" if left is None else "behind")
        except StateError as problem:
            _LOG.warning("share %d: copies are damaged, so it is read from the state store: %s", share, problem)
            for entry in entries:  # perhaps only the copies are damaged
                self._shelf.remove(entry.token)
            self._copies = 0
            return self._fresh(head, [self._log.read(head, entry) for entry in entries], "damaged")

    def _migrated(self, head: Head, deltas: list[bytes]) -> Opened:
        plan, migrate = self._frame_plan.plan, self._frame_plan.migrate
        try:
            return self._fresh(head, [plan.migrated(delta, migrate) for delta in deltas], "changed")
        except StateError as problem:
            raise StateError(
                f"{problem}; a share that has not been visited since the spec changed still needs the migrate= of that "
                f"restart; else such a query needs a new checkpoint"
            ) from None

    def _catches_up(self, stream: Replica, head: Head, missing: Iterable[Entry]) -> bool:
        try:
            stream.catch_up([self._fetch(head, entry) for entry in missing])
        except StateError:
            return False
        return True

    def _fresh(
        self, head: Head, deltas: list[bytes], why: Literal["", "cold", "behind", "damaged", "changed"] = ""
    ) -> Opened:
        stream = open_replica(self._frame_plan.plan)
        if deltas:
            stream.catch_up(deltas)
        how: Literal["loaded", "new"] = "loaded" if deltas else "new"
        return Opened(stream, stream.metrics, head, how, why=why if deltas else "", deltas=len(deltas))

    def _fetch(self, head: Head, entry: Entry) -> bytes:
        if not head.has_chunks(entry):
            self._copies += 1
            return self._log.read(head, entry)
        data = self._shelf.get(entry.token, entry.size)
        if data is None:
            data = self._log.read(head, entry)
            self._shelf.put(entry.token, data)
        else:
            self._copies += 1
        return data

    def store(self, share: int, opened: Opened, after: fw.Metrics, timer: int | None) -> Stored:
        """Stores what has changed in the stream.

        after: the stream's metrics. timer: the one registered for the share.
        """
        begun = time.monotonic()
        head = opened.head
        groups = range(share, self._frame_plan.key_groups, self._shares)
        if after.state_rows == 0 and after.watermark == fw.MIN_TIMESTAMP:
            self._log.clear(head)
            for entry in filter(head.has_chunks, head.log.entries):
                self._shelf.remove(entry.token)
            return Stored(0, _ms_since(begun))
        whole = head.earlier or self._log.is_better_whole(head)
        if whole or after.state_rows == 0:
            # What came before can go: deltas instead of which all is written, or of rows that are gone. What is left
            # without rows, a kilobyte or two, tells a query with a longer lateness what was cleaned.
            delta = opened.stream.snapshot() if whole else opened.stream.delta()
            meta = read_meta(delta) | {"refreshed": len(groups)}
            # A stream of another worker that is behind cannot go on from a state that is whole.
            recent = () if whole else head.log.recent
            head = replace(head, log=replace(head.log, turn=None, recent=recent), earlier=False)
        else:
            delta = opened.stream.delta(head.log.refresh(after.state_rows, self._frame_plan.key_groups, groups))
            meta = read_meta(delta)
        lateness = self._frame_plan.spec.lateness_ms
        # A window is cleaned once the watermark has reached its end - 1 + lateness.
        cleaned = after.watermark - lateness + 1 if after.watermark > fw.MIN_TIMESTAMP + lateness else None
        before = head
        head, gone, moved = self._log.append(replace(head, timer=timer), delta, meta, len(groups), cleaned)
        written = sum(entry.size for entry, _ in moved) + self._log.save(head)
        if gone:
            _LOG.debug(
                "share %d: forgot %d deltas, %d of %d bytes are left",
                share, len(gone), len(head.log.entries), head.log.size,
            )  # fmt: skip
        # A delta that lies in the head is read with it, and needs no copy.
        for entry in gone:
            if before.has_chunks(entry):
                self._shelf.remove(entry.token)
        for entry, data in moved:
            self._shelf.put(entry.token, data)
        token = head.log.token
        assert token is not None
        self._live.put((*self._place, share), Live(token, opened.stream, after, after.state_bytes))
        log = head.log
        return Stored(written, _ms_since(begun), len(log.entries), log.size, self._live.nbytes, self._live.spilled)


def _ms_since(begun: float) -> int:
    return round(1_000 * (time.monotonic() - begun))
