"""to_database with PostgreSQL and its two drivers: exact however often a micro-batch runs."""

import datetime as dt
import decimal
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
import spark_glue
from tests.support.corrected_sessions import END, SCHEMA, SPEC, batch
from tests.support.postgres_server import postgres_server
from tests.support.redis_server import REQUIRED
from tests.support.spark_streams import Source, start
from tests.support.variants import variants

HOUR_US = 3_600_000_000
TWICE_US = 1_698_537_600_000_000  # 2023-10-29 00:00 UTC: the hours from here and from 01:00 are 02:00 by Berlin's clock


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    with postgres_server() as folder:
        yield folder


@pytest.fixture(params=variants(["psycopg", "pg8000"], "psycopg"))
def connect(request: pytest.FixtureRequest, server: Path) -> Callable[[], Any]:
    """Opens a connection by one of the drivers, as a user would."""
    driver = import_module(request.param) if os.environ.get(REQUIRED) else pytest.importorskip(request.param)
    if request.param == "psycopg":
        return lambda: driver.connect(host=str(server), user="postgres")
    return lambda: driver.connect(user="postgres", unix_sock=f"{server}/.s.PGSQL.5432")


def execute(connect: Callable[[], Any], *statements: str) -> list[tuple]:
    """Runs statements; returns the rows of the last one."""
    connection = connect()
    try:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    finally:
        connection.close()
    return _ordered(rows)


def create(connect: Callable[[], Any], columns: str) -> None:
    execute(connect, "drop table if exists results", f"create table results ({columns})")


def rows_of(table: pa.Table) -> list[tuple]:
    return _ordered(zip(*table.to_pydict().values(), strict=True))


def _ordered(rows: Iterable[Sequence]) -> list[tuple]:
    """Returns rows in an order of their values, in which NaN is equal to NaN."""
    return sorted([tuple("NaN" if value != value else value for value in row) for row in rows], key=str)


