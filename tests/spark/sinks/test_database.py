"""to_database: the newest results of a stream in SQLite, exact however often a batch runs."""

import re
import sqlite3
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import BadRowError, SpecError
from tests.support.corrected_sessions import END, SCHEMA, SPEC, batch
from tests.support.spark_streams import Source, start


def create(path: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table results (k, part, window_start, window_end, n, total)")


def rows_in(path: str) -> list[tuple]:
    with sqlite3.connect(path) as database:
        rows = database.execute("select * from results").fetchall()
    times = [(datetime.fromisoformat(row[2]).astimezone(UTC), datetime.fromisoformat(row[3]).astimezone(UTC))
             for row in rows]  # fmt: skip
    return sorted([(*row[:2], *time, *row[4:]) for row, time in zip(rows, times, strict=True)], key=str)


@pytest.mark.long
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
    source.put(*tables, END)
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
    with sqlite3.connect(path) as database:
        database.execute("create trigger full before insert on results begin select raise(abort, 'it is full'); end")
    with pytest.raises(sqlite3.DatabaseError, match="it is full"):
        sink(frame, 1)
    assert rows_in(path) == before


def test_windows_of_one_place_are_told_apart_by_their_name(spark, tmp_path):
    """A day, and the first day of a week that grows."""
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute('create table results (k, "window", window_start, window_end, "n%", "say ""n""")')
    day, growing = fw.TumblingEventTimeWindows.of("1 day"), fw.CumulativeEventTimeWindows.of("7 days", "1 day")
    named = fw.key_by("k").event_time("ts").windows(day=day, growing=growing)
    spec = named.aggregate(**{"n%": fw.Count(), 'say "n"': fw.Count()})
    table = pa.table([[1, None], [None, None], [0, 1], [5, 6]], schema=SCHEMA)
    sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)
    for _ in range(2):
        sink(spark_glue.apply(spec, spark.createDataFrame(table), key_groups=2), 0)
        with sqlite3.connect(path) as database:
            rows = database.execute('select k, "window", window_start, window_end, "n%" from results').fetchall()
        first = spec.run(table).main.drop_columns(['say "n"'])
        assert sorted(rows, key=str) == sorted(
            [(*row[:2], *(at.isoformat() for at in row[2:4]), row[4]) for row in zip(*first.to_pydict().values(), strict=True)],
            key=str,
        )  # fmt: skip
    bounds = [(row[0], row[2], row[3]) for row in rows]
    assert len(set(bounds)) < len(bounds)


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
    for spec, told in (
        (SPEC.side_output_late_data(), "late rows as well; use route(main=to_database(...), late=...)"),
        (
            SPEC.side_output("odd", "x long"),
            "side_odd rows as well; use route(main=to_database(...), side={'odd': ...})",
        ),
    ):
        sink = spark_glue.to_database(lambda: sqlite3.connect(":memory:"), "results", spec)
        with pytest.raises(SpecError, match=re.escape(f"to_database: the spec has {told}")):
            sink(spark_glue.apply(spec, spark.createDataFrame(batch(0)), key_groups=2), 0)
    with pytest.raises(SpecError, match=r"chain: the spec has with_changelog\(\)"):
        spark_glue.apply(SPEC.allowed_lateness(0), spark.createDataFrame(batch(0)), chain=True)


def given(table: pa.Table) -> SimpleNamespace:
    """Returns what stands for a frame with these rows."""
    return SimpleNamespace(schema=[], toArrow=lambda: table)


def test_a_column_of_ones_own_may_be_called_change(tmp_path):
    table = batch(0).rename_columns(["k", "change", "ts", "v"])
    window = fw.TumblingEventTimeWindows.of("1 minute")
    summed = fw.key_by("k").event_time("ts").window(window).aggregate(change=fw.Sum("v"))
    keyed = fw.key_by("change").event_time("ts").window(window).aggregate(k=fw.Count())
    for number, spec in enumerate((summed, keyed)):
        path = str(tmp_path / f"{number}.db")
        found = spec.run(table).main
        with sqlite3.connect(path) as database:
            database.execute("create table results (k, change, window_start, window_end)")
        spark_glue.to_database(lambda path=path: sqlite3.connect(path), "results", spec)(given(found), 0)
        with sqlite3.connect(path) as database:
            rows = database.execute("select k, change from results").fetchall()
        expected = zip(found["k"].to_pylist(), found["change"].to_pylist(), strict=True)
        assert sorted(rows, key=str) == sorted(expected, key=str)


