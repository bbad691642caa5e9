"""The flights, and random events, through every way there is: all give the same windows."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from spark_glue.apps.flights import load_flights
from tests.support import naive
from tests.support.spark_events import events
from tests.support.spark_streams import Recorder, Source, micro_batches, part, parts, replay, rows_of, run_stream, start
from tests.support.variants import variants

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Case:
    """One window over one stream, in fastwin's words, in the naive model's, and in Spark's own."""

    windows: fw.WindowAssigner
    model: object
    native: object


CASES = {
    "tumbling": Case(
        fw.TumblingEventTimeWindows.of("1 hour"), naive.Tumbling(HOUR_MS), lambda time: F.window(time, "1 hour")
    ),
    "sliding": Case(
        fw.SlidingEventTimeWindows.of("24 hours", "15 minutes"),
        naive.Sliding(24 * HOUR_MS, HOUR_MS // 4),
        lambda time: F.window(time, "24 hours", "15 minutes"),
    ),
    "sessions": Case(
        fw.EventTimeSessionWindows.with_gap("6 hours"),
        naive.Sessions(6 * HOUR_MS),
        lambda time: F.session_window(time, "6 hours"),
    ),
}


@dataclass(frozen=True)
class Stream:
    """A table in its order of arrival, cut into batches."""

    table: pa.Table
    key: str
    time: str
    value: str
    batches: int

    def parts(self) -> list[pa.Table]:
        rows = self.table.num_rows
        edges = [rows * i // self.batches for i in range(self.batches + 1)]
        return [self.table.slice(a, b - a) for a, b in zip(edges, edges[1:], strict=False)]

    def spec(self, case: Case) -> fw.WindowSpec:
        keyed = fw.key_by(self.key).event_time(self.time).window(case.windows).bad_rows("drop")
        return keyed.aggregate(n=fw.Count(), total=fw.Sum(self.value), mean=fw.Mean(self.value))

    def rows(self, table: pa.Table) -> list[naive.Row]:
        times = table[self.time].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
        columns = zip(table[self.key].to_pylist(), times, table[self.value].to_pylist(), strict=True)
        return [
            naive.Row(i, key, None if us is None else us // 1000, (value,))
            for i, (key, us, value) in enumerate(columns)
        ]


@pytest.fixture(scope="module")
def january() -> pa.Table:
    table = load_flights().select(["origin", "tailnum", "departed", "dep_delay"])
    table = table.set_column(2, "departed", table["departed"].cast(pa.timestamp("us", tz="UTC")))
    return table.slice(0, 27_004)


def stream_of(kind: str, name: str, january: pa.Table) -> Stream:
    if kind == "flights":
        return Stream(january, "tailnum" if name == "sessions" else "origin", "departed", "dep_delay", 5)
    table = events(7, 3_000, keys="string", span_ms=20 * 24 * HOUR_MS, null_times=0.01)
    whole_ms = table["ts"].cast(pa.timestamp("ms", tz="UTC"), safe=False)  # Spark's sessions have microseconds
    table = table.set_column(table.column_names.index("ts"), "ts", whole_ms.cast(pa.timestamp("us", tz="UTC")))
    return Stream(table.sort_by("ts"), "k", "ts", "v", 4)


def counted(rows: list[tuple]) -> Counter:
    """Result rows as a multiset; means compared to 9 digits, since the order of a float sum is not ours to say."""
    return Counter((*row[:-1], None if row[-1] is None else float(f"{row[-1]:.9g}")) for row in rows)


def counted_table(table: pa.Table) -> Counter:
    return counted(list(rows_of(table).elements()))


def counted_model(emissions: list[naive.Emission]) -> Counter:
    return counted([(e.key, e.start * 1000, e.end * 1000, *e.values) for e in emissions])


AGGREGATES = [("count", None), ("sum", 0), ("mean", 0)]


@pytest.mark.parametrize("kind", variants(["flights", "random"]))
@pytest.mark.parametrize("name", variants(CASES))
def test_all_ways_agree_where_the_watermark_covers_the_disorder(spark, tmp_path, january, name, kind):
    case, stream = CASES[name], stream_of(kind, name, january)
    spec = stream.spec(case)

    run = spec.run(stream.table).main
    expected = counted_table(run)
    assert expected

    model = naive.Model(case.model, AGGREGATES)
    rows = model.batch(stream.rows(stream.table)).emissions + model.advance(2**62).emissions
    assert counted_model(rows) == expected

    rng = np.random.default_rng(1)
    opened = spec.open(watermark="36 hours")
    fed, at = [], 0
    while at < stream.table.num_rows:
        size = int(rng.integers(1, 4_000))
        fed.append(opened.process(stream.table.slice(at, size)).main)
        at += size
    fed.append(opened.advance_watermark(fw.MAX_TIMESTAMP).main)
    assert opened.metrics.num_late_records_dropped == 0
    assert counted_table(pa.concat_tables(fed)) == expected

    folder = tmp_path / "batch"
    folder.mkdir()
    source = Source(folder, stream.table.schema)
    source.put(*stream.parts())
    batch = spark_glue.apply(spec, spark.read.parquet(str(source.folder)))
    assert counted_table(batch.toArrow()) == expected

    folder = tmp_path / "stream"
    folder.mkdir()
    batches = run_stream(spark, spec, stream.parts(), folder, watermark="36 hours")
    assert sum(b.counters["dropped"] for b in batches) == 0
    streamed = counted_table(parts(batches, "main"))
    watermark_us = max(b.watermark_ms or 0 for b in batches) * 1000
    fired = Counter({row: n for row, n in expected.items() if row[2] - 1000 <= watermark_us})
    assert streamed == fired and len(fired) < len(expected)

    folder = tmp_path / "native"
    folder.mkdir()
    assert counted_table(native_stream(spark, stream, case, folder)) == streamed


def native_stream(spark, stream: Stream, case: Case, folder) -> pa.Table:
    """What Spark's own windows give in append mode, in the same columns."""
    source = Source(folder, stream.table.schema)
    source.put(*stream.parts())
    frame = source.frame(spark).where(F.col(stream.time).isNotNull()).withWatermark(stream.time, "36 hours")
    grouped = frame.groupBy(F.col(stream.key), case.native(stream.time).alias("w")).agg(
        F.count("*").alias("n"), F.sum(stream.value).alias("total"), F.avg(stream.value).alias("mean")
    )
    recorder = Recorder()
    query = start(
        grouped.select(stream.key, "w.start", "w.end", "n", "total", "mean"), folder, recorder, available_now=True
    )
    query.awaitTermination()
    micro_batches(query, recorder)
    return pa.concat_tables(recorder.tables.values())


@pytest.mark.parametrize("lateness", variants(["0 s", "2 hours"], "2 hours"))
@pytest.mark.parametrize("name", variants(CASES, "sessions"))
def test_late_rows_are_those_of_the_model_and_of_a_stream_in_process(spark, tmp_path, january, name, lateness):
    stream = stream_of("flights", name, january.slice(0, 12_000))
    case = CASES[name]
    spec = stream.spec(case).allowed_lateness(lateness).side_output_late_data()
    if name == "sliding":  # else hardly a row is late for all its windows
        spec = spec.window(fw.SlidingEventTimeWindows.of("2 hours", "30 minutes"))
        case = Case(spec.assigner, naive.Sliding(2 * HOUR_MS, HOUR_MS // 2), None)
    tables = stream.parts()
    batches = run_stream(spark, spec, tables, tmp_path, watermark="10 minutes")

    replayed = list(replay(spec, tables, batches))
    model = naive.Model(case.model, AGGREGATES, lateness=spec.lateness_ms, late_output=True, coalesce=True)
    left = iter(tables)
    late = 0
    for batch, again in zip(batches, replayed, strict=True):
        emissions = model.advance(-(2**63) if batch.watermark_ms is None else batch.watermark_ms).emissions
        refused: list[int] = []
        if batch.inputs:
            table = next(left)
            fed = model.batch(stream.rows(table))
            emissions += fed.emissions
            refused = fed.late
            assert rows_of(part(batch.rows, "late")) == rows_of(table.take(pa.array(refused, pa.int64())))
        else:
            assert part(batch.rows, "late").num_rows == 0
        main = counted_table(part(batch.rows, "main"))
        assert main == counted_table(again.main) == counted_model(emissions)
        assert rows_of(part(batch.rows, "late")) == rows_of(again.late)
        assert batch.counters["late"] == len(refused)
        late += len(refused)
    assert late > 0 or name == "sessions"


@pytest.mark.long
def test_the_year_through_batch_frames(spark, tmp_path):
    table = load_flights().select(["origin", "tailnum", "departed", "dep_delay"])
    assert table.num_rows == 336_776
    assert table["departed"].null_count == 8_255
    assert table["tailnum"].null_count == 2_512
    table = table.set_column(2, "departed", table["departed"].cast(pa.timestamp("us", tz="UTC")))
    source = Source(tmp_path, table.schema)
    source.put(table)
    frame = spark.read.parquet(str(source.folder))
    for name, case in CASES.items():
        stream = Stream(table, "tailnum" if name == "sessions" else "origin", "departed", "dep_delay", 1)
        spec = stream.spec(case)
        ours = spec.run(table).main
        counted_rows = counted_table(ours)
        assert counted_table(spark_glue.apply(spec, frame).toArrow()) == counted_rows
        grouped = frame.where("departed is not null").groupBy(F.col(stream.key), case.native("departed").alias("w"))
        native = grouped.agg(
            F.count("*").alias("n"), F.sum("dep_delay").alias("total"), F.avg("dep_delay").alias("mean")
        )
        native = native.select(stream.key, "w.start", "w.end", "n", "total", "mean").toArrow()
        assert counted_table(native) == counted_rows, name
        if name == "tumbling":
            assert pc.sum(ours["n"]).as_py() == 336_776 - 8_255
