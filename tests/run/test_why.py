"""Reports of why: what they say of windows, held or not, of time and of rows; and what is refused."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError, StateError
from fastwin.run.why.windowsat import late_from
from fastwin.windows.timetext import TimeText

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MS = round(START.timestamp() * 1_000)
MINUTE = 60_000
SCHEMA = pa.schema([("user", pa.string()), ("ts", pa.timestamp("ms")), ("amount", pa.float64())])
HOURS = (
    fw.key_by("user")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 hour"))
    .aggregate(n=fw.Count(), total=fw.Sum("amount"))
)


def rows(*elements: tuple) -> pa.Table:
    """Elements as (user, minute, amount)."""
    users, minutes, amounts = zip(*elements, strict=True)
    times = pa.array([MS + round(minute * MINUTE) for minute in minutes], pa.int64()).cast(pa.timestamp("ms"))
    return pa.table([pa.array(users), times, pa.array(amounts, pa.float64())], schema=SCHEMA)


def said(report: fw.WhyReport) -> str:
    """The text of a report, without line breaks."""
    return " ".join(report.text.split())


def test_an_open_window() -> None:
    stream = HOURS.allowed_lateness("5 minutes").open(watermark="10 seconds")
    stream.process(rows(("ann", 1, 2.0), ("ann", 30, 0.5), ("bob", 41.5, 1.0)))
    report = stream.why("ann", at="2026-01-01 12:30:00")
    assert report.text.splitlines() == [
        "user = 'ann', at 2026-01-01 12:30:00, in tumbling windows of 1 h",
        "",
        "Time",
        "  The watermark is at 12:41:19.999; it follows the data, 10 s behind the newest element.",
        "  The newest element is of 12:41:30.",
        "  Times are in UTC; those without a date are of 2026-01-01.",
        "",
        "Window from 2026-01-01 12:00:00 to 13:00:00",
        "  It holds n = 2, total = 2.5.",
        "  It has not fired.",
        "  It fires when the watermark reaches 12:59:59.999; 18 min 40 s are missing.",
        "  An element of 13:00:10 or later, of any key, brings it there.",
        "  It goes when the watermark reaches 13:04:59.999, 5 min after its end (allowed lateness).",
    ]
    (window,) = report.windows
    assert (window.start, window.end, window.held, window.holds) == (MS, MS + 3_600_000, True, {"n": 2, "total": 2.5})
    assert (window.fires_at, window.fires_by, window.gone_at) == (MS + 3_599_999, "watermark", MS + 3_899_999)
    assert report.to_dict()["windows"][0]["holds"] == {"n": 2, "total": 2.5}
    assert report.to_dict()["watermark"] == stream.watermark == report.watermark
    assert str(report) == repr(report) == report.text
    html = report._repr_html_()
    assert "<li>It has not fired.</li>" in html
    assert "&#x27;ann&#x27;" in html


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 1, 12, 30),
        START.replace(minute=30),
        "2026-01-01T13:30:00+01:00",
        MS + 30 * MINUTE,
        str(MS + 30 * MINUTE),
        np.datetime64("2026-01-01T12:30:00"),
        np.int64(MS + 30 * MINUTE),
    ],
)
def test_times_are_given_in_many_ways(at) -> None:
    stream = HOURS.open()
    stream.process(rows(("ann", 1, 2.0)))
    assert stream.why("ann", at=at).windows[0].start == MS
    assert stream.why("ann", window=(at, START.replace(hour=14))).windows[0].held is False


def test_windows_by_their_bounds() -> None:
    stream = HOURS.open()
    stream.process(rows(("ann", 1, 2.0)))
    assert stream.why("ann", window=fw.TimeWindow(MS, MS + 3_600_000)).windows[0].held
    assert stream.why("ann", window=("2026-01-01 12:00", "2026-01-01 13:00")).windows[0].held
    assert stream.why({"user": "ann"}, window=(MS, MS + 3_600_000)).windows[0].held


def test_a_window_that_is_not_there() -> None:
    stream = HOURS.open(watermark="10 seconds")
    stream.process(rows(("ann", 1, 2.0), ("bob", 200, 1.0)))
    gone, open_ = stream.why("ann", at="2026-01-01 12:30"), stream.why("ann", at="2026-01-01 15:30")
    assert (
        gone.windows[0]
        .sentences[0]
        .startswith("It is gone, if it ever was there: the watermark has passed its end, at")
    )
    assert open_.windows[0].sentences[0].startswith("No element of this key is in it")
    assert [window.held for report in (gone, open_) for window in report.windows] == [False, False]
    assert gone.rows == ("This key has no window now.",)
    assert stream.why("nobody").windows == ()


def test_sessions() -> None:
    spec = fw.key_by("user").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("10 minutes"))
    stream = spec.aggregate(n=fw.Count()).open(watermark="1 minute")
    stream.process(rows(("ann", 1, 2.0), ("ann", 9, 2.0), ("ann", 30, 1.0), ("bob", 31, 1.0)))
    report = stream.why("ann", at="2026-01-01 12:35")
    assert [(window.start, window.holds) for window in report.windows] == [(MS + 30 * MINUTE, {"n": 1})]
    told = said(stream.why("ann", at="2026-01-01 13:00"))
    assert "would begin one, from 13:00:00 to 13:10:00" in told
    assert "would be late" in said(stream.why("ann", at="2026-01-01 12:05"))


def test_who_moves_the_watermark() -> None:
    stream = HOURS.open()
    assert "No row has come yet" in said(stream.why("ann"))
    stream.process(rows(("ann", 1, 2.0)))
    assert "advance_watermark() has not been called, and the stream was opened without watermark=" in said(
        stream.why("ann")
    )
    stream.advance_watermark(MS)
    assert "The watermark is at 12:00:00; only advance_watermark() moves it." in said(stream.why("ann"))
    assert "An element of" not in said(stream.why("ann"))
    follows = HOURS.open(watermark="monotonous", schema=SCHEMA)
    assert "There is no watermark yet: no good row has come yet." in said(follows.why("ann"))
    follows.process(rows(("ann", 1, 2.0)))
    assert "it follows the data, right behind the newest element" in said(follows.why("ann"))
    follows.advance_watermark(MS + 2 * MINUTE)
    assert "something else moved it further" in said(follows.why("ann"))


def test_a_count_window() -> None:
    stream = fw.key_by("user").event_time("ts").count_window(3).aggregate(n=fw.Count()).open()
    stream.process(rows(("ann", 1, 2.0), ("ann", 2, 2.0)))
    told = said(stream.why("ann"))
    assert "Window: the global one" in told
    assert "2 of 3 have come" in told
    assert "It never goes: a global window has no end." in told
    assert stream.why("ann", at="2026-01-01 12:00").windows[0].held
    assert not stream.why("bob", window=fw.GlobalWindow()).windows[0].held
    assert stream.why("ann").time == ()  # time means nothing to it


def test_a_window_by_the_clock() -> None:
    spec = fw.key_by("user").processing_time().window(fw.TumblingProcessingTimeWindows.of("1 minute"))
    stream = spec.aggregate(n=fw.Count()).open()
    stream.advance_processing_time(MS)
    stream.process(pa.table({"user": ["ann"]}))
    told = said(stream.why("ann"))
    assert "It fires when the clock reaches 2026-01-01 12:00:59.999, 59 s 999 ms from now." in told
    assert "The stream's clock is at 2026-01-01 12:00:00; only advance_processing_time() moves it." in told
    assert "watermark" not in told


def test_units_and_zones() -> None:
    schema = pa.schema([("user", pa.string()), ("ts", pa.int64())])
    seconds = HOURS.event_time("ts", unit="s").aggregate(n=fw.Count()).open(schema=schema)
    seconds.process(pa.table({"user": ["ann"], "ts": [MS // 1_000]}))
    assert "Window from 1767268800 (2026-01-01 12:00:00) to 1767272400" in said(seconds.why("ann", at=MS // 1_000))
    berlin = SCHEMA.set(1, pa.field("ts", pa.timestamp("us", "Europe/Berlin")))
    stream = HOURS.open(schema=berlin)
    stream.process(rows(("ann", 1, 2.0)).cast(berlin.set(1, pa.field("ts", pa.timestamp("ms", "UTC")))).cast(berlin))
    told = said(stream.why("ann", at="2026-01-01 13:30"))
    assert "Window from 2026-01-01 13:00:00 to 14:00:00" in told
    assert "Times are in Europe/Berlin; those without a date are of 2026-01-01." in told


def test_several_windows_and_keys() -> None:
    windows = {"hour": fw.TumblingEventTimeWindows.of("1 hour"), "day": fw.TumblingEventTimeWindows.of("1 day")}
    spec = fw.key_by("user", "amount").event_time("ts").windows(**windows).aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    stream.process(rows(("ann", 1, 2.0), ("ann", 70, 2.0)))
    report = stream.why(("ann", 2.0), at="2026-01-01 12:30")
    assert [(window.name, window.held, window.holds) for window in report.windows] == [
        ("hour", True, {"n": 1}),
        ("day", True, {"n": 2}),
    ]
    assert "Window 'day' from" in said(report)
    assert report.key == ("ann", 2.0)
    assert len(stream.why(("ann", 2.0)).windows) == 3


def test_rows_that_were_handed_out() -> None:
    spec = fw.key_by("user").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).deduplicate()
    stream = spec.open(schema=SCHEMA)
    stream.process(rows(("ann", 1, 2.0)))
    assert "A row of it was handed out. Other rows of this key and window are dropped." in said(stream.why("ann"))


def test_a_join_says_which_input_holds_it() -> None:
    left, right = fw.key_by("user").event_time("ts"), fw.key_by("user").event_time("ts")
    join = fw.window_join(left, right, fw.TumblingEventTimeWindows.of("1 hour"))
    stream = join.open(("10 seconds", "1 minute"))
    with pytest.raises(StateError, match="why: the stream has seen no batch"):
        stream.why("ann")
    stream.process(left=rows(("ann", 100, 2.0)), right=rows(("ann", 31, 2.0)))
    told = said(stream.why("ann"))
    assert "It holds left_rows = 1, right_rows = 0." in told
    assert "1 min behind its newest element, which is of 2026-01-01 12:31:00." in told
    assert "So the right input holds the windows." in told


def test_a_join_tells_no_newest_element_that_never_came() -> None:
    left, right = fw.key_by("user").event_time("ts"), fw.key_by("user").event_time("ts")
    join = fw.window_join(left, right, fw.TumblingEventTimeWindows.of("1 hour"))
    stream = join.open(("10 seconds", "1 minute"), schemas=(SCHEMA, SCHEMA))
    stream.process(left=rows(("ann", 100, 2.0)), right=rows(("ann", 130, 2.0)))
    stream.advance_watermark(left=MS + 120 * MINUTE)
    told = said(stream.why("ann"))
    assert "The watermark of the left input is at 2026-01-01 14:00:00." in told
    assert "right input is at 2026-01-01 14:08:59.999, 1 min behind its newest element" in told
    stream.process(left=rows(("ann", 1, 2.0)))
    told = said(stream.why("ann"))
    assert "Which rows were late is not recorded: open(trace=10_000) does." in told


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_join_says_which_input_comes_too_late(coalesce: bool) -> None:
    left = fw.key_by("k").event_time("ts", unit="ms")
    right = left.allowed_lateness(100, coalesce=coalesce)
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
    once = "once for each call" if coalesce else "once more"
    for one, other, patient, strict in ((left, right, "right", "left"), (right, left, "left", "right")):
        join = fw.window_join(one, other, fw.TumblingEventTimeWindows.of(10), "full")
        stream = join.open(schemas=(schema, schema))
        stream.process(left=pa.table({"k": [1], "ts": [5]}))
        goes = f"00:00:00.109, 100 ms after its end (allowed lateness of the {patient} input)."
        assert goes in said(stream.why(1, window=(0, 10)))
        stream.advance_watermark(15)
        late = f"{strict} input comes too late for it."
        told = said(stream.why(1, window=(0, 10)))
        assert f"Each late element of the {patient} input fires it {once}; one of the {late}" in told
        told = said(stream.why(2, window=(0, 10)))
        assert f"No row of this key is in it. An element of the {patient} input is taken; one of the {late}" in told
        assert "No row of this key is in it. One that comes now is taken." in said(stream.why(2, window=(10, 20)))
    both = fw.window_join(right, right, fw.TumblingEventTimeWindows.of(10)).open(schemas=(schema, schema))
    both.process(left=pa.table({"k": [1], "ts": [5]}))
    both.advance_watermark(15)
    told = said(both.why(1))
    assert f"Each late element fires it {once}." in told
    assert "100 ms after its end (allowed lateness)." in told


def test_rows_of_the_stream_are_counted() -> None:
    stream = HOURS.bad_rows("drop").open(watermark="1 minute")
    stream.process(rows(("ann", 1, 2.0), ("ann", 100, 2.0)))
    stream.process(rows(("ann", 2, 2.0)))
    told = said(stream.why("ann"))
    assert "Of all 3 rows of all keys so far: 1 late." in told
    assert "Which rows were late is not recorded: open(trace=10_000) does." in told


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"key": "ann", "at": 1, "window": (1, 2)}, "takes at= or window=, not both"),
        ({}, "why: key is missing; give the value of user, None for the key of nulls"),
        ({"key": ("ann", 1)}, "key must be a value for each of user"),
        ({"key": {"name": "ann"}}, "key must have user, got name"),
        ({"key": 7}, "why: key: column 'user'"),
        ({"key": "ann", "at": 1.5}, "at: must be a time"),
        ({"key": "ann", "at": True}, "at: must be a time"),
        ({"key": "ann", "at": "noon"}, "at: 'noon' is no time"),
        ({"key": "ann", "at": 2**70}, "at: must be within int64"),
        ({"key": "ann", "window": 5}, "window must be a TimeWindow"),
        ({"key": "ann", "window": (2, 1)}, "window must be a TimeWindow"),
    ],
)
def test_bad_arguments(arguments: dict, says: str) -> None:
    stream = HOURS.open(schema=SCHEMA)
    with pytest.raises(SpecError, match=says.replace("(", r"\(")):
        stream.why(**arguments)


def test_the_key_of_nulls_is_asked_for_by_none_alone() -> None:
    join = fw.window_join(*[fw.key_by("user").event_time("ts")] * 2, fw.TumblingEventTimeWindows.of("1 hour"))
    for stream in (HOURS.open(), join.open(schemas=(SCHEMA, SCHEMA))):
        with pytest.raises(SpecError, match="why: key is missing; give the value of user"):
            stream.why()
        assert stream.why(None).key is None


def test_a_stream_that_has_failed_or_has_no_state_says_so() -> None:
    stream = HOURS.open()
    with pytest.raises(StateError, match="inspect: the stream has seen no batch"):
        stream.inspect()
    failing = (
        fw.key_by("user")
        .event_time("ts")
        .window(fw.TumblingEventTimeWindows.of("1 hour"))
        .process(_Failing(), output="n bigint")
        .open(schema=SCHEMA)
    )
    failing.process(rows(("ann", 1, 2.0)))
    with pytest.raises(fw.UserFunctionError):
        failing.advance_watermark(fw.MAX_TIMESTAMP)
    for call in (failing.inspect, lambda: failing.why("ann")):
        with pytest.raises(StateError, match="it failed in the middle of a batch"):
            call()


class _Failing(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        raise ValueError("no")


def test_many_windows_are_told_of_by_their_number() -> None:
    stream = HOURS.open(schema=SCHEMA)
    stream.process(rows(*(("ann", 60 * hour, 1.0) for hour in range(25))))
    report = stream.why("ann")
    assert len(report.windows) == 25
    assert "and 5 more windows" in said(report)


def test_a_time_in_thousands_of_windows() -> None:
    spec = fw.key_by("user").event_time("ts").window(fw.SlidingEventTimeWindows.of("1 hour", "1 s"))
    stream = spec.aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(("ann", 1, 2.0)))
    report = stream.why("ann", at=MS + 30 * MINUTE)
    assert sum(window.held for window in report.windows) == 31 * 60
    assert sum(not window.held for window in report.windows) == 20


def test_columns_of_inspect_leave_keys_their_names() -> None:
    window = fw.TumblingEventTimeWindows.of(10)
    start = fw.key_by("rows").event_time("ts").window(window)
    table = pa.table({"rows": ["x", "x"], "ts": [1, 2], "v": [1, 2]})
    stream = start.top(1, by="v").open()
    stream.process(table)
    assert stream.inspect().select(["rows", "rows_"]).to_pylist() == [{"rows": "x", "rows_": 2}]
    elements = fw.key_by("elements").event_time("ts").window(window).evictor(fw.CountEvictor.of(5))
    stream = elements.aggregate(n=fw.Count()).open()
    stream.process(table.rename_columns(["elements", "ts", "v"]))
    assert stream.inspect().select(["elements", "elements_"]).to_pylist() == [{"elements": "x", "elements_": 2}]


class _Product(fw.AggregateFunction):
    def create_accumulator(self):
        return 1

    def add(self, value, accumulator):
        return accumulator * value.v

    def get_result(self, accumulator):
        return accumulator


def test_an_aggregate_of_the_name_of_what_functions_hold_is_shown() -> None:
    start = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    stream = start.aggregate(contents=fw.Count(), product=_Product(), output="product bigint").open()
    stream.process(pa.table({"ts": [1, 2], "v": [3, 2]}))
    assert stream.inspect().select(["contents", "contents_"]).to_pylist() == [{"contents": 2, "contents_": "6"}]


def test_a_zone_that_this_machine_does_not_know_is_told() -> None:
    odd = SCHEMA.set(1, pa.field("ts", pa.timestamp("ms", "Nowhere/Land")))
    stream = HOURS.open(schema=odd)
    stream.process(pa.table([["ann"], pa.array([MS], odd.field("ts").type), [2.0]], schema=odd))
    told = said(stream.why("ann", at="2026-01-01 12:30"))
    assert "Window from 2026-01-01 12:00:00 to 13:00:00" in told
    assert "Times are in UTC, as this machine does not know the zone 'Nowhere/Land'; those" in told


@pytest.mark.parametrize("zone, shown", [("+05:30", "17:30"), ("-0130", "10:30"), ("Zulu", "12:00"), ("z", "12:00")])
def test_zones_without_a_name(zone: str, shown: str) -> None:
    assert TimeText(zone).text(MS) == f"2026-01-01 {shown}:00"


def test_a_sketch_is_told_by_what_it_counts():
    table = pa.table({"ts": [1, 2, 3], "user": [1, 2, 2], "text": [b"a", b"HYLL", b"b"]})
    keyed = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    stream = keyed.aggregate(users=fw.HyperLogLog("user", output="sketch"), least=fw.Min("text")).open()
    stream.process(table)
    assert "It holds users = a sketch of about 2 values, least = b'HYLL'." in stream.why(None).text


@pytest.mark.parametrize(
    "windows",
    [
        [fw.SlidingEventTimeWindows.of(10, 3, 1)],
        [fw.SlidingEventTimeWindows.of(3, 10, -2)],
        [fw.CumulativeEventTimeWindows.of(12, 4, 3)],
        [fw.TumblingEventTimeWindows.of(7)],
        [fw.TumblingEventTimeWindows.of(7), fw.TumblingEventTimeWindows.of(21)],
    ],
    ids=str,
)
def test_an_element_is_late_from_the_end_of_its_last_window(windows: list) -> None:
    start = fw.key_by().event_time("ts").allowed_lateness(5)
    spec = start.window(windows[0]) if len(windows) == 1 else start.windows(a=windows[0], b=windows[1])
    for time in range(-40, 40):
        ends = [one.end for assigner in windows for one in assigner.assign_windows(None, time, None)]
        assert late_from(spec, time) == (max(ends) - 1 + 5 if ends else None)
