"""A watermark that follows the data: what it does when no elements come, and after a restore."""

from typing import Any

import pytest

import fastwin as fw
from fastwin.run.datawatermark import DataWatermark
from fastwin.state.chunks import read_meta
from tests.support.clock import Clock
from tests.support.streams import BASE, COUNT, rows, table

WINDOWS = {
    "tumbling": BASE,
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(10, 5)),
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap(5)),
    "general": BASE.with_pane_info(),
}


def test_idle_moves_the_watermark_to_the_newest_element(clock: Clock) -> None:
    follows = DataWatermark(10, 5_000)
    assert follows.after(100, 100) == 89
    clock.now += 4.9
    assert follows.after(fw.MIN_TIMESTAMP, 100) == fw.MIN_TIMESTAMP
    clock.now += 0.1
    assert follows.after(fw.MIN_TIMESTAMP, 100) == 100
    assert follows.after(50, 100) == 39


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("delta", [False, True])
def test_idle_goes_on_after_a_restore(clock: Clock, name: str, delta: bool) -> None:
    spec = WINDOWS[name].aggregate(n=fw.Count())
    stream = spec.open(watermark="1 s", idle="30 s")
    stream.process(table(("a", 1, 1)))
    chunks = [stream.snapshot()]
    stream.process(table(("a", 29, 1)))
    chunks = [*chunks, stream.delta()] if delta else [stream.snapshot()]
    again = spec.open(watermark="1 s", idle="30 s", schema=table().schema)
    clock.now += 100
    again.restore(chunks)
    clock.now += 29
    assert rows(again.process(table())) == []  # the wait begins at the restore
    clock.now += 1
    assert rows(again.process(table()))
    assert again.watermark == 29


def test_the_newest_time_survives_two_restores(clock: Clock) -> None:
    chunk = None
    for _ in range(3):
        stream = COUNT.open(watermark="1 s", idle="30 s", schema=table().schema)
        if chunk is None:
            stream.process(table(("a", 29, 1)))
        else:
            stream.restore(chunk)
        chunk = stream.snapshot()
        assert read_meta(chunk)["newest"] == 29
    clock.now += 30
    stream.process(table())
    assert stream.watermark == 29


def test_state_without_the_newest_time_is_read(clock: Clock) -> None:
    """As it was written before it was kept, or by a stream whose caller moves the watermark."""
    stream = COUNT.open()
    stream.process(table(("a", 29, 1)))
    chunk = stream.snapshot()
    assert "newest" not in read_meta(chunk)
    again = COUNT.open(watermark="1 s", idle="30 s", schema=table().schema)
    again.restore(chunk)
    clock.now += 100
    again.process(table())
    assert again.watermark == fw.MIN_TIMESTAMP
    again.process(table(("a", 40, 1)))
    clock.now += 30
    again.process(table())
    assert again.watermark == 40


@pytest.mark.parametrize("arguments", [{"idle": "1 s"}, {"watermark": "1 s", "idle": 0}])
def test_idle_needs_a_watermark_that_follows(arguments: Any) -> None:
    with pytest.raises(fw.SpecError, match="idle: must be at least 1 ms, and needs a watermark="):
        COUNT.open(**arguments)