def test_a_frame_of_another_spec_is_refused():
    plain = replace(SPEC, changelog=False)
    reduced = plain.reduce(lambda one, other: one)
    fewer = fw.key_by("k").event_time("ts").window(plain.assigner).aggregate(n=fw.Count(), total=fw.Sum("v"))
    gives, bounds = "to_database: spec must be that of apply, and gives the columns", "window_start, window_end"
    for table, spec, told in (
        (SPEC.run(batch(0)).main, plain, f"k, part, {bounds}, n, total; the frame has k, part, {bounds}, n, total, change"),
        (plain.run(batch(0)).main, SPEC, f"k, part, {bounds}, n, total, change; the frame has k, part, {bounds}, n, total"),
        (plain.run(batch(0)).main, fewer, f"k, {bounds}, n, total; the frame has k, part, {bounds}, n, total"),
        (batch(0), plain, f"k, part, {bounds}, n, total; the frame has k, part, ts, v"),
        (batch(0), reduced, f"k, part, {bounds}, and those of the input; the frame has k, part, ts, v"),
    ):  # fmt: skip
        sink = spark_glue.to_database(lambda: sqlite3.connect(":memory:"), "results", spec)
        with pytest.raises(SpecError) as caught:
            sink(given(table), 0)
        said, _, more = str(caught.value).partition("; columns of your own cannot be added")
        assert (said, more) == (f"{gives} {told}", "")


def test_a_reduction_has_the_columns_of_its_input(tmp_path):
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute("create table results (k, part, window_start, window_end, ts, v)")
    spec = replace(SPEC, changelog=False).reduce(lambda one, other: one)
    found = spec.run(batch(0)).main
    spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)(given(found), 0)
    with sqlite3.connect(path) as database:
        rows = database.execute("select k, part, v from results").fetchall()
    expected = zip(*(found[name].to_pylist() for name in ("k", "part", "v")), strict=True)
    assert sorted(rows, key=str) == sorted(expected, key=str)


