"""Quiet inputs on Spark: one of two, all of them, and through a restart; each micro-batch as this process has it."""

import json
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.run.inputclocks import InputClocks
from tests.support.spark_events import START_MS
from tests.support.spark_streams import Recorder, Source, batch_time_ms, part, start

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
IDLE_MS = 1_500
DELAYS = (1_000, 2_000)


def side(*seconds: float) -> pa.Table:
    return pa.table({"k": [1] * len(seconds), "ts": [int((START_MS + 1_000 * at) * 1_000) for at in seconds]}, SCHEMA)


def join() -> fw.JoinSpec:
    one = fw.key_by("k").event_time("ts").bad_rows("drop").side_output_late_data()
    return fw.window_join(one, one, fw.TumblingEventTimeWindows.of("10 s"), "full")


class Run:
    """A join that runs on Spark: what came out of each micro-batch, and what it has read."""

    def __init__(self, spark, folder) -> None:
        self.spark, self.folder = spark, folder
        self.sources = []
        for name in ("left", "right"):
            (folder / name).mkdir()
            self.sources.append(Source(folder / name, SCHEMA))
        self.recorder = Recorder()
        self.holders: dict[int, int | None] = {}  # by micro-batch, where the query has told it

    def until(self, done, put=()) -> None:
        """Runs until ``done`` holds of what came out. put: inputs, and tables that each gets, one after the other."""
        frames = tuple(source.frame(self.spark) for source in self.sources)
        frame = spark_glue.apply(
            join(), frames, watermark=tuple(f"{delay} ms" for delay in DELAYS), key_groups=4, idle=f"{IDLE_MS} ms"
        )
        query = start(frame, self.folder, self.recorder)
        try:
            for number, table in put:
                read = self.read(max(list(self.recorder.tables), default=-1))[number]
                self.sources[number].put(table)
                self._await(
                    query, lambda n=number, r=read: self.read(max(list(self.recorder.tables), default=-1))[n] > r
                )
            self._await(query, lambda: done(dict(self.recorder.tables)))
        finally:
            query.stop()
        told = [one for progress in query.recentProgress for one in spark_glue.batch_metrics(progress)]
        self.holders |= {one.batch_id: one.held_by for one in told}

    @staticmethod
    def _await(query, done) -> None:
        end = time.monotonic() + 240
        while not done():
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, "it does not come to an end"
            time.sleep(0.1)

    def read(self, batch: int) -> list[int]:
        """Returns how many files of each input have been read by the end of a micro-batch, less one."""
        path = self.folder / "checkpoint" / "offsets" / str(batch)
        if not path.exists():
            return [-1, -1]
        lines = path.read_text().splitlines()[2:]
        return [-1 if line == "-" else json.loads(line)["logOffset"] for line in lines]


def fired(tables) -> int:
    return sum(part(rows, "main").num_rows for rows in tables.values())


def test_one_quiet_input_then_all_of_them_through_a_restart(spark, tmp_path):
    run = Run(spark, tmp_path)
    told = [(0, side(1, 5)), (1, side(3)), (0, side(12)), (0, side(31))]
    run.until(lambda tables: fired(tables) >= 3, told)  # [0, 10) and [10, 20), which the right input alone would hold
    found = spark_glue.why(str(tmp_path / "checkpoint"), fw_spec(), key=1)
    assert "had no watermark yet" not in str(found)
    told.append((0, side(100)))  # after a restart Spark waits for the first row
    run.until(lambda tables: fired(tables) >= 5, told[-1:])  # [100, 110) goes with the clock
    told.append((1, side(8)))
    run.until(lambda tables: any(late_rows(rows) for rows in tables.values()), told[-1:])
    # The same in this process, from the times of the micro-batches alone.
    stream, clocks, watermark = join().open(schemas=(SCHEMA, SCHEMA)), None, fw.MIN_TIMESTAMP
    files = [[SCHEMA.empty_table()], [SCHEMA.empty_table()]]
    for number, table in told:
        files[number].append(table)
    before, holders = [-1, -1], set()
    for batch, rows in sorted(run.recorder.tables.items()):
        now, after = batch_time_ms(tmp_path, batch), run.read(batch)
        results, newest = [stream.advance_watermark(watermark)], [fw.MIN_TIMESTAMP] * 2
        came = [
            pa.concat_tables([SCHEMA.empty_table(), *mine[a + 1 : b + 1]])
            for mine, a, b in zip(files, before, after, strict=True)
        ]
        before = after
        if any(table.num_rows for table in came):
            results.append(stream.process(*came))
            clocks = clocks or InputClocks.begin(2, now)
            newest = [
                pc.max(table["ts"].cast(pa.int64())).as_py() // 1_000 if table.num_rows else fw.MIN_TIMESTAMP
                for table in came
            ]
        assert part(rows, "main").num_rows == sum(result.main.num_rows for result in results), batch
        assert late_rows(rows) == sum(side.num_rows for result in results for side in result.side.values()), batch
        if clocks is not None:
            clocks = clocks.hear(newest, now)
            if batch in run.holders:
                holder = clocks.holder(DELAYS, now, IDLE_MS)
                assert run.holders[batch] == holder, batch
                holders.add(holder)
            watermark = max(watermark, clocks.watermark(DELAYS, now, IDLE_MS))
    assert holders == {0, 1, None}  # it is told who holds time back: each of them did, and in the end none


def late_rows(rows: pa.Table) -> int:
    return sum(part(rows, name).num_rows for name in ("side_late_left", "side_late_right"))


def fw_spec() -> fw.WindowSpec:
    return join().bind(SCHEMA, SCHEMA).spec


def test_arguments(spark, tmp_path):
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).bad_rows("drop")
    spec = spec.aggregate(n=fw.Count())
    source = Source(tmp_path, SCHEMA)
    frame = source.frame(spark)
    for idle in (0, "-1 s"):
        with pytest.raises(SpecError, match="idle"):
            spark_glue.apply(spec, frame, watermark="1 s", idle=idle)
    with pytest.raises(SpecError, match=r"idle: .* needs a watermark="), pytest.warns(UserWarning, match="watermark"):
        spark_glue.apply(spec, frame.withWatermark("ts", "1 second"), idle="1 s")
    with pytest.raises(SpecError, match="chain"):
        spark_glue.apply(spec, frame, watermark="1 s", idle="1 s", chain=True)
    assert spark_glue.apply(spec, spark.createDataFrame(side(1)), idle="1 s").count() == 1
