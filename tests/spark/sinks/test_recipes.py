"""The recipes for sinks in docs/spark.md, word for word: exact however often a micro-batch runs."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from tests.support.documents import ROOT, block_with
from tests.support.spark_events import START_MS
from tests.support.spark_streams import Source, assert_same_rows, start

PAGE = ROOT / "docs" / "spark.md"
SCHEMA = pa.schema([("user", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))])
SPEC = (
    fw.key_by("user")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 minute"))
    .allowed_lateness("1 hour")
    .bad_rows("drop")
    .aggregate(n=fw.Count())
)
COLUMNS = ["user", "window_start", "window_end", "n"]


def batch(number: int, rows: int = 40) -> pa.Table:
    """A minute of rows, of users without a null, which Spark cannot put into Derby; half of them three minutes late, so that windows fire once more."""
    users = [["ann", "bob", "o'neil", "100%"][i // 2 % 4] for i in range(rows)]
    times = [(START_MS + 60_000 * number - 180_000 * (i % 2) + 1_000 * (i % 60)) * 1_000 for i in range(rows)]
    return pa.table([users, times], schema=SCHEMA)


END = pa.table([["end"], [(START_MS + 7_200_000) * 1_000]], schema=SCHEMA)


def run(spark, folder: Path, sink: Callable[[Any, int], object], look: Callable[[], pa.Table]) -> pa.Table:
    """Runs a query whose micro-batches run twice, the third one a third time after a restart; returns all that it gave."""
    source, given, failures = Source(folder, SCHEMA), {}, [True]
    source.put(*map(batch, range(4)), END)

    def twice(frame: Any, number: int) -> None:
        frame.persist()
        sink(frame, number)
        once = look()
        sink(frame, number)
        assert_same_rows(look(), once)
        given[number] = frame.toArrow()
        frame.unpersist()
        if number == 2 and failures:
            failures.pop()
            raise RuntimeError("after it was written")

    def query() -> Any:
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="1 s", key_groups=4)
        return start(frame, folder, twice, available_now=True)

    with pytest.raises(Exception, match="after it was written"):
        query().awaitTermination()
    query().awaitTermination()
    found = pa.concat_tables(given.values())
    assert len(given) > 4
    assert found.num_rows > found.group_by(["user", "window_start"]).aggregate([]).num_rows  # some fired more than once
    return found


class Derby:
    """The page's block about JDBC, up to its query, on a database in memory."""

    def __init__(self, spark, name: str) -> None:
        # Else Derby writes a log into the folder of the tests.
        spark._jvm.java.lang.System.setProperty("derby.stream.error.file", "/dev/null")
        block = block_with(PAGE, "def to_jdbc").partition("\n\n\nquery = ")[0]
        block, count = re.subn("jdbc:derby:results-db;", f"jdbc:derby:memory:{name};", block)
        assert count == 1
        self.scope: dict[str, Any] = {"spark": spark}
        exec(compile(block, str(PAGE), "exec"), self.scope)
        self.spark, self.url = spark, self.scope["url"]

    def rows(self) -> pa.Table:
        return self.spark.read.jdbc(self.url, "results").toArrow().rename_columns([*COLUMNS, "batch"]).select(COLUMNS)


@pytest.fixture
def derby(spark, request) -> Iterator[Derby]:
    made = Derby(spark, request.node.name)
    yield made
    made.scope["database"].close()


@pytest.mark.long
def test_a_table_through_jdbc(spark, tmp_path, derby):
    found = run(spark, tmp_path, derby.scope["to_jdbc"], derby.rows)
    assert_same_rows(derby.rows(), found)


def test_a_batch_that_fails_in_the_database_leaves_the_table_as_it_was(spark, derby):
    frame = spark_glue.apply(SPEC, spark.createDataFrame(batch(0)), key_groups=2)
    derby.scope["to_jdbc"](frame, 0)
    before = derby.rows()
    assert before.num_rows > 0
    database = derby.scope["database"]
    database.setAutoCommit(True)
    database.createStatement().execute("alter table results add constraint few check (n < 20)")
    with pytest.raises(Exception, match=r"(?i)few"):
        derby.scope["to_jdbc"](spark_glue.apply(SPEC, spark.createDataFrame(batch(0, 400)), key_groups=2), 0)
    assert_same_rows(derby.rows(), before)


def test_rows_that_tasks_have_repeated_are_there_once(spark, derby):
    frame = spark_glue.apply(SPEC, spark.createDataFrame(batch(0)), key_groups=2)
    derby.scope["to_jdbc"](frame.union(frame), 0)
    assert_same_rows(derby.rows(), SPEC.run(batch(0)).main)


class LateTask:
    """A connection before whose transaction a task of an earlier micro-batch still puts its rows into ``staged``."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def setAutoCommit(self, on: bool) -> None:  # noqa: N802
        self._database.createStatement().execute("insert into staged select * from results")
        self._database.setAutoCommit(on)


def test_rows_of_an_earlier_micro_batch_that_come_late_are_left_out(spark, derby, monkeypatch):
    frame = spark_glue.apply(SPEC, spark.createDataFrame(batch(0)), key_groups=2)
    derby.scope["to_jdbc"](frame, 0)
    monkeypatch.setitem(derby.scope, "database", LateTask(derby.scope["database"]))
    derby.scope["to_jdbc"](frame, 1)
    once = SPEC.run(batch(0)).main
    assert_same_rows(derby.rows(), pa.concat_tables([once, once]))


@pytest.mark.long
def test_a_table_of_delta_lake(spark, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    scope: dict[str, Any] = {}
    block, count = re.subn('"results-delta"', repr(str(tmp_path / "delta")), block_with(PAGE, "def to_delta"))
    assert count == 1
    exec(compile(block, str(PAGE), "exec"), scope)

    def rows() -> pa.Table:
        return pa.table(deltalake.DeltaTable(scope["path"]).to_pyarrow_table())

    found = run(spark, tmp_path, scope["to_delta"], rows)
    assert_same_rows(rows(), found)
