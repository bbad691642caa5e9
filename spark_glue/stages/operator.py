"""The stateful operator: Spark's transformWithStateInPandas, with one stream for each share of the key groups."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from fastwin.errors import StateError
from fastwin.spec.joinending import SIDE
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.keygroups import RECORD_ID, number_of
from spark_glue.plan.outputs import Output, ResultKind, result_tables
from spark_glue.stages.counters import INPUT_TIMES, count, observed_of_shares
from spark_glue.stages.feeding import partials_in, rows_in
from spark_glue.stages.history import gathered_stream
from spark_glue.stages.latevariables import late_variables
from spark_glue.stages.packets import (
    BLOB_BYTES,
    LARGE_RESULT_BYTES,
    Packet,
    PacketKind,
    cuts,
    encode,
    pieces,
    result_frames,
)
from spark_glue.stages.shareclocks import ShareClocks
from spark_glue.stages.sharetimers import ShareTimers
from spark_glue.stages.shipped import Shipped
from spark_glue.stages.smallstate import run_groups
from spark_glue.stages.unpack import operator_struct, row_frames, unpack_frame
from spark_glue.stages.worker import has_own_partition, query_id, run_of, settle, shares_of
from spark_glue.state.copies import Shelf
from spark_glue.state.cutparts import STATE, Pieces
from spark_glue.state.log import Identity, StateLog
from spark_glue.state.shares import Opened, States, Stored

__all__ = ["WindowProcessor", "run_stream"]

_LOG = logging.getLogger(__name__)


def run_stream(
    packed: DataFrame, frame_plan: FramePlan, output: Output, name: str, initial: DataFrame | None = None
) -> DataFrame:
    """Returns the result frame of a stream's packed rows. name: of the counters. initial: rows of history.INITIAL."""
    if frame_plan.small_state:
        output = replace(output, in_blobs=True)
    processor = WindowProcessor(frame_plan, output if output.is_flat else None)
    struct = operator_struct(output)
    if frame_plan.small_state:
        results = run_groups(packed, processor, struct, frame_plan)
    else:
        begin = None if initial is None else initial.groupBy("key_group")
        grouped = packed.groupBy("key_group")
        results = grouped.transformWithStateInPandas(Shipped(processor), struct, "append", frame_plan.time_mode, begin)
    return unpack_frame(observed_of_shares(results, name, "counters", frame_plan.carried_delays), output)


