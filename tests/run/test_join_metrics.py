"""The metrics of joins whose inputs may be late by different times: only windows that have a row are open."""

import pyarrow as pa
import pytest

import fastwin as fw

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
HOUR = 3_600_000
WINDOWS = {
    "sliding": fw.SlidingEventTimeWindows.of("4 hours", "1 hour"),
    "cumulative": fw.CumulativeEventTimeWindows.of("4 hours", "1 hour"),
    "calendar": fw.CalendarEventTimeWindows.cumulative("1 day", "1 hour", time_zone="UTC"),
}


def opened(windows: str, *lateness: str) -> fw.JoinStream:
    left, right = (fw.key_by("k").event_time("ts", unit="ms").allowed_lateness(one) for one in lateness)
    return fw.window_join(left, right, WINDOWS[windows], "full").open(schemas=(SCHEMA, SCHEMA))


def at(*hours: float) -> pa.Table:
    return pa.table({"k": [1] * len(hours), "ts": pa.array([int(hour * HOUR) for hour in hours])}, SCHEMA)


@pytest.mark.parametrize(
    ("windows", "counts"), [("sliding", (2, 4, 5, 4)), ("cumulative", (2, 3, 4, 3)), ("calendar", (22, 23, 24, 23))]
)
def test_a_late_row_opens_no_window_that_only_the_other_input_may_be_late_for(windows: str, counts: tuple) -> None:
    stream = opened(windows, "0 s", "6 hours")
    stream.advance_watermark(int(2.5 * HOUR))
    stream.process(left=at(0.5))  # the windows that end after one and two hours have passed
    again = opened(windows, "6 hours", "6 hours")
    again.restore(stream.snapshot())
    assert counted(stream) == counted(again) == counts


def counted(stream: fw.JoinStream) -> tuple[int, ...]:
    """How many windows are open, in steps."""
    found = []
    for step in (
        lambda: None,
        lambda: stream.process(right=at(1.5)),  # in the window that ends after two hours as well
        lambda: stream.process(right=at(0.5)),
        lambda: stream.advance_watermark(7 * HOUR),
    ):
        step()
        found.append(stream.metrics.open_windows)
        assert found[-1] == stream.inspect().num_rows
    return tuple(found)
