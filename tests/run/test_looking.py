"""What is shown of windows that would raise if they fired now, of bad rows, and of windows that overlap."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import AggregateOverflowError, SpecError
from fastwin.testing import WindowHarness

KEYED = fw.key_by("k").event_time("ts")
TENS = KEYED.window(fw.TumblingEventTimeWindows.of(10))
SLIDING = KEYED.window(fw.SlidingEventTimeWindows.of(20, 10))
SESSIONS = KEYED.window(fw.EventTimeSessionWindows.with_gap(5))
COUNTED = TENS.trigger(fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger.of(100)))
OPERATORS = {"aligned": TENS, "sliding": SLIDING, "sessions": SESSIONS, "general": COUNTED}


class AtLeastTwo(fw.NumpyAggregate):
    """A count that is refused below two."""

    state = {"n": "int64"}  # noqa: RUF012
    output = pa.int64()

    def lift(self, values: np.ndarray) -> Any:
        return np.ones(len(values), np.int64)

    def combine(self, one: Any, other: Any) -> Any:
        return [a + b for a, b in zip(one, other, strict=True)]

    def lower(self, state: Any) -> Any:
        if (state[0] < 2).any():
            raise ValueError("too few")
        return state[0]


def rows(*elements: tuple[str, int, int]) -> pa.Table:
    keys, times, values = zip(*elements, strict=True)
    return pa.table({"k": keys, "ts": pa.array(times, pa.int64()), "v": pa.array(values, pa.int64())})


@pytest.mark.parametrize("name", OPERATORS)
def test_a_sum_that_is_too_large_for_the_moment_is_null_to_those_who_look(name: str) -> None:
    stream = OPERATORS[name].aggregate(total=fw.Sum("v"), n=fw.Count()).open()
    stream.process(rows(("a", 1, 2**62), ("a", 2, 2**62), ("b", 1, 5), ("c", 3, 7)))
    found = stream.inspect().to_pylist()
    totals = {row["k"]: (row["total"], row["n"]) for row in found}
    assert totals == {"a": (None, None), "b": (5, 1), "c": (7, 1)}
    assert {window.holds["total"] for window in stream.why("a").windows if window.held} == {None}
    stream.process(rows(("a", 4, -(2**62))))
    fired = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    assert {(row["k"], row["total"]) for row in fired.to_pylist()} >= {("a", 2**62), ("b", 5), ("c", 7)}


def test_a_sum_that_is_too_large_still_raises_when_its_window_fires() -> None:
    stream = TENS.aggregate(total=fw.Sum("v")).open()
    stream.process(rows(("a", 1, 2**62), ("a", 2, 2**62)))
    assert stream.inspect()["total"].to_pylist() == [None]
    with pytest.raises(AggregateOverflowError):
        stream.advance_watermark(9)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_aggregate_of_ones_own_that_raises_is_null_to_those_who_look(name: str) -> None:
    stream = OPERATORS[name].aggregate(m=AtLeastTwo("v")).open()
    stream.process(rows(("a", 1, 1), ("b", 1, 1), ("b", 2, 1)))
    assert {row["k"]: row["m"] for row in stream.inspect().to_pylist()} == {"a": None, "b": 2}
    assert {window.holds["m"] for window in stream.why("b").windows if window.held} == {2}


def test_a_row_whose_gap_is_none_is_in_no_picture_and_moves_no_watermark() -> None:
    gaps = KEYED.window(fw.EventTimeSessionWindows.with_dynamic_gap("gap")).bad_rows("drop").aggregate(n=fw.Count())
    table = pa.table({"k": ["a"] * 3, "ts": [0, 100_000, 1_000], "gap": pa.array([5_000, None, 5_000], pa.int64())})
    entries = gaps.timeline(table, watermark="0 s").entries
    assert [one.time_ms for one in entries if hasattr(one, "kind")] == [0, 1_000]
    assert {one.kind for one in entries if hasattr(one, "kind")} == {"in time"}
    harness = WindowHarness(gaps, schema=table.schema)
    for row in table.to_pylist():
        harness.push(row)
    assert [one.time_ms for one in harness.timeline().entries if hasattr(one, "kind")] == [0, 1_000]


@pytest.mark.parametrize("assigner", ["sliding", "tumbling"])
def test_an_element_is_late_for_a_window_and_in_time_for_another(assigner: str) -> None:
    windows = {"sliding": SLIDING, "tumbling": TENS}[assigner]
    stream = windows.aggregate(n=fw.Count()).open()
    stream.process(rows(("a", 15, 1)))
    stream.advance_watermark(25)
    said = " ".join(stream.why("a", window=(0, 20) if assigner == "sliding" else (10, 20)).text.split())
    assert ("It takes no element any more." in said) == (assigner == "sliding")
    assert ("An element of it would be late now." in said) == (assigner == "tumbling")
    stream.process(rows(("a", 15, 1)))
    assert stream.metrics.num_late_records_dropped == (assigner == "tumbling")


def test_a_row_that_is_near_one_that_was_handed_out_is_not_said_to_be_taken() -> None:
    stream = KEYED.deduplicate(within=10_000).open()
    stream.process(rows(("a", 6_000, 1)))
    said = " ".join(stream.why("a", window=(0, 10_000)).text.split())
    assert "unless another one of its key, less than 10 s away, was." in said
    assert stream.process(rows(("a", 0, 1))).main.num_rows == 0


def test_bad_rows_of_a_join_are_told() -> None:
    side = KEYED.bad_rows("drop")
    join = fw.window_join(side, side, fw.TumblingEventTimeWindows.of(10)).open()
    one = pa.table({"k": ["a", "a"], "ts": pa.array([1, None], pa.int64())})
    join.process(left=one, right=one.slice(0, 1))
    assert "Of all 3 rows of all keys so far: 1 bad." in " ".join(join.why("a").text.split())


def test_windows_do_not_take_the_place_of_a_span_of_time() -> None:
    with pytest.raises(SpecError, match="deduplicate: within= takes the place of windows, but the spec has tumbling"):
        KEYED.deduplicate(within="10 s").window(fw.TumblingEventTimeWindows.of(10)).run(rows(("a", 1, 1)))
    with pytest.raises(SpecError, match="keep='last' goes by 'ts', and the event time was set to 'v' behind it"):
        TENS.deduplicate("last").event_time("v")


def test_an_aggregate_with_the_name_of_a_column_of_pane_info_is_drawn() -> None:
    (fired,) = (
        one
        for one in TENS.aggregate(pane_timing=fw.Count()).timeline(rows(("a", 1, 1))).entries
        if hasattr(one, "timing")
    )
    assert (fired.timing, fired.text) == ("on time", "1")


@pytest.mark.parametrize("name", [*OPERATORS, "several", "rows", "firsts"])
def test_a_window_that_was_gone_before_a_restart_with_a_longer_lateness_stays_so(name: str) -> None:
    def spec(lateness: int) -> fw.WindowSpec:
        if name == "several":
            both = KEYED.windows(ten=TENS.assigner, twenty=fw.TumblingEventTimeWindows.of(20))
            return both.allowed_lateness(lateness).aggregate(n=fw.Count())
        windows = OPERATORS.get(name, TENS).allowed_lateness(lateness)
        if name == "rows":
            return windows.top(1, by="v")
        return windows.deduplicate() if name == "firsts" else windows.aggregate(n=fw.Count())

    old = spec(0).open()
    old.process(rows(("a", 5, 1)))
    old.advance_watermark(30)
    new = spec(100).open()
    new.restore(old.snapshot())
    said = " ".join(new.why("a", at=5).text.split())
    assert "is taken" not in said and "would begin one" not in said
    if name != "sessions":
        assert "It is gone, if it ever was there: it went before a restart, when the allowed lateness was" in said
    new.process(rows(("a", 5, 1)))
    assert new.metrics.num_late_records_dropped == 1
    assert "is taken" in (later := " ".join(new.why("a", at=45).text.split())) or "would begin one" in later


@pytest.mark.parametrize(
    "at, bounds",
    [
        (6, "from 10 to 15"),
        (15, "from 10 to 15 and the one from 20 to 25"),
        (19, "from 20 to 25"),
        (5, "from 10 to 15"),
    ],
)
def test_an_element_that_would_touch_a_session_would_join_it(at: int, bounds: str) -> None:
    stream = SESSIONS.aggregate(n=fw.Count()).open()
    stream.process(rows(("a", 20, 1), ("a", 10, 1)))
    stream.advance_watermark(12)  # an element at 5 or 6 alone would be late
    (window,) = stream.why("a", at=at).windows
    assert window.sentences[0] == (
        f"No session of this key is at that time. An element at that time would join the one {bounds}."
    )
    assert (window.start, window.end, window.gone_at) == (None, None, None)
    stream.process(rows(("a", at, 1)))
    assert stream.metrics.num_late_records_dropped == 0
    assert [one.held for one in stream.why("a", at=at).windows] == [True]


@pytest.mark.parametrize("at", [4, 26])
def test_an_element_that_touches_no_session_joins_none(at: int) -> None:
    stream = SESSIONS.aggregate(n=fw.Count()).open()
    stream.process(rows(("a", 20, 1), ("a", 10, 1)))
    assert "would begin one" in stream.why("a", at=at).windows[0].sentences[0]


class AtTheEnd(fw.Trigger):
    """Fires when no more elements can come."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> fw.TriggerResult:
        ctx.register_event_time_timer(fw.MAX_TIMESTAMP)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> fw.TriggerResult:
        return fw.TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> fw.TriggerResult:
        return fw.TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


def test_no_element_brings_the_end_of_time() -> None:
    spec = KEYED.window(fw.GlobalWindows.create()).trigger(AtTheEnd())
    stream = spec.aggregate(n=fw.Count()).open(watermark=3)
    stream.process(rows(("a", 5, 1)))
    (window,) = stream.why("a").windows
    assert window.fires_at == fw.MAX_TIMESTAMP
    assert "Only advance_watermark(fw.MAX_TIMESTAMP) brings it there." in window.sentences
