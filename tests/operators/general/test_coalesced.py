"""Elements of one call that have no order among each other, on the general operator."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("gap", pa.int64())])
SESSIONS = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap("gap"))
LATENESS = 3
ROW = st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(1, 25))
STEPS = st.lists(st.tuples(st.lists(ROW, max_size=8), st.integers(0, 20)), min_size=1, max_size=5)


def table(*rows: tuple[int, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def firings(result: fw.Result) -> list[tuple[int, int, int, int]]:
    names = ("k", "window_start", "window_end", "n")
    main = [result.main[name].cast(pa.int64()).to_pylist() for name in names]
    return sorted(zip(*main, strict=True))


class Model:
    """Sessions that all elements of a call merge into before it is decided what is late."""

    def __init__(self) -> None:
        self.sessions: list[list[int]] = []  # key, start, end, elements
        self.watermark = -(2**62)

    def process(self, rows: list[tuple[int, int, int]]) -> tuple[list[Any], list[Any]]:
        parts = [[*session, []] for session in self.sessions] + [
            [k, t, t + gap, 1, [(k, t, gap)]] for k, t, gap in rows
        ]
        merged: list[Any] = []
        for key, start, end, n, new in sorted(parts, key=lambda part: part[:2]):
            if merged and merged[-1][0] == key and start <= merged[-1][2]:
                last = merged[-1]
                last[2:] = max(end, last[2]), n + last[3], new + last[4]
            else:
                merged.append([key, start, end, n, new])
        kept = [one for one in merged if one[2] - 1 + LATENESS > self.watermark]
        late = [row for one in merged if one not in kept for row in one[4]]
        self.sessions = [one[:4] for one in kept]
        return sorted(tuple(one[:4]) for one in kept if one[4] and one[2] - 1 <= self.watermark), sorted(late)

    def advance(self, watermark: int) -> list[Any]:
        before, self.watermark = self.watermark, watermark
        fired = sorted(tuple(one) for one in self.sessions if before < one[2] - 1 <= watermark)
        self.sessions = [one for one in self.sessions if one[2] - 1 + LATENESS > watermark]
        return fired


@given(STEPS)
def test_sessions_of_a_call_merge_before_it_is_decided_what_is_late(steps: list[Any]) -> None:
    spec = SESSIONS.allowed_lateness(LATENESS, coalesce=True).side_output_late_data().aggregate(n=fw.Count())
    stream, model = spec.open(schema=SCHEMA), Model()
    watermark = 0
    for rows, step in steps:
        result = stream.process(table(*rows))
        late = sorted(tuple(row.values()) for row in result.late.to_pylist())
        assert (firings(result), late) == model.process(rows)
        watermark += step
        assert firings(stream.advance_watermark(watermark)) == model.advance(watermark)


def test_an_element_connects_one_that_is_late_by_its_own_gap_whichever_time_is_later() -> None:
    stream = SESSIONS.allowed_lateness(1, coalesce=True).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(table((1, 20, 30)))
    stream.advance_watermark(15)
    stream.process(table((1, 10, 1), (1, 2, 20)))
    assert firings(stream.advance_watermark(100)) == [(1, 2, 50, 3)]
    assert stream.metrics.late == 0


class Twice(fw.Trigger):
    """Answers each element by its column ``v``, and fires at the end."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return fw.TriggerResult[element.v]

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE


def late_firings(trigger: fw.Trigger, *answers: str) -> list[int]:
    """Returns what a window fires that has one element, has passed, and then gets these elements in one call."""
    tumbling = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger)
    spec = tumbling.allowed_lateness(100, coalesce=True).aggregate(n=fw.Count())
    rows = pa.table({"k": [1] * len(answers), "ts": [5] * len(answers), "v": list(answers)})
    stream = spec.open(schema=rows.schema)
    stream.process(pa.table({"k": [1], "ts": [5], "v": ["CONTINUE"]}))
    stream.advance_watermark(20)
    found = stream.process(rows).main["n"].to_pylist()
    return found + stream.process(pa.table({"k": [1], "ts": [5], "v": ["FIRE"]})).main["n"].to_pylist()


def test_a_purging_trigger_fires_once_for_the_late_elements_of_a_call() -> None:
    assert late_firings(fw.PurgingTrigger.of(fw.EventTimeTrigger()), "", "", "") == [3, 1]


def test_a_window_that_is_purged_after_it_was_to_fire_fires_before() -> None:
    assert late_firings(Twice(), "FIRE", "FIRE", "PURGE", "FIRE") == [4, 1, 2]
    assert late_firings(Twice(), "FIRE_AND_PURGE", "CONTINUE") == [3, 1]
    assert late_firings(Twice(), "PURGE") == [1]


@pytest.mark.parametrize(("trigger", "then"), [(lambda one: one, 4), (fw.PurgingTrigger.of, 1)])
def test_a_session_that_was_to_fire_does_so_as_part_of_another_one(trigger: Any, then: int) -> None:
    """The element that connects two sessions is one for which the trigger does not fire."""
    spec = SESSIONS.trigger(trigger(fw.CountTrigger.of(2))).allowed_lateness(1000, coalesce=True)
    stream = spec.aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.advance_watermark(100)
    rows = (1, 50, 10), (1, 50, 9), (1, 49, 2)
    assert [n for *_, n in firings(stream.process(table(*rows)))] == [3]
    assert [n for *_, n in firings(stream.process(table((1, 49, 1))))] == [then]
