"""The stateful operator without Spark: tasks over one state, one after the other, as Spark runs them."""

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from spark_glue.plan.outputs import ResultKind
from spark_glue.stages.counters import COUNTERS
from spark_glue.stages.operator import WindowProcessor
from spark_glue.stages.packets import RESULT, PacketKind, decode, encode
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import frame_plan_for

__all__ = ["SCHEMA", "SPEC", "Harness", "clock", "counts", "packet", "packet_row"]

SPEC = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])


class Harness:
    """One task after the other over the same state, with new processors, as Spark does it."""

    def __init__(self, spec: fw.WindowSpec = SPEC, **changes) -> None:
        self.frame_plan = frame_plan_for(SCHEMA.empty_table(), spec, **changes)
        self.handle = FakeHandle()
        self.counters: dict[str, int] = {}

    def batch(self, watermark: int, inputs: dict[int, list[dict]], now: int = 0) -> dict[str, list[tuple]]:
        """Runs a micro-batch: inputs by key group, then the timers. Returns result rows by kind."""
        processor = WindowProcessor(self.frame_plan)
        processor.init(self.handle)
        # A query that waits for no time is told none.
        values = TimerValues(-1, -1) if self.frame_plan.time_mode == "None" else TimerValues(now, watermark)
        limit = now if self.frame_plan.time_mode == "ProcessingTime" else watermark
        out: dict[str, list[tuple]] = {"MAIN": [], "LATE": [], "BAD": []}
        self.counters = dict.fromkeys(COUNTERS, 0)
        for group, rows in inputs.items():
            self.handle.key = group
            self._take(processor.handleInputRows((group,), iter([pd.DataFrame(rows)]), values), out)
        for ms, group in self.handle.expired(limit):
            self.handle.key = group
            self._take(
                processor.handleExpiredTimer(key=(group,), timerValues=values, expiredTimerInfo=ExpiredTimerInfo(ms)),
                out,
            )
            self.handle.timers[group].discard(ms)
        processor.close()
        return out

    def _take(self, frames, out) -> None:
        schemas = {ResultKind.MAIN: self.frame_plan.plan.main_schema, ResultKind.LATE: self.frame_plan.plan.late_schema}
        for frame in frames:
            assert list(frame.columns) == RESULT.names
            pa.RecordBatch.from_pandas(frame, schema=RESULT)
            for counts in frame["counters"].dropna():
                for name, count in zip(COUNTERS, counts.split(","), strict=True):
                    self.counters[name] += int(count)
            for kind, blob in zip(frame["kind"], frame["blob"], strict=True):
                if blob is not None:
                    kind = ResultKind(kind)
                    schema = schemas.get(kind) or self.frame_plan.plan.bad_schema
                    out[kind.name] += [tuple(row.values()) for row in decode(blob, schema).to_pylist()]


def packet(*rows: tuple[int, int], mapper: int = 0, seq: int = 0) -> dict:
    batch = pa.RecordBatch.from_pylist([{"k": k, "ts": ts} for k, ts in rows], schema=SCHEMA)
    blob = encode(batch).to_pybytes()
    return packet_row(mapper=mapper, seq=seq, kind=int(PacketKind.GOOD), rows=len(rows), blob=blob)


def clock(newest: int, number: int = 0) -> dict:
    """Returns the row that tells a share of the newest time of an input."""
    return packet_row(seq=number, kind=int(PacketKind.CLOCK), rows=newest)


def packet_row(**values) -> dict:
    return {"key_group": 0, "mapper": 0, "seq": 0, "kind": 0, "rows": 0, "blob": None, "carrier": None} | values


def counts(rows: list[tuple]) -> list[tuple]:
    return sorted((key, start.timestamp() * 1000, n) for key, start, _, n in rows)
