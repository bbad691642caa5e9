"""The general operator on Spark: batch frames as spec.run, streaming frames as this process, user code included."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, TIME_ZONE, events
from tests.support.spark_streams import (
    Recorder,
    Source,
    assert_replayed,
    assert_same_rows,
    micro_batches,
    part,
    parts,
    run_stream,
    start,
)
from tests.support.spark_windows import BASE, COUNTED, SPECS
from tests.support.variants import variants

ROOT = Path(__file__).resolve().parents[2]


def out_of_order(batches: int, n: int) -> list[pa.Table]:
    return [events(i, n, start_ms=START_MS + i * 100_000, span_ms=250_000) for i in range(batches)]


@pytest.mark.parametrize("case", SPECS | COUNTED)
def test_batch_frames_give_what_run_gives(spark, tmp_path, case):
    spec, table = (SPECS | COUNTED)[case], events(1, 800)
    pq.write_table(table, tmp_path / "t.parquet")  # one task: the order of rows is that of the file
    found = spark_glue.apply(spec, spark.read.parquet(str(tmp_path)), key_groups=3).toArrow()
    expected = spec.run(table)
    assert_same_rows(part(found, "main"), expected.main)
    assert expected.main.num_rows > 50
    for tag, side in expected.side.items():
        assert_same_rows(part(found, f"side_{tag}"), side)
        assert side.num_rows > 0


@pytest.mark.parametrize("case", variants(SPECS, "user-written, with everything", "sessions that merge"))
def test_streams_give_what_this_process_gives(spark, tmp_path, case):
    spec, tables = SPECS[case], out_of_order(4, 200)
    batches = run_stream(spark, spec, tables, tmp_path, watermark="20 s", key_groups=3)
    assert_replayed(spec, tables, batches)
    assert sum(batch.counters["fired"] for batch in batches) == parts(batches, "main").num_rows > 50
    if spec.late_output:
        assert parts(batches, "late").num_rows > 0


def test_restarts_keep_the_users_state(spark, tmp_path):
    spec, tables = SPECS["user-written, with everything"], out_of_order(4, 150)
    source, recorder = Source(tmp_path, tables[0].schema), Recorder()
    batches = []
    for table in tables:
        source.put(table)
        frame = spark_glue.apply(spec, source.frame(spark), watermark="20 s", key_groups=2)
        query = start(frame, tmp_path, recorder, available_now=True)
        query.awaitTermination()
        batches += micro_batches(query, recorder)
    assert_replayed(spec, tables, batches)
    pane = parts(batches, "main")
    assert set(pane["pane_timing"].to_pylist()) == {"EARLY", "ON_TIME", "LATE"}
    assert parts(batches, "side_third").num_rows > 0


@pytest.mark.parametrize("case", COUNTED)
def test_count_windows_need_no_time(spark, tmp_path, case):
    spec, tables = COUNTED[case], [table.drop_columns("ts") for table in out_of_order(3, 100)]
    batches = run_stream(spark, spec, tables, tmp_path, key_groups=2)
    assert_replayed(spec, tables, batches)
    assert [batch.counters["watermark_ms"] for batch in batches] == [None] * 3


def test_python_code_sees_the_frames_columns_only(spark, tmp_path):
    """A naive event time needs a column of our own on its way."""

    class Columns(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield [f"{name}:{type(value).__name__}" for name, value in next(iter(elements))._asdict().items()]

    table = events(1, 50)
    naive = table.set_column(1, "ts", pc.local_timestamp(table["ts"].cast(pa.timestamp("us", tz=TIME_ZONE))))
    spec = BASE.window(fw.TumblingEventTimeWindows.of("1 h")).bad_rows("divert")
    pq.write_table(naive, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path))
    seen = spark_glue.apply(spec.process(Columns(), output="names array<string>"), frame).toArrow()
    assert {column.split(":")[0] for names in seen["names"].to_pylist() for column in names} == {"k", "ts", "v", "x"}
    reduced = spark_glue.apply(spec.reduce(lambda a, b: b), frame)
    assert reduced.columns == ["k", "window_start", "window_end", "ts", "v", "x", "bad"]
    assert reduced.schema["ts"].dataType.typeName() == "timestamp_ntz"
    expected = spec.reduce(lambda a, b: b).run(naive).main
    assert pc.sum(reduced.toArrow()["v"]) == pc.sum(expected["v"])


class Largest(fw.AggregateFunction):
    """The largest value, and how many elements came with others."""

    def create_accumulator(self):
        return [None, 0]

    def add(self, value, accumulator):
        return [value.v if accumulator[0] is None else max(value.v, accumulator[0]), accumulator[1]]

    def add_many(self, values, accumulator):
        known = [v for v in [*values.to_list("v"), accumulator[0]] if v is not None]
        return [max(known, default=None), accumulator[1] + len(values)]

    def get_result(self, accumulator):
        return tuple(accumulator)


class Spread(fw.ProcessWindowFunction):
    """The same of all elements at once."""

    def process(self, key, context, elements):
        values = [v for v in elements.to_list("v") if v is not None]
        yield max(values, default=None), elements.to_numpy("v").size


@pytest.mark.parametrize("case", ["add_many", "elements"])
def test_columns_of_elements_reach_user_code(spark, tmp_path, case):
    windows = BASE.window(fw.TumblingEventTimeWindows.of("1 min"))
    output = "most bigint, n int"
    spec = (
        windows.aggregate(Largest(), output=output) if case == "add_many" else windows.process(Spread(), output=output)
    )
    tables = [table.filter(pc.is_valid(table["v"])) for table in out_of_order(3, 300)]
    batches = run_stream(spark, spec, tables, tmp_path, watermark="20 s", key_groups=2)
    assert_replayed(spec, tables, batches)
    assert pc.max(parts(batches, "main")["n"]).as_py() > 5


SCRIPT = """
import dataclasses, sys
import fastwin as fw
import spark_glue