class HalfInserted:
    """A cursor that loses its server in the middle of the new rows."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def executemany(self, statement: str, rows: list) -> None:
        inserts = statement.startswith("INSERT")
        self._cursor.executemany(statement, rows[: len(rows) // 2] if inserts else rows)
        if inserts:
            raise ConnectionError("lost")


def test_the_table_holds_the_final_results(spark, tmp_path, connect):
    """Each micro-batch runs three times, the first time up to a failure among its new rows."""
    create(connect, "k bigint, part text, window_start timestamptz, window_end timestamptz, n bigint, total bigint")
    sink = spark_glue.to_database(connect, "results", SPEC)
    told = []

    def failing() -> Any:
        made = connect()
        kind = {"__module__": type(made).__module__, "cursor": lambda self: HalfInserted(made.cursor())}
        kind |= {name: staticmethod(getattr(made, name)) for name in ("commit", "rollback", "close")}
        return type("Connection", (), kind)()

    def often(frame, number):
        frame.persist()
        before = execute(connect, "select * from results")
        if frame.count():
            with pytest.raises(ConnectionError, match="lost"):
                spark_glue.to_database(failing, "results", SPEC)(frame, number)
        assert execute(connect, "select * from results") == before
        sink(frame, number)
        after = execute(connect, "select * from results")
        sink(frame, number)
        assert execute(connect, "select * from results") == after
        told.extend(row.change for row in frame.select("change").collect())
        frame.unpersist()

    source = Source(tmp_path, SCHEMA)
    tables = [batch(number) for number in range(3)]
    source.put(*tables, END)
    frame = spark_glue.apply(SPEC, source.frame(spark), watermark="1 s", key_groups=4)
    start(frame, tmp_path, often, available_now=True).awaitTermination()
    expected = rows_of(SPEC.run(pa.concat_tables(tables)).main.drop_columns(["change"]))
    assert execute(connect, "set time zone 'UTC'", "select * from results") == expected
    assert {"insert", "update", "delete"} == set(told)


KEYS = {
    "text": (pa.string(), "text", ["it's", 'a "b"', "100%", "", None]),
    "flag": (pa.bool_(), "boolean", [True, False, None]),
    "x": (pa.float64(), "double precision", [0.1, float("inf"), float("nan"), None]),
    "day": (pa.date32(), "date", [dt.date(2024, 2, 29), dt.date(1969, 1, 1), None]),
    "price": (pa.decimal128(9, 2), "numeric", [decimal.Decimal("-1.10"), decimal.Decimal("7.00"), None]),
    "raw": (pa.binary(), "bytea", [b"\x00\xff", b"", None]),
    "at": (pa.timestamp("us", tz="UTC"), "timestamptz", [dt.datetime(2023, 10, 29, hour, 30, tzinfo=dt.UTC) for hour in (0, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_each_type_and_odd_names(spark, connect, key):
    kind, told, values = KEYS[key]
    create(
        connect,
        f'{key} {told}, window_start timestamptz, window_end timestamptz, "n%" bigint, "user" text[], '
        '"say ""x""" double precision, half double precision, sketch bytea',
    )
    times = pa.array([TWICE_US + i * HOUR_US // 2 for i in range(4) for _ in values], pa.timestamp("us", tz="UTC"))
    table = pa.table({key: pa.array(values * 4, kind), "ts": times, "s": ["a", "it's 100%"] * (2 * len(values))})
    table = table.append_column("v", pa.array([None if i % 3 else float(i) for i in range(len(times))], pa.float64()))
    aggregates = {
        "n%": fw.Count(), "user": fw.CollectSet("s"), 'say "x"': fw.Max("v"), "half": fw.Median("v"),
        "sketch": fw.HyperLogLog("s", output="sketch"),
    }  # fmt: skip
    spec = fw.key_by(key).event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(**aggregates)
    sink = spark_glue.to_database(connect, "results", spec)
    expected = spec.run(table).main
    assert expected.num_rows == 2 * len(values)
    for _ in range(2):
        sink(spark_glue.apply(spec, spark.createDataFrame(table), key_groups=3), 0)
        assert execute(connect, "set time zone 'UTC'", "select * from results") == rows_of(expected)
    some = spec.run(table.filter(pc.less(table["ts"], pa.scalar(TWICE_US + HOUR_US, times.type)))).main
    assert some.num_rows == len(values)  # the hour by Berlin's clock that comes twice has rows of its own each time


def test_a_nan_is_one_key_however_often_it_fires(spark, connect):
    create(connect, "x double precision, window_start timestamptz, window_end timestamptz, n bigint")
    spec = fw.key_by("x").event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000)).aggregate(n=fw.Count())
    found = spec.run(pa.table({"x": [float("nan"), None, 1.0], "ts": [1, 2, 3]})).main
    fired = pa.concat_tables([found, found.set_column(3, "n", pa.array([7, 8, 9]))])
    sink = spark_glue.to_database(connect, "results", spec)
    for _ in range(2):
        sink(spark.createDataFrame(fired).coalesce(1), 0)
        assert execute(connect, "select x, n from results") == _ordered([(float("nan"), 7), (None, 8), (1.0, 9)])


def test_text_with_nul_ends_no_query(connect, caplog):
    """PostgreSQL refuses it: it is mended, also within lists, and rows of such a key are left out."""
    create(connect, "k text, window_start timestamptz, window_end timestamptz, m text, s text[]")
    window = fw.TumblingEventTimeWindows.of("1 hour")
    spec = fw.key_by("k").event_time("ts").window(window).aggregate(m=fw.Max("v"), s=fw.CollectSet("v"))
    table = pa.table({"k": ["a", "b", "a\0", None], "ts": [1] * 4, "v": ["x\0y", "z", "z", None]})
    sink = spark_glue.to_database(connect, "results", spec)
    for number in range(2):
        sink(SimpleNamespace(schema=[], toArrow=lambda: spec.run(table).main), number)
        assert execute(connect, "select k, m, s from results") == _ordered(
            [("a", "x\ufffdy", ["x\ufffdy"]), ("b", "z", ["z"]), (None, None, [])]
        )
    has = "has text that is no UTF-8, or has U+0000; in results,"
    assert [text for text in caplog.messages if text.startswith("to_database: column")] == [
        f"to_database: column 'k' {has} 1 rows with such a key are left out",
        f"to_database: column 'm' {has} U+FFFD stands for such bytes",
        f"to_database: column 's' {has} U+FFFD stands for such bytes",
    ]