class Written:
    """A driver's connection that takes what it is to do down."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def cursor(self):
        return self

    def executemany(self, statement, rows):
        self.statements.append(statement)

    def commit(self):
        pass

    rollback = close = commit


@pytest.mark.parametrize(
    ("module", "holder", "style", "mark"),
    [
        ("mysql.connector.connection_cext", "mysql.connector", "pyformat", "%s"),
        ("some.where.driver", "some.where.driver", "format", "%s"),
        ("google.cloud.driver.dbapi.connection", "google.cloud.driver", "qmark", r"\?"),
        ("driver", "driver", "numeric", r":\d"),
    ],
)
def test_the_marks_are_those_of_the_driver_wherever_it_lies(monkeypatch, module, holder, style, mark):
    """Also of a connection whose class is derived from that of the driver."""
    parts = module.split(".")
    for name in (".".join(parts[:depth]) for depth in range(1, len(parts) + 1)):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules[holder], "paramstyle", style, raising=False)
    spec = SPEC.allowed_lateness(0)
    frame = SimpleNamespace(schema=[], toArrow=lambda: spec.run(batch(0)).main)
    kind = type("Connection", (Written,), {"__module__": module})
    for connection in (kind(), type("Mine", (kind,), {"__module__": "__main__"})()):
        spark_glue.to_database(lambda connection=connection: connection, "results", spec)(frame, 0)
        assert re.search(rf'"window_start" = {mark} AND', connection.statements[0])


def test_a_connection_of_no_driver_is_named():
    """As those of pools are, which hand on what they are asked."""
    frame = SimpleNamespace(schema=[], toArrow=lambda: SPEC.run(batch(0)).main)
    pooled = type("Pooled", (Written,), {"__module__": "pools.of.connections"})
    sink = spark_glue.to_database(pooled, "results", SPEC)
    with pytest.raises(SpecError, match=r"no module above pools\.of\.connections\.Pooled has a paramstyle"):
        sink(frame, 0)


class Lost(Written):
    """A connection to a server that has gone."""

    def executemany(self, statement, rows):
        raise ConnectionError("the server has closed the connection")

    def rollback(self):
        raise RuntimeError("the connection is closed")

    close = rollback


def test_what_cannot_be_taken_back_hides_no_error(monkeypatch):
    frame = SimpleNamespace(schema=[], toArrow=lambda: SPEC.run(batch(0)).main)
    monkeypatch.setitem(sys.modules, "driver", ModuleType("driver"))
    sys.modules["driver"].paramstyle = "format"
    lost = type("Connection", (Lost,), {"__module__": "driver"})
    with pytest.raises(ConnectionError, match="the server has closed the connection"):
        spark_glue.to_database(lost, "results", SPEC)(frame, 0)
    with pytest.raises(SpecError, match=r"no module above builtins\.NoneType has a paramstyle"):
        spark_glue.to_database(lambda: None, "results", SPEC)(frame, 0)


def test_a_connection_that_commits_each_statement_is_refused(monkeypatch):
    frame = SimpleNamespace(schema=[], toArrow=lambda: SPEC.run(batch(0)).main)
    monkeypatch.setitem(sys.modules, "driver", ModuleType("driver"))
    sys.modules["driver"].paramstyle = "format"
    told = [{"autocommit": True}, {"autocommit": print, "get_autocommit": lambda self: True}]
    kinds = [type("Connection", (Written,), {"__module__": "driver"} | one) for one in told]
    for connect in (*kinds, lambda: sqlite3.connect(":memory:", isolation_level=None)):
        with pytest.raises(SpecError, match=r"commits each statement by itself \(autocommit\)"):
            spark_glue.to_database(connect, "results", SPEC)(frame, 0)
    not_so = [{"autocommit": False}, {"autocommit": print}, {"autocommit": 0, "get_autocommit": lambda self: False}]
    for one in not_so:
        kind = type("Connection", (Written,), {"__module__": "driver"} | one)
        spark_glue.to_database(kind, "results", SPEC)(frame, 0)


def test_a_nan_that_sqlite_would_take_for_null_is_refused(spark, tmp_path):
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute("create table results (x, window_start, window_end, m)")
    spec = fw.key_by("x").event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000)).aggregate(m=fw.Max("x"))
    sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)
    for keys, rows in (([1.0, None], 2), ([2.0, float("nan")], 0)):
        frame = spark.createDataFrame(spec.run(pa.table({"x": keys, "ts": [1, 2]})).main)
        if rows:
            sink(frame, 0)
        else:
            with pytest.raises(BadRowError, match="key column 'x' has a NaN, and SQLite keeps that as a null"):
                sink(frame, 1)
    with sqlite3.connect(path) as database:
        assert database.execute("select x, m from results order by x").fetchall() == [(None, None), (1.0, 1.0)]


def test_text_that_is_no_utf8_ends_no_query(spark, tmp_path, caplog):
    """Rows of such a key are left out, as they would be those of one key; in other columns such bytes are replaced."""
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute("create table results (k text, window_start, window_end, m text)")
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(m=fw.Max("v"))
    values = "(X'61', 1, X'62'), (X'61', 1, X'fe'), (X'ff', 1, X'62'), (X'fe', 1, X'62'), (null, 1, X'62')"
    rows = spark.sql(
        f"select cast(k as string) k, bigint(t) ts, cast(v as string) v from values {values} as r(k, t, v)"
    )
    sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)
    for number in range(2):
        sink(spark_glue.apply(spec, rows, key_groups=2), number)
    with sqlite3.connect(path) as database:
        assert database.execute("select k, m from results order by k").fetchall() == [(None, "b"), ("a", "\ufffd")]
    assert [text for text in caplog.messages if text.startswith("to_database: column")] == [
        "to_database: column 'k' has text that is no UTF-8; in results, 2 rows with such a key are left out",
        "to_database: column 'm' has text that is no UTF-8; in results, U+FFFD stands for such bytes",
    ]


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_dates_are_text_in_sqlite(tmp_path):
    """Its driver has an adapter for them, which Python is going to take away."""
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute("create table results (day text, window_start text, window_end text, n integer)")
    spec = fw.key_by("day").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    found = spec.run(pa.table({"day": pa.array([datetime(2024, 2, 29).date()]), "ts": [1]})).main
    for number in range(2):
        spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)(given(found), number)
    with sqlite3.connect(path) as database:
        assert database.execute("select day, n from results").fetchall() == [("2024-02-29", 1)]


def test_decimals_times_of_day_and_intervals_are_text_in_sqlite(spark, tmp_path):
    """It has no types for them, and its driver takes none."""
    path = str(tmp_path / "results.db")
    with sqlite3.connect(path) as database:
        database.execute("create table results (price text, window_start, window_end, total text, most text)")
    spec = fw.key_by("price").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour"))
    spec = spec.aggregate(total=fw.Sum("price"), most=fw.Max("wait"))
    frame = spark.createDataFrame(
        [(Decimal("1.50"), datetime(2024, 1, 1, tzinfo=UTC), timedelta(seconds=90))] * 2,
        "price decimal(10,2), ts timestamp, wait interval day to second",
    )
    for _ in range(2):
        sink = spark_glue.to_database(lambda: sqlite3.connect(path), "results", spec)
        sink(spark_glue.apply(spec, frame, key_groups=2), 0)
    with sqlite3.connect(path) as database:
        assert database.execute("select price, total, most from results").fetchall() == [("1.50", "3.00", "0:01:30")]
