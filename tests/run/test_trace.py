"""The journal of a stream's decisions: what fired and by what, what was late, what moved the watermark."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.run.stream import Stream
from fastwin.run.why.journal import Moved
from fastwin.testing import WindowHarness

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])
TENS = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())


def rows(*elements: tuple[str | None, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in elements], SCHEMA)


def said(report: fw.WhyReport) -> str:
    """The text of a report, without line breaks."""
    return " ".join(report.text.split())


def test_a_late_element_and_the_one_that_made_it_late() -> None:
    stream = TENS.open(watermark=5, trace=100)
    stream.process(rows(("a", 3), ("b", 12)))
    stream.process(rows(("c", 31), ("b", 30)))
    stream.process(rows(("b", 40)))
    stream.process(rows(("a", 7), ("b", 8)))
    report = stream.why("a", at=4)
    (late,) = report.late
    assert (late.key, late.time, late.watermark, late.call) == ("a", 7, 34, 4)
    assert (late.moved.key, late.moved.time, late.moved.watermark) == ("b", 40, 34)
    (fired,) = report.fired
    assert (fired.call, fired.by, fired.start, fired.end, fired.watermark) == (2, "watermark", 0, 10, 25)
    assert report.text.splitlines()[8:] == [
        "Window from 0 to 10",
        "  It is gone: the watermark has passed its end, at 9. An element of it would be late now.",
        "  In call 2 it fired: the watermark was moved to 25, by the element of 31 of k = 'c'.",
        "",
        "Rows",
        "  This key has no window now.",
        "  Of all 7 rows of all keys so far: 2 late.",
        "  The element of 7 came late, in call 4: the watermark was at 34, and its windows were gone from 9 on. The",
        "    element of 31 of k = 'c' had moved it past that, in call 2.",
    ]
    assert report.to_dict()["late"][0]["moved"]["by"] == "element"
    assert [one.time for one in stream.why("b").late] == [8]
    assert stream.why("b", at=35).late == ()


@pytest.mark.parametrize("keys", [("k",), ("k", "other"), ()])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string_view())], ids=str)
def test_keys_that_are_views_are_told(keys: tuple[str, ...], kind: pa.DataType) -> None:
    spec = fw.key_by(*keys).event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(n=fw.Count()).open(watermark=5, trace=2)
    for times in ([3, 12], [31, 30], [7, 8, 9]):
        texts = pa.array([f"key {time}" for time in times])
        column = (texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts).cast(kind)
        stream.process(pa.table({"k": column, "other": column, "ts": pa.array(times, pa.int64())}))
    told = [f"key {time}" if len(keys) == 1 else (f"key {time}",) * len(keys) for time in (8, 9, 31)]
    late = [one for key in dict.fromkeys(told[:2]) for one in stream.why(key or None).late]
    assert [(one.key, one.time, one.moved.key, one.moved.time) for one in late] == [
        (told[0], 8, told[2], 31),
        (told[1], 9, told[2], 31),
    ]


def test_the_watermark_was_moved_by_the_caller() -> None:
    stream = TENS.allowed_lateness(5).open(trace=100)
    stream.advance_watermark(20)
    stream.process(rows(("a", 3), ("a", 22)))
    report = stream.why("a")
    assert [one.moved.by for one in report.late] == ["caller"]
    assert "It was moved there in call 1, by advance_watermark()." in said(report)
    assert "It had been moved in call 1, by advance_watermark()." in said(report)


def test_what_fired_a_window() -> None:
    stream = TENS.allowed_lateness(50).open(trace=100)
    stream.process(rows(("a", 3)))
    stream.advance_watermark(9)
    stream.push({"k": "a", "ts": 4})
    assert [(one.call, one.by) for one in stream.why("a").fired] == [(2, "watermark"), (3, "element")]
    told = "In call 2 it fired: the watermark was moved to 9, by advance_watermark(). In call 3 an element fired it."
    assert told in said(stream.why("a", at=5))
    assert told in said(stream.why("a"))
    stream.advance_watermark(60)
    assert "2 firings of windows that are gone; the last one: window from 0 to 10, in call 3." in said(stream.why("a"))
    clock = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = clock.open(trace=100)
    stream.process(pa.table({"k": ["a"]}))
    stream.advance_processing_time(9)
    (fired,) = stream.why("a").fired
    assert (fired.by, fired.processing_time) == ("clock", 9)


def test_a_held_window_says_what_has_fired_it() -> None:
    stream = TENS.allowed_lateness(50).open(watermark=5, trace=100)
    stream.process(rows(("a", 3)))
    stream.process(rows(("b", 27)))
    stream.process(rows(("a", 4)))
    told = said(stream.why("a", at=3))
    assert "In call 2 it fired: the watermark was moved to 21, by the element of 27 of k = 'b'." in told
    assert "In call 3 an element fired it." in told
    assert "The journal knows of" not in told
    assert stream.why("a").fired[0].moved.time == 27
    for time in range(12):
        stream.process(rows(("a", time % 10)))
    assert "4 earlier firings of it are in report.fired. In call 6 an element" in said(stream.why("a"))


def test_a_session_says_what_has_fired_it_while_it_was_shorter() -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_gap(5))
    stream = spec.allowed_lateness(20).aggregate(n=fw.Count()).open(trace=100)
    stream.process(rows(("a", 3)))
    stream.advance_watermark(8)
    stream.process(rows(("a", 6)))
    told = said(stream.why("a"))
    assert "It has not fired since it has grown; while it was shorter, it may have." in told
    assert "In call 2 it fired, from 3 to 8: the watermark was moved to 8, by advance_watermark()." in told


def test_a_session_that_a_changelog_deletes_has_not_fired_by_that() -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_gap(5))
    spec = spec.allowed_lateness(20).with_changelog().aggregate(n=fw.Count())
    stream = spec.open(trace=100)
    stream.process(rows(("a", 3), ("a", 10)))
    stream.advance_watermark(15)
    result = stream.process(rows(("a", 7)))
    assert result.main["change"].to_pylist() == ["delete", "delete", "insert"]
    fired = [(one.call, one.start, one.end, one.by) for one in stream.why("a").fired]
    assert fired == [(2, 3, 8, "watermark"), (2, 10, 15, "watermark"), (3, 3, 15, "element")]
    assert said(stream.why("a")).count("an element fired it") == 1


class Each(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        return [(element["ts"],) for element in elements]


@pytest.mark.parametrize("ending", ["top", "process"])
def test_a_firing_of_several_rows_is_one(ending: str) -> None:
    windows = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    spec = windows.top(2, by="ts") if ending == "top" else windows.process(Each(), output="time bigint")
    stream = spec.open(trace=2, schema=SCHEMA)
    stream.process(rows(*((key, time) for key in "ab" for time in range(3))))
    stream.advance_watermark(9)
    assert [len(stream.why(key).fired) for key in "ab"] == [1, 1]


@pytest.mark.parametrize(
    "window", [fw.EventTimeSessionWindows.with_gap(5), fw.EventTimeSessionWindows.with_dynamic_gap("gap")]
)
def test_a_late_element_of_a_session_that_would_have_had_the_time(window: fw.WindowAssigner) -> None:
    schema = SCHEMA.append(pa.field("gap", pa.int64()))
    stream = (
        fw.key_by("k").event_time("ts", unit="ms").window(window).aggregate(n=fw.Count()).open(watermark=0, trace=9)
    )
    stream.process(pa.table([["a", "a"], [3, 40], [5, 5]], schema=schema))
    stream.process(pa.table([["a"], [2], [5]], schema=schema))
    assert [one.time for one in stream.why("a", at=4).late] == [2]
    assert "The element of 2 came late" in said(stream.why("a", at=4))
    assert [one.time for one in stream.why("a", window=(2, 8)).late] == [2]


@pytest.mark.parametrize(
    "kind, value, asked",
    [
        (pa.float64(), float("nan"), float("nan")),
        (pa.timestamp("ms", "UTC"), datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)),
    ],
)
def test_a_key_is_found_in_the_journal_as_it_is_in_the_column(kind: pa.DataType, value: object, asked: object) -> None:
    schema = SCHEMA.set(0, pa.field("k", kind))
    stream = TENS.open(watermark=0, trace=9, schema=schema)
    for time in (3, 40, 4):
        stream.process(pa.table([pa.array([value], kind), [time]], schema=schema))
    report = stream.why(asked, at=3)
    assert ([one.time for one in report.late], [one.start for one in report.fired]) == ([4], [0])
    assert "datetime" not in said(report)


INFINITY = 2**63 - 1


@pytest.mark.parametrize(
    "keys, told",
    [
        (pa.array([INFINITY, INFINITY - 1], pa.timestamp("us")), f"{INFINITY} of timestamp[us]"),
        (pa.array([1, 2], pa.timestamp("ns")), "1970-01-01 00:00:00 +1 ns"),
        (pa.array([-1, 1], pa.timestamp("ns")), "1970-01-01 00:00:00 -1 ns"),
        (pa.array([b"\xff", b"a"], pa.binary()).view(pa.string()), "the text b'\\xff'"),
        (pa.array([1, 2], pa.timestamp("us", "Nowhere/Land")), "1 of timestamp[us, tz=Nowhere/Land]"),
    ],
    ids=str,
)
def test_keys_that_python_has_no_object_for_are_told_as_text(keys: pa.Array, told: str) -> None:
    schema = SCHEMA.set(0, pa.field("k", keys.type))
    stream = TENS.open(watermark=0, trace=9, schema=schema)
    for time in (3, 40, 4):
        stream.process(pa.table([keys, [time, time]], schema=schema))
    report = stream.why(keys[0])
    assert report.key == told
    assert ([one.time for one in report.late], [one.start for one in report.fired]) == ([4], [0])
    harness = WindowHarness(TENS, schema)
    harness.push({"k": keys[0], "ts": 3})
    assert [one.key for one in harness.advance_watermark(9)] == [told]
    assert len(harness.timeline(told).entries) == 3


def test_the_journal_is_bounded_and_says_what_it_lost() -> None:
    stream = TENS.open(watermark="monotonous", trace=3)
    for i in range(10):
        stream.process(rows((f"k{i}", 10 * i)))
    report = stream.why("k1")
    assert report.fired == ()
    assert "The journal begins at call 9; 16 decisions before it are lost (trace=3)." in said(report)
    stream = TENS.open(trace=3)
    stream.process(rows(*((f"k{i}", 1) for i in range(10))))
    stream.advance_watermark(9)
    assert "The journal begins at call 2; 8 decisions before it are lost (trace=3)." in said(stream.why("k0"))
    assert [len(stream.why(f"k{i}").fired) for i in range(10)] == [0] * 7 + [1] * 3


def test_a_traced_stream_gives_what_another_one_gives() -> None:
    spec = TENS.side_output_late_data()
    plain, traced = (spec.open(watermark=3, **options) for options in ({}, {"trace": 10}))
    for step in range(20):
        element = {"k": "ab"[step % 2], "ts": step * 7 % 40}
        results = [stream.push(element) for stream in (plain, traced)]
        assert results[0] == results[1]
    assert plain.metrics == traced.metrics
    assert plain.snapshot() == traced.snapshot()
    assert type(plain) is Stream


def test_a_restored_stream_says_so() -> None:
    stream = TENS.open(watermark=3)
    stream.process(rows(("a", 30)))
    traced = TENS.open(watermark=3, trace=5)
    traced.restore(stream.snapshot())
    assert "by the state that was restored" in said(traced.why("a"))


def test_a_watermark_that_was_restored_to_earlier_moves_again() -> None:
    stream = TENS.open(trace=100, schema=SCHEMA)
    saved = [stream.snapshot()]
    stream.advance_watermark(1000)
    saved.append(stream.snapshot())
    stream.restore(saved[:1])
    assert stream.why("a").time[0].startswith("There is no watermark yet")
    assert "It was moved there" not in said(stream.why("a"))
    stream.process(rows(("a", 5)))
    stream.advance_watermark(20)
    stream.process(rows(("a", 6)))
    report = stream.why("a")
    assert [(one.by, one.moved.call) for one in report.fired] == [("watermark", 3)]
    assert [(one.moved.by, one.moved.before, one.moved.watermark) for one in report.late] == [
        ("caller", fw.MIN_TIMESTAMP, 20)
    ]
    assert "It had been moved in call 3, by advance_watermark()." in said(report)
    stream.restore(saved[1:])
    stream.process(rows(("a", 7)))
    report = stream.why("a")
    assert [one.moved.by for one in report.late] == ["caller", "restore"]
    first, second = (line for line in report.rows if "came late" in line)
    assert "It had been moved in call 3, by advance_watermark()." in first
    assert "It had been moved in call 4, by the state that was restored." in second


def test_a_session_that_is_gone() -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_gap(10))
    stream = spec.aggregate(n=fw.Count()).open(watermark="monotonous", trace=100)
    stream.process(rows(("a", 3), ("a", 9), ("b", 50)))
    report = stream.why("a", at=12)
    assert [(one.start, one.end) for one in report.fired] == [(3, 19)]
    assert "In call 1 it fired, from 3 to 19: the watermark was moved to 49, by the element of 50 of k = 'b'." in said(
        report
    )
    assert stream.why("a", at=20).fired == ()


@pytest.mark.parametrize("trace", [0, -1, True, 2.5, "all"])
def test_bad_sizes(trace: object) -> None:
    with pytest.raises(SpecError, match="trace: must be the number of decisions that are kept, at least 1, got"):
        TENS.open(trace=trace)


LEFT = fw.key_by("k").event_time("ts", unit="ms").allowed_lateness(50).side_output_late_data()
JOIN = fw.window_join(LEFT, fw.key_by("k").event_time("ts", unit="ms"), fw.TumblingEventTimeWindows.of(10), "full")


def test_a_join_tells_which_input_moved_the_watermark_and_had_late_rows() -> None:
    stream = JOIN.open(watermark=(5, 0), schemas=(SCHEMA, SCHEMA), trace=100)
    stream.process(left=rows(("a", 3), ("b", 41)), right=rows(("a", 4)))
    stream.process(right=rows(("c", 12), ("c", 31)))
    stream.process(left=rows(("a", 5)), right=rows(("a", 6)))
    report = stream.why("a", at=4)
    assert [(one.call, one.time, one.side, one.watermark) for one in report.late] == [(3, 6, "right", 30)]
    assert [(one.call, one.by, one.watermark) for one in report.fired] == [(2, "watermark", 30), (3, "element", 30)]
    (moved,) = {one.moved for one in report.late}
    assert (moved.call, moved.key, moved.time, moved.side, moved.watermark) == (2, "c", 31, "right", 30)
    told = said(report)
    assert "It was moved there in call 2, by the element of the right input of 00:00:00.031 of k = 'c'." in told
    assert (
        "In call 2 it fired: the watermark was moved to 00:00:00.030, by the element of the right input of 00:00:00.031"
        in told
    )
    assert (
        "The element of the right input of 00:00:00.006 came late, in call 3: the watermark was at 00:00:00.030" in told
    )
    assert (
        "were gone from 00:00:00.009 on. The element of the right input of 00:00:00.031 of k = 'c' had moved it past that"
        in told
    )
    stream.advance_watermark(left=200)
    stream.process(right=rows(("d", 90)))
    assert "It was moved there in call 5, by the element of the right input of 00:00:00.090 of k = 'd'." in said(
        stream.why("a")
    )
    stream.advance_watermark(right=120)
    assert "It was moved there in call 6, by advance_watermark()." in said(stream.why("a"))
    stream.process(left=rows(("a", 5)))
    assert (
        "The element of the left input of 00:00:00.005 came late, in call 7: the watermark was at 00:00:00.120"
        in said(stream.why("a"))
    )
    assert [one.side for one in stream.why("a", at=4).late] == ["right", "left"]


def test_the_lesser_watermark_names_the_element_that_moved_time() -> None:
    stream = JOIN.open(watermark=(0, 0), schemas=(SCHEMA, SCHEMA), trace=100)
    stream.process(left=rows(("a", 50)))
    stream.process(left=rows(("b", 60)), right=rows(("c", 31)))
    assert "by the element of the right input of 00:00:00.031 of k = 'c'" in said(stream.why("a"))
    stream.process(right=rows(("d", 90)))  # the left input's element has set the value, earlier: this one let it go
    assert "The watermark of the left input is at 1970-01-01 00:00:00.059" in said(stream.why("a"))
    assert "It was moved there in call 3, by the element of the right input of 00:00:00.090 of k = 'd'." in said(
        stream.why("a")
    )
    with pytest.raises(SpecError, match="trace: must be the number of decisions"):
        JOIN.open(trace=0)
    assert JOIN.open(schemas=(SCHEMA, SCHEMA)).why("a").late is None


def test_a_join_tells_that_a_quiet_input_let_time_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = JOIN.open(watermark=(0, 0), schemas=(SCHEMA, SCHEMA), idle="30 s", trace=100)
    stream.process(left=rows(("a", 3), ("b", 15)), right=rows(("a", 4)))
    now[0] += 20
    stream.process(left=rows(("b", 12)))
    now[0] += 20
    stream.process()  # the right input is idle: time is that of the left one
    now[0] += 20
    stream.process()  # both are
    moved = [(one.call, one.by, one.watermark, one.side) for one in stream._stream._journal.of(Moved)]
    assert moved == [(1, "element", 3, "right"), (3, "idle", 14, None), (4, "idle", 10_015, None)]
    told = said(stream.why("a", at=3))
    assert "In call 3 it fired: the watermark was moved to 00:00:00.014, because an input had had no element" in told
    stream.process(right=rows(("c", 60_000)), left=rows(("c", 50_000)))
    assert stream.advance_watermark(left=70_000, right=70_000).main.num_rows
    assert [one.by for one in stream._stream._journal.of(Moved)][3:] == ["element", "caller"]