@dataclasses.dataclass
class Seen:
    values: list

class Collect(fw.AggregateFunction):
    def create_accumulator(self):
        return Seen([])
    def add(self, value, accumulator):
        assert accumulator == Seen(accumulator.values), "the class of the state is another one"
        return Seen([*accumulator.values, value.v])
    def get_result(self, accumulator):
        return sorted(accumulator.values)

spec = (
    fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min"))
    .trigger(fw.CountTrigger.of(2)).aggregate(Collect(), output="vs array<bigint>")
)
spark = spark_glue.session(master="local[2]", config={
    "spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2, "spark.ui.showConsoleProgress": False,
})
spark.sparkContext.setLogLevel("OFF")
folder = sys.argv[1]
frame = spark.readStream.schema("k bigint, ts timestamp, v bigint").option("maxFilesPerTrigger", 1).json(folder + "/in")
frame = spark_glue.apply(spec, frame, watermark="1 s", key_groups=2)
found = []
query = (
    frame.writeStream.trigger(availableNow=True).option("checkpointLocation", folder + "/checkpoint")
    .foreachBatch(lambda rows, batch: found.extend(tuple(r.vs) for r in rows.collect())).start()
)
query.awaitTermination()
print("FOUND", sorted(found))
"""


@pytest.mark.long
def test_classes_of_a_script_travel_and_survive_a_restart(tmp_path):
    """Their instances are in the state: a later process must take them for its own."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "in").mkdir()
    outputs = []
    for run, values in enumerate([[1, 2, 3], [4, 5]]):
        for value in values:
            row = f'{{"k": 1, "ts": "2024-01-01T00:00:0{value}Z", "v": {value}}}'
            file = tmp_path / "in" / f"{run}{value}.json"
            file.write_text(row)
            os.utime(file, (value, value))  # Spark takes the oldest first
        command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        outputs += [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    assert outputs == ["FOUND [(1, 2)]", "FOUND [(1, 2, 3, 4)]"]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
