"""A second window behind the first one, in one query."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from spark_glue.plan.chaining import check_chain
from tests.support.spark_events import START_MS, events
from tests.support.spark_jobs import frame_plan_for
from tests.support.spark_streams import Recorder, Source, assert_same_rows, micro_batches, start

MINUTES = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
SESSIONS = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("3 s")).aggregate(n=fw.Count())
BUSY = (
    fw.key_by()
    .event_time("window_time")
    .window(fw.TumblingEventTimeWindows.of("5 min"))
    .side_output_late_data()
    .aggregate(keys=fw.Count(), most=fw.Max("n"), total=fw.Sum("n"))
)


def window_time(main: pa.Table) -> pa.Table:
    ends = main["window_end"].cast(pa.timestamp("ms", tz="UTC"))
    return main.append_column("window_time", pc.subtract(ends, pa.scalar(1, pa.duration("ms"))))


def tables_of(n: int) -> list[pa.Table]:
    tables = [events(i, 300, start_ms=START_MS + i * 200_000, span_ms=250_000) for i in range(n)]
    return [*tables, events(99, 1, start_ms=START_MS + 86_400_000), events(98, 1, start_ms=START_MS + 2 * 86_400_000)]


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("first", [MINUTES, pytest.param(SESSIONS, marks=pytest.mark.long)])
def test_no_row_is_lost_between_two_windows(spark, tmp_path, first):
    tables = tables_of(4)
    source, recorder = Source(tmp_path, tables[0].schema), Recorder()
    source.put(*tables)
    inner = spark_glue.apply(first, source.frame(spark), watermark="5 min", key_groups=2, name="inner", chain=True)
    query = start(spark_glue.apply(BUSY, inner, key_groups=2), tmp_path, recorder, available_now=True)
    query.awaitTermination()
    found = pa.concat_tables(list(recorder.tables.values()))
    assert found["late"].null_count == found.num_rows
    before = pa.concat_tables(tables[:4])
    expected = BUSY.run(window_time(first.run(before).main)).main
    last = START_MS + 86_000_000
    mine = found.drop_columns("late")
    ends = mine["window_end"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
    assert_same_rows(mine.filter(pc.less(ends, last)), expected)
    batches = micro_batches(query, recorder)
    assert sum(batch.counters["late"] + batch.counters["dropped"] for batch in batches) == 0


def test_batch_frames_chain_too(spark, tmp_path):
    table = events(1, 500)
    pq.write_table(table, tmp_path / "t.parquet")
    inner = spark_glue.apply(MINUTES, spark.read.parquet(str(tmp_path)), chain=True)
    assert inner.columns == ["k", "window_start", "window_end", "n", "window_time"]
    found = spark_glue.apply(BUSY, inner).toArrow().drop_columns("late")
    assert_same_rows(found, BUSY.run(window_time(MINUTES.run(table).main)).main)


REFUSED = {
    "lateness": (MINUTES.allowed_lateness("1 s"), "chain: the spec has allowed_lateness"),
    "rows of empty windows": (
        MINUTES.window(fw.TumblingEventTimeWindows.of("1 min"), fill="empty"),
        "chain: the spec has fill='empty', whose rows for empty windows come once a later window ends their gap",
    ),
    "late rows": (MINUTES.side_output_late_data(), r"chain: the spec has side_output_late_data\(\)"),
    "bad rows": (MINUTES.bad_rows("divert"), r'chain: the spec has bad_rows\("divert"\)'),
    "side outputs": (MINUTES.side_output("x", "n int"), "chain: the spec has side_output"),
    "no end": (
        fw.key_by("k").event_time("ts").window(fw.GlobalWindows.create()).aggregate(n=fw.Count()),
        "chain: needs windows and triggers of event time",
    ),
    "the clock": (
        MINUTES.trigger(fw.any_of(fw.EventTimeTrigger(), fw.ContinuousProcessingTimeTrigger.of(5))),
        "chain: needs windows and triggers of event time",
    ),
    "taken": (MINUTES.aggregate(window_time=fw.Count()), "chain: it adds the column 'window_time'"),
}


@pytest.mark.parametrize("case_sensitive", [True, False])
def test_the_case_of_letters_counts_as_spark_says(case_sensitive):
    """Else Spark would put the time of the window in the place of a column of the user's."""
    frame_plan = frame_plan_for(events(0, 1), MINUTES.aggregate(Window_Time=fw.Count()))
    if case_sensitive:
        check_chain(frame_plan, True, case_sensitive)
        return
    with pytest.raises(
        SpecError, match=r"adds the column 'window_time', which Spark takes for the result's 'Window_Time'"
    ):
        check_chain(frame_plan, True, case_sensitive)


@pytest.fixture(scope="module")
def rate(spark):
    return spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_chain_is_refused(rate, case):
    spec, says = REFUSED[case]
    with pytest.raises(SpecError, match=says):
        spark_glue.apply(spec, rate, watermark="1 s", chain=True)


def test_the_second_window_takes_time_and_watermark_from_the_first(rate):
    inner = spark_glue.apply(MINUTES, rate, watermark="1 s", chain=True)
    with pytest.raises(SpecError, match="watermark: a window behind a window has the first one's, got 1 s"):
        spark_glue.apply(BUSY, inner, watermark="1 s")
    with pytest.raises(
        SpecError, match="event_time: the spec has 'window_end', but the frame has its watermark on 'window_time'"
    ):
        spark_glue.apply(BUSY.event_time("window_end"), inner)
    with pytest.raises(SpecError, match="give the first apply chain=True and keep its column 'window_time'"):
        spark_glue.apply(BUSY.event_time("window_end"), inner.drop("window_time"))
    with pytest.raises(SpecError, match="chain: must be True or False, got 'yes'"):
        spark_glue.apply(MINUTES, rate, watermark="1 s", chain="yes")