class WindowProcessor(StatefulProcessor):
    """Runs the windows of a frame for every share that Spark hands over: the key groups of one partition.

    A share is visited when it has input, and when its timer has expired; both may happen in one micro-batch. A visit
    opens the share's stream, advances it to the batch's watermark, feeds it the input and stores what has changed: the
    order of a source that sends a watermark after every batch.

    rows: results leave as its rows (``unpack.row_frames``); None: as blobs (``packets.RESULT``).
    """

    def __init__(self, frame_plan: FramePlan, rows: Output | None = None) -> None:
        self._frame_plan = frame_plan
        self._rows = rows

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        handle = late_variables(handle)
        frame_plan, plan = self._frame_plan, self._frame_plan.plan
        idle_ms = frame_plan.idle_ms
        self._clocks = None if idle_ms is None else ShareClocks(handle, frame_plan.delays, idle_ms)
        self._timers = ShareTimers(handle, frame_plan.time_mode, self._clocks, frame_plan.start_ms)
        shares = shares_of(frame_plan.key_groups)
        self._only: int | None = None  # the share of the task's partition, where each has one to itself
        self._alone = has_own_partition()
        query, run = query_id(), run_of(frame_plan.operator)
        identity = Identity(
            plan.fingerprint.hex(),
            plan.config.state,
            frame_plan.key_groups,
            shares,
            frame_plan.migrate,
            query,
            frame_plan.time_zone,
        )
        self._log = StateLog(handle, identity, in_chunks=not frame_plan.small_state)
        self._states = States(frame_plan, self._log, shares, Shelf(run), run)
        self._pieces = Pieces()  # of history,
        self._pieced: int | None = None  # and the id of the share that they are of
        self._large = LARGE_RESULT_BYTES  # that may still go in larger blobs

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        self._take_pieces_of(key[0])
        packets = sorted(_packets(rows))
        if key[0] == RECORD_ID:
            self._log.sign()
            if times := _newest(packets):
                yield from self._frames([], count(fw.Metrics(), fw.Metrics(), kept=(0, 0), work=times))
            return
        bad = [packet for packet in packets if packet.kind == PacketKind.BAD]
        good = [packet for packet in packets if packet.kind in (PacketKind.GOOD, PacketKind.PARTIAL)]
        bad_rows = sum(packet.rows for packet in bad)
        bad_blobs = [packet.blob for packet in bad if packet.blob is not None]
        told = [(packet.seq, packet.rows) for packet in packets if packet.kind == PacketKind.CLOCK]
        if told and self._clocks is not None:
            self._clocks.hear(told, timerValues)
            if not good:
                self._timers.wait(timerValues)  # the timer comes behind all input, and fires what is due
                if not bad:
                    return
        if not good:
            yield from self._frames([], count(fw.Metrics(), fw.Metrics(), bad=bad_rows, kept=(0, 0)), bad_blobs)
            return
        share = number_of(key[0])
        visit = Visit(self._frame_plan, self._open(share))
        visit.set_clock(self._timers, timerValues)
        if not self._frame_plan.chained:
            visit.advance(self._timers, timerValues)
        visit.feed(good)
        if self._frame_plan.chained:  # the watermark that made windows fire comes behind their results
            visit.advance(self._timers, timerValues)
        visit.store(self._states, share, self._timers, timerValues)
        self._timers.done()
        yield from self._frames(visit.results, visit.counters(bad_rows), bad_blobs)

    def handleInitialState(self, key: tuple[Any, ...], initialState: Any, timerValues: TimerValues) -> None:  # noqa: N802, N803
        self._take_pieces_of(key[0])
        parts = sorted(self._pieces.joined(zip(*(initialState[name].tolist() for name in STATE.names), strict=True)))
        if not parts and self._pieces.waits:  # the others are still to come
            return
        share = number_of(key[0])
        opened = self._open(share)
        if opened.how != "new":  # Spark hands over what a share gets in several pieces
            if not parts:
                return
            if opened.stream.metrics.state_rows:
                parts = opened.stream.parts(self._frame_plan.key_groups) + parts
        if parts:
            stream = gathered_stream(self._frame_plan, [part for _, part in parts])
        else:
            stream = opened.stream
            self._timers.begin(stream)
        timer = self._timers.set(stream, timerValues, opened.head.timer, None)
        head = replace(opened.head, earlier=True)  # so all of it is stored
        self._states.store(share, Opened(stream, stream.metrics, head), stream.metrics, timer)
        _LOG.info("share %d: begins with %d rows of history", share, stream.metrics.state_rows)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[Any, ...],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        if self._clocks is not None:
            self._clocks.hear([], timerValues)
        if self._timers.nothing_due(timerValues):
            if self._clocks is not None:  # time has gone on all the same
                kept = 0, self._clocks.watermark(timerValues)
                told = self._timers.told(timerValues)
                yield from self._frames([], count(fw.Metrics(), fw.Metrics(), kept=kept, work=told))
            return
        share = number_of(key[0])
        visit = Visit(self._frame_plan, self._open(share))
        visit.set_clock(self._timers, timerValues)
        visit.advance(self._timers, timerValues)
        expired = expiredTimerInfo.getExpiryTimeInMs()
        visit.store(self._states, share, self._timers, timerValues, expired)
        yield from self._frames(visit.results, visit.counters())

    def _open(self, share: int) -> Opened:
        """Opens a share. Raises StateError if it is not alone on its partition, but should be.

        Then the job's session has another number of partitions than the state. Nothing else tells a task of that.
        """
        if self._alone and self._only not in (None, share):
            raise StateError(
                f"spark.sql.shuffle.partitions: shares {self._only} and {share} are on one partition, so the session "
                f"of this job has more partitions than the state; set it to what it was when the query first started, "
                f"and leave it so while the query runs: with Spark Connect and foreachBatch in the client's session"
            )
        self._only = share
        return self._states.open(share)

    def _frames(
        self, results: list[fw.Result], counters: Mapping[str, int], bad_blobs: Iterable[bytes] = ()
    ) -> Iterator[pd.DataFrame]:
        if self._rows is not None:
            return row_frames(self._rows, results, counters)
        return result_frames(self._blobs(results, bad_blobs), counters)

    def _blobs(self, results: Iterable[fw.Result], bad_blobs: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yields all results as blobs with their kinds, then the bad rows as they came."""
        tables: dict[int, list[pa.Table]] = {}
        for result in results:
            for kind, table in result_tables(result):
                tables.setdefault(kind, []).append(table)
        for kind, found in tables.items():
            for piece in pieces(pa.concat_tables(found)):
                whole = piece.nbytes <= self._large
                self._large -= piece.nbytes if whole else 0
                for cut in cuts(piece, None if whole else BLOB_BYTES, (0, piece.num_rows)):
                    yield kind, encode(cut).to_pybytes()
        for blob in bad_blobs:
            yield ResultKind.BAD, blob

    def _take_pieces_of(self, group: int) -> None:
        """Turns to a share. Parts of history of the one before must have come whole: Spark hands over key by key."""
        if group != self._pieced:
            self._pieces.check_whole()
            self._pieces, self._pieced = Pieces(), group

    def close(self) -> None:
        self._pieces.check_whole()


class Visit:
    """One turn of one share: its stream, what the stream gave back (``results``), and what is to be counted."""

    def __init__(self, frame_plan: FramePlan, opened: Opened) -> None:
        self._frame_plan = frame_plan
        self._opened = opened
        self._stream = opened.stream
        self._after = opened.before
        self._stored = Stored(0, 0)
        self._told: dict[str, int] = {}
        self._dropped = 0  # late rows that the stream hands out, of an input whose late rows nobody wants
        self.results: list[fw.Result] = []

    def set_clock(self, timers: ShareTimers, values: TimerValues) -> None:
        """Sets the stream's clock, and fires what is due by it."""
        self.results += timers.set_clock(self._stream, values)

    def advance(self, timers: ShareTimers, values: TimerValues) -> None:
        """Fires what is due by the watermark."""
        self.results += timers.advance(self._stream, values)

    def feed(self, packets: Sequence[Packet]) -> None:
        """Gives the stream what all packets hold in one call: they are one micro-batch."""
        partials = partials_in(packets, self._frame_plan)
        if partials:
            self.results.append(self._stream.merge(partials))
        else:
            table = rows_in(packets, self._frame_plan.plan.input_schema)
            self.results.append(self._without_unwanted(self._stream.process(table)))

    def _without_unwanted(self, result: fw.Result) -> fw.Result:
        """Takes out and counts the late rows of inputs of a join that hand out none."""
        wanted, late = self._frame_plan.late_inputs, result.late
        if wanted is None or not late.num_rows:
            return result
        kept = late.filter(pc.is_in(late[SIDE], pa.array(wanted, pa.int8())))
        self._dropped += late.num_rows - kept.num_rows
        return replace(result, late=kept)

    def store(
        self, states: States, share: int, timers: ShareTimers, values: TimerValues, expired: int | None = None
    ) -> None:
        """Stores the stream and sees to its timer. expired: the timer that led here; Spark removes that one itself."""
        self._told = timers.told(values)
        timer = timers.set(self._stream, values, self._opened.head.timer, expired)
        self._after = self._stream.metrics
        self._stored = states.store(share, self._opened, self._after, timer)

    def counters(self, bad_rows: int = 0) -> dict[str, int]:
        """Returns what the visit has counted, by the names in ``COUNTERS``."""
        opened, stored = self._opened, self._stored
        work = {"load_ms": opened.load_ms, "write_ms": stored.ms}
        work |= {"log_deltas": stored.deltas, "log_bytes": stored.log_bytes}
        work |= {"live_bytes": stored.live, "spilled_bytes": stored.spilled}
        if opened.how != "new":
            work[f"streams_{opened.how}"] = 1
        if opened.how == "caught_up":
            work |= {"deltas_caught_up": opened.deltas, "copies_hit": opened.copies}
        elif opened.how == "loaded":
            work |= {"deltas_loaded": opened.deltas, "copies_hit": opened.copies, f"loaded_{opened.why}": 1}
        kept = stored.written, self._stream.watermark
        found = count(opened.before, self._after, bad=bad_rows, kept=kept, work=work | self._told)
        found["late"] -= self._dropped
        found["dropped"] += self._dropped
        return found


def _newest(packets: Iterable[Packet]) -> dict[str, int]:
    """Returns the newest time of each input that had good rows, as the tasks have told it to the query's record."""
    found: dict[str, int] = {}
    for packet in packets:
        if packet.rows > 0:
            name = INPUT_TIMES[packet.seq]
            found[name] = max(found.get(name, 0), packet.rows)
    return found


def _packets(frames: Iterable[pd.DataFrame]) -> Iterator[Packet]:
    names = ("mapper", "seq", "kind", "rows", "blob")
    for frame in frames:
        yield from map(Packet, *(frame[name].tolist() for name in names))
