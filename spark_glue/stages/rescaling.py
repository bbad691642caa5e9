"""Rescaling: one micro-batch that divides the stored state of a stopped query anew, in place of one with rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import TimerValues

import fastwin as fw
from fastwin.run.replica import Replica, open_replica
from fastwin.state.identity import StateSpec
from spark_glue.plan.frameplan import FramePlan, TimeMode
from spark_glue.plan.keygroups import RECORD_ID, ids, number_of
from spark_glue.stages.history import INITIAL, gathered_stream
from spark_glue.stages.shareclocks import ShareClocks
from spark_glue.stages.sharetimers import ShareTimers
from spark_glue.stages.worker import query_id, settle
from spark_glue.state.copies import Shelf
from spark_glue.state.cutparts import STATE, Pieces, cut
from spark_glue.state.live import Live, LiveStreams
from spark_glue.state.log import Head, Identity, StateLog
from spark_glue.state.shares import Opened, States
from spark_glue.state.stored import replica_of, shares_in, types_of

__all__ = ["Divided", "RescalingProcessor", "divided_anew"]


@dataclass(frozen=True)
class Divided:
    """Into what a query's keys are divided: key groups, and shares."""

    key_groups: int
    shares: int


def divided_anew(
    spec: fw.WindowSpec | fw.JoinSpec,
    types: StateSpec,
    heads: dict[int, Any],
    to: Divided,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Makes rows of history.INITIAL out of stored chunks, see ``Checkpoint.pieces``. types: those of all."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    places = ids(to.shares)
    for _, deltas in shares_in(rows, heads):
        if not deltas:
            continue
        stream = replica_of(spec, deltas, "rescale")
        types_of(stream, types, "rescale")
        for pieces in cut(stream.parts(to.key_groups)):
            whose = pa.array([int(places[group % to.shares]) for group in pieces["part_of"].to_pylist()], pa.int32())
            yield pa.RecordBatch.from_arrays([whose, *pieces.columns], schema=INITIAL)


class _NoCopies(Shelf):
    """Takes nothing: the query that goes on is another one, with copies of its own."""

    def put(self, token: str, data: bytes) -> bool:
        return False


class _NoStreams(LiveStreams):
    """Keeps nothing, neither in memory nor in files."""

    def put(self, place: tuple, live: Live) -> None:
        pass


class RescalingProcessor(StatefulProcessor):
    """Visits each share that there was and each that there will be; what a share had goes, and what it gets is stored.

    A row without a part only brings a visit. frame_plan: its start_ms is the query's watermark. before, now: how keys
    were divided, and will be. mode: of the query. clocks: what all shares know of the inputs, where they make their
    watermark themselves (``idle=``).
    """

    def __init__(
        self, frame_plan: FramePlan, mode: TimeMode, before: Divided, now: Divided, clocks: Sequence[int] | None
    ) -> None:
        self._frame_plan = replace(frame_plan, key_groups=now.key_groups)
        self._mode = mode
        self._before, self._now = before, now
        self._told = clocks

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        told = self._told
        self._clocks = None if told is None else ShareClocks(handle, self._frame_plan.delays, 1)
        self._timers = ShareTimers(handle, self._mode, self._clocks, self._frame_plan.start_ms)
        self._log = StateLog(handle, self._identity(self._before))
        self._new_log = self._log.of(self._identity(self._now))
        run = query_id()
        shelf, live = _NoCopies(run), _NoStreams()
        self._states = States(self._frame_plan, self._new_log, self._now.shares, shelf, run, live)

    def _identity(self, divided: Divided) -> Identity:
        plan, zone = self._frame_plan.plan, self._frame_plan.time_zone
        return Identity(plan.fingerprint.hex(), plan.config.state, divided.key_groups, divided.shares, time_zone=zone)

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        if key[0] == RECORD_ID:
            self._new_log.seal()
            return iter(())
        share, parts, pieces = number_of(key[0]), [], Pieces()
        for frame in rows:
            parts += pieces.joined(zip(*(frame[name].tolist() for name in STATE.names), strict=True))
        pieces.check_whole()
        head = self._log.load(share)
        self._timers.forget(head.timer)
        self._log.clear(head)
        if self._clocks is not None:
            self._clocks.begin(self._told if share < self._now.shares else None)
        if share < self._now.shares:
            stream = self._stream_of([part for _, part in sorted(parts)])
            timer = self._timers.set(stream, timerValues, None, None)
            begun = Opened(stream, stream.metrics, Head(earlier=True, share=share))  # so all of it is stored
            self._states.store(share, begun, stream.metrics, timer)
        return iter(())

    def _stream_of(self, parts: list[bytes]) -> Replica:
        """Returns a stream with the state of parts, at the query's watermark: it tells what is over, also where allowed
        lateness gets longer one day, and shares without rows, or that were visited long ago, have not seen it."""
        stream = gathered_stream(self._frame_plan, parts) if parts else open_replica(self._frame_plan.plan)
        due = stream.next_timer()
        if due is None or due > (self._frame_plan.start_ms or 0):  # else the next visit sees to it
            self._timers.begin(stream)
        return stream

    def close(self) -> None:
        pass
