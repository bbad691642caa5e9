"""Windows that are asked for by bounds or by a time: those that no assigner makes, sessions that grew, many of them."""

import pyarrow as pa

import fastwin as fw

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])
KEYED = fw.key_by("k").event_time("ts", unit="ms")


def rows(*elements: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in elements], SCHEMA)


def said(report: fw.WhyReport) -> str:
    """The text of a report, without line breaks."""
    return " ".join(report.text.split())


def test_a_window_that_the_assigner_does_not_make() -> None:
    stream = KEYED.window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(("a", 5)))
    told = said(stream.why("a", window=(3, 8)))
    assert "There is no such window: tumbling windows of 10 ms have one from 0 to 10 there." in told
    assert "One that comes now is taken" not in told
    assert "no such window" in said(stream.why("a", window=fw.GlobalWindow()))
    stream = KEYED.window(fw.SlidingEventTimeWindows.of(10, 2)).aggregate(n=fw.Count()).open(schema=SCHEMA)
    assert "have 5 there, such as one from" in said(stream.why("a", window=(0, 5)))
    assert "no such window" not in said(stream.why("a", window=(0, 10)))
    stream = KEYED.count_window(3).aggregate(n=fw.Count()).open(schema=SCHEMA)
    assert "There is no such window: there is the global one alone." in said(stream.why("a", window=(0, 10)))


def test_a_session_that_has_grown() -> None:
    spec = KEYED.window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    stream.process(rows(("a", 3), ("a", 7)))
    report = stream.why("a", window=(3, 8))
    assert [(window.start, window.end, window.held) for window in report.windows] == [(3, 8, False), (3, 12, True)]
    assert "No session of this key has these bounds now. Sessions grow and merge: there is one from 3 to 12." in said(
        report
    )
    assert [window.held for window in stream.why("a", window=(3, 12)).windows] == [True]


def test_windows_of_a_time_that_are_there_and_that_are_not() -> None:
    stream = KEYED.window(fw.SlidingEventTimeWindows.of(10, 5)).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(("a", 12)))
    stream.advance_watermark(9)
    missing, held = stream.why("a", at=9).windows
    assert (missing.start, missing.held, held.start, held.held) == (0, False, 5, True)
    assert missing.sentences[0].startswith("It is gone, if it ever was there: the watermark has passed its end, at 9.")


def test_processing_time_knows_no_late_elements() -> None:
    for window in (fw.ProcessingTimeSessionWindows.with_gap(5), fw.TumblingProcessingTimeWindows.of(5)):
        stream = fw.key_by("k").processing_time().window(window).aggregate(n=fw.Count()).open(schema=SCHEMA)
        stream.advance_processing_time(100)
        told = said(stream.why("a", at=50))
        assert "the clock has passed" in told
        assert "late" not in told
        assert "watermark" not in told


def test_what_a_firing_has_taken() -> None:
    stream = KEYED.count_window(2).aggregate(n=fw.Count()).open(schema=SCHEMA, trace=9)
    stream.process(rows(("a", 3), ("a", 4)))
    assert "a firing took what it held" in said(stream.why("a", at=3))
    assert "or a firing took it" in said(stream.why("b", at=3))


def test_a_trigger_that_never_fires_and_one_that_is_due() -> None:
    windows = KEYED.window(fw.TumblingEventTimeWindows.of(10))
    for trigger, words in (
        (fw.NeverTrigger(), "It has not fired. Its trigger never fires. It goes when"),
        (fw.ContinuousProcessingTimeTrigger.of(1_000), "It fires when the clock reaches 9: as soon as it moves."),
    ):
        stream = windows.trigger(trigger).aggregate(n=fw.Count()).open(schema=SCHEMA)
        stream.advance_processing_time(500)
        stream.process(rows(("a", 3)))
        assert words in said(stream.why("a"))


def test_the_trigger_of_results_that_are_rows() -> None:
    windows = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.CountTrigger.of(2))
    stream = windows.top(2, by="ts").open(schema=SCHEMA)
    stream.process(rows(("a", 3)))
    assert "Its trigger fires every 2 elements: 1 of 2 have come." in said(stream.why("a"))


def test_many_windows_of_a_time() -> None:
    """The answer takes time in proportion to them, not to their square."""
    stream = KEYED.window(fw.SlidingEventTimeWindows.of(10_000, 1)).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(("a", 3)))
    assert sum(window.held for window in stream.why("a", at=4).windows) == 9_999
    (window,) = stream.why("a", window=(3, 10_003)).windows
    assert window.holds == {"n": 1}
