"""to_folder: each micro-batch's rows in a folder of its own, once, however often it runs."""

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from spark_glue.sinks import folder
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Source, assert_same_rows, start

SPEC = (
    fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).bad_rows("drop")
    .aggregate(n=fw.Count())
)  # fmt: skip
TABLES = [events(i, 100, start_ms=START_MS + i * 60_000, span_ms=60_000) for i in range(3)]
END = events(9, 1, start_ms=START_MS + 3_600_000)


@pytest.mark.usefixtures("adaptive")
def test_rows_are_there_once_though_micro_batches_run_again(spark, tmp_path):
    source, path, failures = Source(tmp_path, TABLES[0].schema), tmp_path / "results", [True]
    source.put(*TABLES, END)
    sink = spark_glue.to_folder(path)

    def failing(frame, number):
        sink(frame, number)
        if number == 1 and failures:
            failures.pop()
            raise RuntimeError("after it was written")

    def query():
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="1 s", key_groups=4)
        return start(frame, tmp_path, failing, available_now=True)

    with pytest.raises(Exception, match="after it was written"):
        query().awaitTermination()
    stamps = {file: file.stat().st_mtime_ns for file in path.rglob("batch=1/*.parquet")}
    again = query()
    again.awaitTermination()
    assert stamps
    assert not any(file.exists() for file in stamps)  # the micro-batch has run again
    found = spark.read.parquet(str(path))
    assert {row.query for row in found.select("query").distinct().collect()} == {str(again.id)}
    main = SPEC.run(pa.concat_tables(TABLES)).main
    assert_same_rows(found.select(*main.column_names).toArrow(), main)
    other = spark_glue.to_folder(path, name="another")
    other(found.drop("query", "batch"), 1)
    assert spark.read.parquet(str(path)).count() == 2 * main.num_rows
    with pytest.raises(StateError, match=r"query=another has batch=1, and this is micro-batch 0: .* from batch=1 on"):
        other(found.drop("query", "batch"), 0)  # a checkpoint that was put back, with the same sink or a new one
    with pytest.raises(StateError, match="has batch=1"):
        spark_glue.to_folder(f"{path}/", name="another")(found.drop("query", "batch"), 0)


def test_a_folder_that_cannot_be_listed_ends_the_query(spark, tmp_path, monkeypatch):
    """Without the listing, a checkpoint that was put back could not be told from others."""
    rows = spark.sql("select 1 as n")
    spark_glue.to_folder(tmp_path, name="a")(rows, 1)
    again = spark_glue.to_folder(tmp_path, name="a")

    def is_away(*_):
        raise Py4JJavaError("the store is away", spark._jvm.java.io.IOException("away"))

    with monkeypatch.context() as patch:
        patch.setattr(folder, "_newest_in", is_away)
        with pytest.raises(Py4JJavaError):
            again(rows, 0)
    assert [path.name for path in (tmp_path / "query=a").iterdir()] == ["batch=1"]
    with pytest.raises(StateError, match="has batch=1"):
        again(rows, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": ""}, "path must name a folder, got ''"),
        ({"path": 7}, "path must name a folder, got 7"),
        ({"path": "results", "name": "a/b"}, "name must have letters, digits, '.', '-' and '_' alone, got 'a/b'"),
        ({"path": "results", "format": None}, "format must be one of Spark's, such as 'parquet', got None"),
        ({"path": "results", "format": "delta"}, "delta has a log of its own"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, said):
    with pytest.raises(SpecError, match=r"to_folder: ") as caught:
        spark_glue.to_folder(**arguments)
    assert said in str(caught.value)


def test_rows_that_do_not_fit_are_refused(spark, tmp_path):
    with pytest.raises(SpecError, match="the rows have a column 'Batch'"):
        spark_glue.to_folder(tmp_path)(spark.sql("select 1 as Batch"), 0)
    with pytest.raises(SpecError, match="does not tell which query this is"):
        spark_glue.to_folder(tmp_path)(spark.sql("select 1 as n"), 0)
    with pytest.raises(SpecError, match=r"has late rows as well; use route\(main=to_folder\(\.\.\.\), late="):
        spark_glue.to_folder(tmp_path, name="a")(spark.sql("select 1 as n, struct(1 as n) as late"), 0)
