"""Many merging windows of one key, which come and go at either end and between, beside a sorted list of them."""

import random

import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

GAP = 10
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.EventTimeSessionWindows.with_gap(GAP))
    .trigger(fw.EventTimeTrigger.create())
    .aggregate(n=fw.Count())
)


def sessions(times: list[int]) -> list[tuple[int, int, int]]:
    found: list[list[int]] = []
    for time in sorted(times):
        if found and time <= found[-1][1]:
            found[-1] = [found[-1][0], time + GAP, found[-1][2] + 1]
        else:
            found.append([time, time + GAP, 1])
    return [tuple(one) for one in found]


def fired(emissions) -> list[tuple[int, int, int]]:
    return sorted((*one.window, one.value["n"]) for one in emissions)


ORDERS = {
    "in order": lambda times, dice: sorted(times),
    "newest first": lambda times, dice: sorted(times, reverse=True),
    "from both ends": lambda times, dice: [
        time for pair in zip(sorted(times), sorted(times, reverse=True), strict=True) for time in pair
    ],
    "random": lambda times, dice: dice.sample(times, len(times)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spread", [12, 25])
def test_in_any_order(order, spread):
    dice = random.Random(spread)
    times = [at * spread + dice.randrange(4) for at in range(300)]
    given = ORDERS[order](times, dice)
    harness = WindowHarness(SPEC)
    for time in given:
        harness.push({"k": "a", "ts": time})
    harness._operator.table._check()
    assert fired(harness.advance_watermark(10**6)) == sessions(given)
    harness._operator.table._check()


def test_old_ones_go_while_new_ones_come():
    dice = random.Random(1)
    harness, given = WindowHarness(SPEC), []
    for at in range(600):
        given.append(at * 15 + dice.randrange(14))
        harness.push({"k": "a", "ts": given[-1]})
        if at % 7 == 0:
            harness.advance_watermark((at - dice.randrange(1, 60)) * 15)
            harness._operator.table._check()
    harness.advance_watermark(10**6)
    assert fired(harness.emissions) == sessions(given)
