"""The stateful operator: one stream per share of the key groups, inside transformWithStateInPandas."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from spark_glue import wire
from spark_glue.alarms import Alarms
from spark_glue.cache import Shelf
from spark_glue.job import Job
from spark_glue.keygroups import LEDGER_ID, number_of
from spark_glue.statelog import Head, Identity, StateLog
from spark_glue.states import Opened, States, run_id, shares_of
from spark_glue.unpack import Output, result_tables, row_frames
from spark_glue.wire import Packet, PacketKind, ResultKind
from spark_glue.worker import settle

__all__ = ["WindowProcessor"]


class WindowProcessor(StatefulProcessor):
    """Runs a job's windows for every share that Spark hands over: the key groups of one partition.

    A share is visited when it has input, and when its timer has expired; both may happen in one micro-batch. A visit
    opens the share's stream, advances it to the batch's watermark, feeds it the input and stores what has changed: the
    order of a source that sends a watermark after every batch.

    rows: results leave as its rows (``unpack.row_frames``); None: as blobs (``wire.RESULT``).
    """

    def __init__(self, job: Job, rows: Output | None = None) -> None:
        self._job = job
        self._rows = rows

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        plan = self._job.plan
        self._alarms = Alarms(handle, self._job.time_mode)
        shares = shares_of(self._job.key_groups)
        identity = Identity(plan.fingerprint.hex(), plan.config.state, self._job.key_groups, shares, self._job.migrate)
        self._log = StateLog(handle, identity)
        run = run_id()
        self._states = States(self._job, self._log, shares, Shelf(run), run)

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        packets = sorted(_packets(rows))
        if key[0] == LEDGER_ID:
            self._log.sign()
            return
        bad = [packet for packet in packets if packet.kind == PacketKind.BAD]
        good = [packet for packet in packets if packet.kind in (PacketKind.GOOD, PacketKind.PARTIAL)]
        share = number_of(key[0])
        visit = Visit(self._job, self._states.open(share) if good else None)
        visit.divert(bad)
        if good:
            if not self._job.chained:
                visit.advance(self._alarms, timerValues)
            visit.feed(good)
            if self._job.chained:  # the watermark that made windows fire comes behind their results
                visit.advance(self._alarms, timerValues)
            visit.store(self._states, share, self._alarms, timerValues)
        yield from self._frames(visit)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[Any, ...],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        if self._alarms.asleep(timerValues):
            return
        share = number_of(key[0])
        visit = Visit(self._job, self._states.open(share))
        visit.advance(self._alarms, timerValues)
        expired = expiredTimerInfo.getExpiryTimeInMs()
        visit.store(self._states, share, self._alarms, timerValues, expired)
        yield from self._frames(visit)

    def _frames(self, visit: "Visit") -> Iterator[pd.DataFrame]:
        if self._rows is not None:
            return row_frames(self._rows, visit.results, visit.counters())
        return wire.result_frames(visit.blobs(), visit.counters())

    def close(self) -> None:
        pass


class Visit:
    """One turn of one share: its stream, what the stream gave back (``results``), and what is to be counted.

    opened: None where bad rows pass and nothing else.
    """

    def __init__(self, job: Job, opened: Opened | None) -> None:
        self._job = job
        if opened is None:
            stream = job.plan.open(coalesce=job.coalesce)
            opened = Opened(stream, stream.metrics, Head())
        self._opened = opened
        self._stream = opened.stream
        self._before = self._after = opened.before
        self.results: list[fw.Result] = []
        self._diverted: list[bytes] = []
        self._bad = 0
        self._written = 0

    def advance(self, alarms: Alarms, values: TimerValues) -> None:
        """Fires what is due."""
        self.results += alarms.advance(self._stream, values)

    def feed(self, packets: Sequence[Packet]) -> None:
        """Gives the stream what all packets hold in one call: they are one micro-batch."""
        partials = [packet.blob for packet in packets if packet.kind == PacketKind.PARTIAL and packet.blob is not None]
        plan = self._job.plan
        batches = [
            wire.decode(packet.blob, plan.input_schema)
            for packet in packets
            if packet.kind == PacketKind.GOOD and packet.blob is not None
        ]
        table = pa.Table.from_batches(batches, plan.input_schema)
        if not partials:
            self.results.append(self._stream.process(table))
            return
        if batches:  # rows of a task that gave up; whether they are late is not known before they have met the others
            feeder = plan.new_feeder(self._job.coalesce)
            assert feeder is not None
            (rows,) = table.combine_chunks().to_batches()
            feeder.add(plan.batch(rows, plan.times(rows)))
            partials += [part.chunk for part in feeder.partials()]
        self.results.append(self._stream.merge(partials))

    def divert(self, packets: Iterable[Packet]) -> None:
        """Passes bad rows on, or only counts them."""
        for packet in packets:
            self._bad += packet.rows
            if packet.blob is not None:
                self._diverted.append(packet.blob)

    def store(
        self, states: States, share: int, alarms: Alarms, values: TimerValues, expired: int | None = None
    ) -> None:
        """Stores the stream and sees to its timer. expired: the timer that led here; Spark removes that one itself."""
        timer = alarms.set(self._stream, values, self._opened.head.timer, expired)
        self._after = self._stream.metrics
        self._written = states.store(share, self._opened, self._after, timer)

    def blobs(self) -> Iterator[tuple[int, bytes]]:
        """Yields all results as blobs with their kinds."""
        tables: dict[int, list[pa.Table]] = {}
        for result in self.results:
            for kind, table in result_tables(result):
                tables.setdefault(kind, []).append(table)
        for kind, found in tables.items():
            for piece in wire.pieces(pa.concat_tables(found)):
                yield kind, wire.encode(piece).to_pybytes()
        for blob in self._diverted:
            yield ResultKind.BAD, blob

    def counters(self) -> dict[str, int]:
        """Returns what the visit has counted, by the names in ``wire.COUNTERS``."""
        now, before = self._after, self._before
        return {
            "events": now.events - before.events,
            "late": now.late - before.late,
            "dropped": now.num_late_records_dropped - before.num_late_records_dropped,
            "bad": self._bad,
            "unassigned": now.unassigned - before.unassigned,
            "fired": now.fired - before.fired,
            "unfired": now.unfired - before.unfired,
            "open_windows_change": now.open_windows - before.open_windows,
            "timers_change": now.timers - before.timers,
            "state_rows_change": now.state_rows - before.state_rows,
            "state_bytes": self._written,
            "watermark_ms": max(0, self._stream.watermark),
        }


def _packets(frames: Iterable[pd.DataFrame]) -> Iterator[Packet]:
    names = ("mapper", "seq", "kind", "rows", "blob")
    for frame in frames:
        yield from map(Packet, *(frame[name].tolist() for name in names))
