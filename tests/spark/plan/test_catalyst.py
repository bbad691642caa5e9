"""Where Spark does not tell what it keeps to itself, things go on without, and the log says so once."""

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.sql.streaming import StatefulProcessor

import fastwin as fw
import spark_glue
from spark_glue.plan import asking, catalyst, queries
from spark_glue.state import cleanup
from tests.support.spark_events import events
from tests.support.spark_streams import assert_same_rows
from tests.support.spark_versions import SPARK

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count())
)


class Denied:
    """Stands for one of Spark's objects, and answers some calls as py4j does where they are not allowed."""

    def __init__(self, held, *names: str) -> None:
        self._held = held
        self._names = names

    def __getattr__(self, name: str):
        if name not in self._names:
            return getattr(self._held, name)

        def refuse(*_):
            raise Py4JError(f"Method {name}([]) is not whitelisted\nand more")

        return refuse


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(asking, "_missed", set())


def test_a_stream_goes_on_without_the_plan(spark, caplog):
    frame = spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")
    frame._jdf = Denied(frame._jdf, "queryExecution")
    result = spark_glue.apply(SPEC, frame, watermark="10 s", key_groups=2)
    assert result.columns == ["k", "window_start", "window_end", "n"]
    assert [record.getMessage() for record in caplog.records if record.name == asking.__name__] == [
        "the operators before apply: Spark does not tell, so it goes on without (Method queryExecution([]) is not "
        "whitelisted)"
    ]


@pytest.mark.usefixtures("limited")
def test_a_batch_goes_on_without_the_plan(spark):
    table = events(1, 100)
    frame = spark.createDataFrame(table)
    frame._jdf = Denied(frame._jdf, "queryExecution")
    assert_same_rows(spark_glue.apply(SPEC, frame, key_groups=2).toArrow(), SPEC.run(table).main)


@pytest.fixture
def stored(spark):
    """A stream whose table has stored a mark with a column, as the query did that wrote it."""
    rate = spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")
    return rate.withMetadata("ts", {catalyst.DELAY_KEY: 5000})


def test_a_mark_that_a_table_has_stored_is_no_watermark(stored):
    assert catalyst.DELAY_KEY in stored.schema["ts"].metadata
    assert catalyst.watermark_of(stored) is None
    with pytest.raises(fw.SpecError, match="watermark: a streaming frame needs one"):
        spark_glue.apply(SPEC, stored)
    assert spark_glue.apply(SPEC, stored, watermark="1 s", idle="1 s").isStreaming
    keyed = fw.key_by("k").event_time("ts")
    pairs = fw.window_join(keyed, keyed, fw.TumblingEventTimeWindows.of("1 min"))
    assert spark_glue.apply(pairs, (stored, stored), watermark=("1 s", "1 s")).isStreaming


def test_of_two_marks_that_of_the_plan_is_the_watermark(spark, stored):
    live = spark.readStream.format("rate").load().selectExpr("value k", "timestamp at").withWatermark("at", "7 seconds")
    both = stored.join(live, "k")
    assert [field.name for field in both.schema if catalyst.DELAY_KEY in field.metadata] == ["ts", "at"]
    assert catalyst.watermark_of(both) == catalyst.Watermark("at", 7000)
    # Behind another name, too.
    assert catalyst.watermark_of(live.withColumnRenamed("at", "ts")) == catalyst.Watermark("ts", 7000)


def test_a_stored_mark_counts_where_the_plan_is_not_told(stored):
    stored._jdf = Denied(stored._jdf, "queryExecution")
    assert catalyst.watermark_of(stored) == catalyst.Watermark("ts", 5000)


def test_a_query_that_cannot_be_looked_at_is_none(spark, monkeypatch):
    monkeypatch.setattr(spark, "_jsparkSession", Denied(spark._jsparkSession, "sharedState"))
    assert queries.running_query(spark, "any") is None


class Keep(StatefulProcessor):
    """A user's own operator, which waits for the processing time."""

    def init(self, handle):
        pass

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        yield from rows

    def close(self):
        pass


def running(frame) -> SimpleNamespace:
    """A session in which a query of this frame runs, with availableNow, and in the first format."""
    last = SimpleNamespace(isDefined=lambda: True, get=lambda: SimpleNamespace(_2=lambda: SimpleNamespace(
        stateUniqueIds=lambda: SimpleNamespace(isEmpty=lambda: True))))  # fmt: skip
    query = SimpleNamespace(
        id=lambda: "it",
        analyzedPlan=lambda: frame._jdf.queryExecution().analyzed(),
        trigger=lambda: SimpleNamespace(toString=lambda: "AvailableNowTrigger"),
        commitLog=lambda: SimpleNamespace(getLatest=lambda: last),
    )
    active = SimpleNamespace(values=lambda: [query])
    state = SimpleNamespace(activeStreamingQueries=lambda: active)
    return SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: state))


def test_queries_without_apply_are_none_of_ours(spark):
    rate = spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")
    theirs = rate.groupBy("k").transformWithStateInPandas(Keep(), "k bigint, ts timestamp", "append", "ProcessingTime")
    assert queries.running_query(running(rate), "it") is None
    assert queries.running_query(running(theirs), "it") is None
    ours = queries.running_query(running(spark_glue.apply(SPEC, rate, watermark="1 s")), "it")
    has_better = SPARK >= (4, 1)  # than the first format of checkpoints
    assert ours == queries.RunningQuery(True, False, False, has_better)
    assert ("it was begun with" in (ours.notice or "")) == has_better


def test_queries_with_small_state_are_ours_and_tell_what_their_timers_wait_for(spark):
    rate = spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")
    ours = queries.running_query(running(spark_glue.apply(SPEC, rate, watermark="1 s", small_state=True)), "it")
    assert ours == queries.RunningQuery(True, False, False, False)
    arrival = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("3 s"))
    frame = spark_glue.apply(arrival.aggregate(n=fw.Count()), rate, small_state=True)
    assert queries.running_query(running(frame), "it").processing_time


def test_a_session_that_takes_no_listener(spark, monkeypatch, caplog):
    monkeypatch.setattr(cleanup, "_listeners", {})
    monkeypatch.setattr(type(spark.streams), "addListener", Denied(None, "addListener").addListener)
    cleanup.forget_when_ended(spark)
    assert "the end of queries: Spark does not tell" in caplog.text


def test_errors_of_specs_are_not_hidden():
    def ask():
        raise fw.SpecError("df: wrong")

    with pytest.raises(fw.SpecError):
        asking.ask_spark("anything", ask, None)
