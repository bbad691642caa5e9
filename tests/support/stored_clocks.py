"""Stored checkpoints of queries whose windows go by the clock, and what such a query gives by the times in its checkpoint.

They read the same inputs as those of ``stored_checkpoints``, a file a micro-batch. What a spec says may not change.
``python -m tests.support.stored_clocks`` stores what is missing with heads of the format that is written now.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import fastwin as fw
import spark_glue
from fastwin.run.inputclocks import InputClocks
from tests.support.spark_streams import Recorder, Source, batch_time_ms, start
from tests.support.stored_checkpoints import INPUTS, READ, archive_of, pack, partitions
from tests.support.stored_streams import SCHEMA

__all__ = ["FORMATS", "QUERIES", "Query", "Step"]

FORMATS = (6,)
"""Of the heads in these checkpoints."""

_IDLE_MS, _DELAY_MS = 20_000, 12_000  # idle= may change: it was a minute when the checkpoint of format 6 was stored
_QUIET_FROM = pa.scalar(1_700_000_050_000_000, SCHEMA.field("ts").type)  # the right input has no rows from here on
_BY_TEXT = fw.key_by("k").event_time("ts").bad_rows("drop")
JOIN = fw.window_join(_BY_TEXT, _BY_TEXT, fw.TumblingEventTimeWindows.of("30 s"), "full")
ARRIVAL = (
    fw.key_by("k")
    .processing_time()
    .window(fw.TumblingProcessingTimeWindows.of("5 s"))
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)


@dataclass(frozen=True)
class Step:
    """What this process gives for a micro-batch. read: files so far; open: rows in windows that have not fired."""

    main: pa.Table
    read: int
    open: int


class _Quiet:
    """A join whose right input falls quiet: it holds time back until it is idle."""

    def __init__(self) -> None:
        self._stream = JOIN.open(schemas=(SCHEMA, SCHEMA))
        self._clocks: InputClocks | None = None
        self._watermark = fw.MIN_TIMESTAMP
        self._seen = 0

    @staticmethod
    def frame(events: DataFrame) -> DataFrame:
        quiet = events.where(events["ts"] < _QUIET_FROM.as_py())
        delays = (f"{_DELAY_MS} ms",) * 2
        return spark_glue.apply(JOIN, (events, quiet), watermark=delays, key_groups=8, idle=f"{_IDLE_MS} ms")

    def step(self, rows: pa.Table, now: int) -> pa.Table:
        found = [self._stream.advance_watermark(self._watermark).main]
        inputs = rows, rows.filter(pc.less(rows["ts"], _QUIET_FROM))
        if rows.num_rows:
            found.append(self._stream.process(*inputs).main)
            if self._clocks is None:
                self._clocks, self._seen = InputClocks.begin(2, now), now
        if self._clocks is not None:
            newest = [pc.max(one["ts"]).value // 1_000 if one.num_rows else fw.MIN_TIMESTAMP for one in inputs]
            self._clocks, self._seen = self._clocks.unseen(self._seen, now, _IDLE_MS).hear(newest, now), now
            coming = self._clocks.watermark((_DELAY_MS, _DELAY_MS), now, _IDLE_MS)
            self._watermark = max(self._watermark, coming)
        return pa.concat_tables(found)

    @property
    def open(self) -> int:
        return self._stream.metrics.state_rows


class _Arrival:
    """Windows of arrival."""

    def __init__(self) -> None:
        self._stream = ARRIVAL.open(schema=SCHEMA)
        self.open = 0

    @staticmethod
    def frame(events: DataFrame) -> DataFrame:
        return spark_glue.apply(ARRIVAL, events, key_groups=8)

    def step(self, rows: pa.Table, now: int) -> pa.Table:
        found = [self._stream.advance_processing_time(now, before=True).main]
        found += [self._stream.process(rows).main] if rows.num_rows else []
        main = pa.concat_tables(found)
        self.open += rows.num_rows - (pc.sum(main["n"]).as_py() or 0)
        return main


QUERIES: dict[str, type[_Quiet | _Arrival]] = {"idle": _Quiet, "arrival": _Arrival}


@dataclass
class Query:
    """A query below a folder, which has its input and perhaps its checkpoint. tables: what each micro-batch gave."""

    name: str
    folder: Path
    recorder: Recorder = field(default_factory=Recorder)

    @property
    def tables(self) -> dict[int, pa.Table]:
        return self.recorder.tables

    def go_on(self, spark: SparkSession, inputs: list[Path], done: Callable[[list[Step]], bool]) -> None:
        """Runs over further inputs until ``done`` holds of all its micro-batches, those before its start among them."""
        source = Source(self.folder, SCHEMA)
        source.put(*map(pq.read_table, inputs))
        with partitions(spark, 4):
            query = start(QUERIES[self.name].frame(source.frame(spark)), self.folder, self.recorder)
            try:
                end = time.monotonic() + 40
                while not self.tables or not done(list(self.replayed(max(self.tables)))):
                    assert query.exception() is None, query.exception()
                    assert time.monotonic() < end, "it does not come to an end"
                    time.sleep(0.1)
            finally:
                query.stop()

    def replayed(self, last: int) -> Iterator[Step]:
        """Yields what this process gives for each micro-batch up to one, by the times in the checkpoint."""
        model, read = QUERIES[self.name](), 0
        for batch in range(last + 1):
            before, read = read, self._read(batch)
            rows = pa.concat_tables([SCHEMA.empty_table(), *map(pq.read_table, INPUTS[before:read])])
            main = model.step(rows, batch_time_ms(self.folder, batch))
            yield Step(main, read, model.open)

    def _read(self, batch: int) -> int:
        lines = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()
        return json.loads(lines[2])["logOffset"] + 1


def _store(version: int) -> None:
    config: dict[str, Any] = {"spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="stored clocks", master="local[2]", config=config)
    try:
        for name in QUERIES:
            archive = archive_of(name, version)
            while not archive.exists():
                with tempfile.TemporaryDirectory() as folder:
                    query = Query(name, Path(folder))
                    query.go_on(spark, INPUTS[:READ], lambda steps: steps[-1].read == READ)
                    if list(query.replayed(max(query.tables)))[-1].open:  # else it was too slow to be stopped
                        pack(Path(folder), archive)
    finally:
        spark.stop()


if __name__ == "__main__":
    from spark_glue.state.log import HEAD_FORMAT
    from tests.support import stored_clocks  # by the name under which the state may name what is in it

    stored_clocks._store(HEAD_FORMAT)
