"""Quiet inputs on Spark: one of two, all of them, and through a restart; each micro-batch as this process has it."""

import time

import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.quiet_inputs import SCHEMA, frame_of, join, late_rows, read_files, replayed, side
from tests.support.spark_streams import Recorder, Source, assert_same_rows, part, start


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
        frame = frame_of(self.spark, self.sources)
        query = start(frame, self.folder, self.recorder)
        try:
            for number, table in put:
                read = self.read()[number]
                self.sources[number].put(table)
                self._await(query, lambda n=number, r=read: self.read()[n] > r)
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

    def read(self) -> list[int]:
        """Returns how many files of each input have been read, less one."""
        return read_files(self.folder, max(list(self.recorder.tables), default=-1))


def fired(tables) -> int:
    return sum(part(rows, "main").num_rows for rows in tables.values())


@pytest.mark.long
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
    files = [[SCHEMA.empty_table()], [SCHEMA.empty_table()]]
    for number, table in told:
        files[number].append(table)
    holders = set()
    for batch, expected in replayed(tmp_path, sorted(run.recorder.tables), files):
        rows = run.recorder.tables[batch]
        assert_same_rows(part(rows, "main"), expected.main)
        assert late_rows(rows) == expected.late, batch
        if expected.heard and batch in run.holders:
            assert run.holders[batch] == expected.holder, batch
            holders.add(expected.holder)
    assert holders == {0, 1, None}  # it is told who holds time back: each of them did, and in the end none


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
