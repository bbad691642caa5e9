"""Files of one attempt over those of another, as Spark's first format of checkpoints may leave them, and a restart."""

import copy

import pytest

import fastwin as fw
from spark_glue.plan.keygroups import ids
from spark_glue.state.folders import forget_run
from spark_glue.state.live import LIVE
from tests.support.spark_harness import Harness, packet
from tests.support.spark_jobs import KEY_GROUPS

_BASE = fw.key_by("k").event_time("ts")


class Sums(fw.AggregateFunction):
    """Keeps the sum of the times of a window, and a set of them."""

    def create_accumulator(self):
        return {"sum": 0, "seen": set()}

    def add(self, value, accumulator):
        accumulator["sum"] += value.ts
        accumulator["seen"].add(f"time {value.ts}")
        return accumulator

    def get_result(self, accumulator):
        return accumulator["sum"], len(accumulator["seen"])

    def merge(self, a, b):
        return {"sum": a["sum"] + b["sum"], "seen": a["seen"] | b["seen"]}


SPECS = {
    "sliding": _BASE.window(fw.SlidingEventTimeWindows.of(60, 20)).aggregate(n=fw.Count(), last=fw.Max("ts")),
    "sessions": _BASE.window(fw.EventTimeSessionWindows.with_gap(15)).aggregate(n=fw.Count()),
    "early": (
        _BASE.window(fw.TumblingEventTimeWindows.of(50))
        .trigger(fw.after_watermark(early=fw.CountTrigger.of(3)))
        .aggregate(n=fw.Count())
    ),
    "own": _BASE.window(fw.TumblingEventTimeWindows.of(50)).aggregate(Sums(), output="total bigint, seen bigint"),
}
REPEATED, LAST = 5, 7
GROUP = int(ids(KEY_GROUPS)[3])
"""Of share 3."""


def restart() -> None:
    """Lets the state be all that is left, as in a new process."""
    LIVE.clear()
    forget_run("unnamed")


def run(harness: Harness, number: int) -> list[tuple]:
    """Runs a micro-batch of two blobs."""
    times = [number * 20 + step for step in (0, 3, 9, 15)]
    keys = [(number + step) % 5 for step in range(4)]
    rows = list(zip(keys, times, strict=True))
    return harness.batch(max(0, number * 20 - 25), {GROUP: [packet(*rows[:2], mapper=1), packet(*rows[2:])]})["MAIN"]


def flat(harness: Harness) -> dict:
    """Returns what the state store holds, by group, name and number."""
    found = {}
    for group, held in harness.handle.values.items():
        for name, value in held.items():
            for at, part in value.items() if isinstance(value, dict) else [(None, value)]:
                found[group, name, at] = part
    return found


def changelog(before: dict, after: dict) -> dict:
    """Returns what a batch writes to its changelog: values that were put, None for those that were removed."""
    written = {at: part for at, part in after.items() if before.get(at) != part}
    return written | dict.fromkeys(before.keys() - after.keys())


def laid_over(state: dict, changes: dict) -> dict:
    return {at: part for at, part in (state | changes).items() if part is not None}


def put_back(harness: Harness, state: dict) -> None:
    harness.handle.values.clear()
    for (group, name, at), part in state.items():
        held = harness.handle.values[group]
        if at is None:
            held[name] = part
        else:
            held.setdefault(name, {})[at] = part


@pytest.mark.parametrize("kind", SPECS)
def test_a_restart_over_changelogs_of_two_attempts(kind):
    restart()
    harness, states, timers, rows = Harness(SPECS[kind]), [{}], [{}], []
    for number in range(LAST):
        rows.append(run(harness, number))
        states.append(flat(harness))
        timers.append(copy.deepcopy(harness.handle.timers))
    # Attempt B repeats a batch from the state before, in a new process. Its changelog takes the place of A's.
    restart()
    put_back(harness, states[REPEATED])
    harness.handle.timers = copy.deepcopy(timers[REPEATED])
    assert sorted(run(harness, REPEATED)) == sorted(rows[REPEATED])
    mixed = laid_over(states[REPEATED], changelog(states[REPEATED], flat(harness)))
    for number in range(REPEATED + 1, LAST):
        mixed = laid_over(mixed, changelog(states[number], states[number + 1]))
    restart()
    put_back(harness, mixed)
    harness.handle.timers = copy.deepcopy(timers[LAST])
    found = [sorted(run(harness, number)) for number in range(LAST, LAST + 6)]
    restart()
    undisturbed = Harness(SPECS[kind])
    for number in range(LAST):
        run(undisturbed, number)
    assert found == [sorted(run(undisturbed, number)) for number in range(LAST, LAST + 6)]
    assert any(found)
