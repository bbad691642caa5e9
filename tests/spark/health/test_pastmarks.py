"""What Spark's own log says of a query's past: watermarks of its micro-batches, and the windows that they ended."""

import pytest

import fastwin as fw
from fastwin.windows.timetext import TimeText
from spark_glue.health.pastmarks import PastMarks
from spark_glue.health.records import MicroBatch
from spark_glue.state.marks import Mark, Marks, marks_in

SPEC = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
MINUTE = 60_000


def entry(watermark: int) -> str:
    return f'v1\n{{"batchWatermarkMs":{watermark},"batchTimestampMs":{watermark + 7},"conf":{{}}}}\n{{"logOffset":0}}\n'


def window(end: int, gone_at: int) -> fw.WhyWindow:
    return fw.WhyWindow(end - 10, end, None, "", False, {}, None, None, None, gone_at, (), ())


def record(batch: int, newest: int, dropped: int = 0) -> MicroBatch:
    return MicroBatch(batch, 0, 1, 1, newest, newest - 1, {"dropped": dropped}, (), None)


def test_the_log_is_read_up_to_the_last_batch():
    texts = [("file:/c/offsets/10", entry(90)), ("file:/c/offsets/9", entry(0)), ("offsets/11", entry(99)), ("x", "")]
    assert marks_in(texts, 10) == Marks((Mark(9, 7, None), Mark(10, 97, 90)))


@pytest.mark.parametrize("watermark, found", [(5, (2, 3)), (20, (2, 3)), (21, (3, 4)), (41, None)], ids=str)
def test_the_first_batch_that_is_past(watermark, found):
    marks = Marks(tuple(Mark(batch, 0, mark) for batch, mark in ((2, None), (3, 20), (4, 40))))
    past = marks.first_past(watermark)
    assert past == found or [one.batch for one in past] == list(found)


def test_nothing_is_said_of_what_the_log_has_forgotten():
    past = PastMarks(Marks((Mark(7, 0, 20), Mark(8, 0, 40))), [], TimeText(), SPEC)
    (said,) = past.of_window(window(10, 9))
    assert said.startswith("The watermark passed its end in micro-batch 7 or before, the oldest one")
    assert (
        PastMarks(Marks((Mark(0, 0, 20),)), [], TimeText(), SPEC)
        .of_window(window(10, 9))[0]
        .startswith(
            "The watermark passed its end in micro-batch 0, which began at 1970-01-01 00:00:00 UTC by the clock: it went to"
        )
    )


def test_a_window_with_allowed_lateness_has_two_moments():
    past = PastMarks(Marks((Mark(0, 0, None), Mark(1, 0, 9), Mark(2, MINUTE, 50))), [], TimeText(), SPEC)
    end, gone = past.of_window(window(10, 30))
    assert "passed its end in micro-batch 1," in end
    assert "late" not in end
    assert "passed its allowed lateness in micro-batch 2, which began at 1970-01-01 00:01:00" in gone
    assert gone.endswith("rows of it are late from that one on.")
    assert past.of_window(window(100, 99)) == []
    (both,) = past.of_window(window(21, 30))
    assert both.startswith("The watermark passed its end, and its allowed lateness, in micro-batch 2, which began")


@pytest.mark.parametrize(
    "assigner, what",
    [
        (fw.TumblingEventTimeWindows.of(10), "rows of it are late"),
        (fw.SlidingEventTimeWindows.of(10, 5), "it takes no row"),
        (fw.EventTimeSessionWindows.with_gap(5), "it takes no row"),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_a_row_is_late_only_where_no_other_window_takes_it(assigner, what):
    spec = fw.key_by("k").event_time("ts").window(assigner).aggregate(n=fw.Count())
    (said,) = PastMarks(Marks((Mark(0, 0, None), Mark(1, 0, 20))), [], TimeText(), spec).of_window(window(10, 9))
    assert said.endswith(f"; {what} from that one on.")


def test_the_row_that_moved_it_is_told_where_the_query_tells_of_it():
    marks = Marks((Mark(0, 0, None), Mark(1, 0, 9), Mark(2, 0, 50)))
    records = [record(0, 20), record(1, 61, dropped=2), record(2, 30, dropped=1)]
    said = PastMarks(marks, records, TimeText(), SPEC).of_window(window(31, 30))
    assert said[1] == "A row of 1970-01-01 00:00:00.061, or up to 1 ms later, in micro-batch 1 moved it there."
    assert len(PastMarks(marks, records[2:], TimeText(), SPEC).of_window(window(31, 30))) == 1
    (rows,) = PastMarks(marks, records, TimeText(), SPEC).of_rows()
    assert rows.startswith(
        "In the last 3 micro-batches 3 rows of all keys were late, the last of them in micro-batch 2,"
    )
    assert PastMarks(marks, records[:1], TimeText(), SPEC).of_rows() == []
