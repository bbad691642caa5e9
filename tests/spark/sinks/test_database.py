"""to_database: the newest results of a stream in SQLite, exact however often a batch runs."""

import sqlite3
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.spark_events import START_MS
from tests.support.spark_streams import Source, start

SPEC = (
    fw.key_by("k", "part")
    .event_time("ts")
    .window(fw.EventTimeSessionWindows.with_gap("20 s"))
    .allowed_lateness("1 hour")
    .with_changelog()
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
SCHEMA = pa.schema([("k", pa.int64()), ("part", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("v", pa.int64())])


def batch(number: int) -> pa.Table:
    """Elements behind those of the batch before by half, so that sessions that have fired merge; some keys are null."""
    places = [(37 * i + 11 * number) % 101 for i in range(60)]
    times = [START_MS * 1_000 + 1_000_000 * (100 * number - 60 * (i % 2) + 3 * at) for i, at in enumerate(places)]
    keys = [[1, 2, None][at % 3] for at in places]
    parts = ["a" if at % 4 else None for at in places]
    return pa.table([keys, parts, times, places], schema=SCHEMA)


def create(path: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table results (k, part, window_start, window_end, n, total)")


def rows_in(path: str) -> list[tuple]:
    with sqlite3.connect(path) as database:
        rows = database.execute("select * from results").fetchall()
    times = [(datetime.fromisoformat(row[2]).astimezone(UTC), datetime.fromisoformat(row[3]).astimezone(UTC))
             for row in rows]  # fmt: skip
    return sorted([(*row[:2], *time, *row[4:]) for row, time in zip(rows, times, strict=True)], key=str)


def test_the_table_holds_the_final_results(spark, tmp_path):
    path = str(tmp_path / "results.db")
    create(path)
    sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", SPEC)
    told = []

    def twice(frame, number):
        frame.persist()
        sink(frame, number)
        before = rows_in(path)
        sink(frame, number)
        assert rows_in(path) == before
        told.extend(row.change for row in frame.select("change").collect())
        frame.unpersist()

    source = Source(tmp_path, SCHEMA)
    tables = [batch(number) for number in range(3)]
    end = pa.table([[9], ["end"], [(START_MS + 7_200_000) * 1_000], [0]], schema=SCHEMA)
    source.put(*tables, end)
    frame = spark_glue.apply(SPEC, source.frame(spark), watermark="1 s", key_groups=4)
    start(frame, tmp_path, twice, available_now=True).awaitTermination()
    expected = SPEC.run(pa.concat_tables(tables)).main.drop_columns(["change"]).to_pylist()
    assert rows_in(path) == sorted([tuple(row.values()) for row in expected], key=str)
    assert {"insert", "update", "delete"} == set(told)


def test_a_failed_batch_leaves_the_table_as_it_was(spark, tmp_path):
    path = str(tmp_path / "results.db")
    create(path)
    frame = spark_glue.apply(SPEC, spark.createDataFrame(batch(0)), key_groups=2)
    sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", SPEC)
    sink(frame, 0)
    before = rows_in(path)
    with pytest.raises(sqlite3.OperationalError):
        sink(frame.withColumnRenamed("total", "sum"), 1)
    assert rows_in(path) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("shop.db", "results", SPEC), "connect must be a function that opens a connection, got 'shop.db'"),
        ((sqlite3.connect, "", SPEC), "table must be a name, got ''"),
        ((sqlite3.connect, "results", "spec"), "spec must be a WindowSpec, got str"),
        ((sqlite3.connect, "results", fw.key_by("k")), "one result for each window"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, said):
    with pytest.raises(SpecError, match=r"to_database: ") as caught:
        spark_glue.to_database(*arguments)
    assert said in str(caught.value)


def test_what_is_no_single_result_is_refused(spark):
    late = SPEC.side_output_late_data()
    sink = spark_glue.to_database(lambda: sqlite3.connect(":memory:"), "results", late)
    with pytest.raises(SpecError, match="late rows as well"):
        sink(spark_glue.apply(late, spark.createDataFrame(batch(0)), key_groups=2), 0)
    with pytest.raises(SpecError, match=r"chain: the spec has with_changelog\(\)"):
        spark_glue.apply(SPEC.allowed_lateness(0), spark.createDataFrame(batch(0)), chain=True)
