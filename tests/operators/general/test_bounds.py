"""Windows at the ends of int64: what is there is taken, though the next one would have no bound."""

import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

LAST, FIRST = 2**63 - 1, -(2**63)
BASE = fw.key_by("k").event_time("ts")


@pytest.mark.parametrize(
    ("assigner", "time", "windows"),
    [
        (fw.CumulativeEventTimeWindows.of(10, 10), LAST - 16, [(LAST - 17, LAST - 7)]),
        (fw.CumulativeEventTimeWindows.of(10, 5), LAST - 16, [(LAST - 17, LAST - 12), (LAST - 17, LAST - 7)]),
        (fw.SlidingEventTimeWindows.of(15, 10), FIRST + 15, [(FIRST + 8, FIRST + 23)]),
        (fw.SlidingEventTimeWindows.of(10, 10), FIRST + 15, [(FIRST + 8, FIRST + 18)]),
    ],
)
def test_windows_that_are_there(assigner, time, windows):
    harness = WindowHarness(BASE.window(assigner).aggregate(n=fw.Count()), any_time=True)
    harness.push({"k": "a", "ts": time})
    harness.advance_watermark(LAST)
    assert [tuple(one.window) for one in harness.emissions] == windows


@pytest.mark.parametrize(("size", "slide"), [(10, 10), (15, 10), (20, 10), (25, 10), (10, 15), (7, 3), (1, 1), (3, 1)])
@pytest.mark.parametrize("time", [-25, -1, 0, 1, 9, 10, 14, 15, 29])
def test_all_sliding_windows_of_a_time(size, slide, time):
    harness = WindowHarness(BASE.window(fw.SlidingEventTimeWindows.of(size, slide)).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": time})
    harness.advance_watermark(10_000)
    starts = [start for start in range(-90, 90) if start % slide == 0 and start <= time < start + size]
    assert sorted(one.window.start for one in harness.emissions) == starts


@pytest.mark.parametrize(("size", "step"), [(10, 10), (10, 5), (12, 3), (6, 1)])
@pytest.mark.parametrize("time", [-25, -1, 0, 1, 9, 10, 14])
def test_all_cumulative_windows_of_a_time(size, step, time):
    harness = WindowHarness(BASE.window(fw.CumulativeEventTimeWindows.of(size, step)).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": time})
    harness.advance_watermark(10_000)
    start = time // size * size
    ends = [start + grown for grown in range(step, size + 1, step) if time < start + grown]
    assert sorted(one.window.end for one in harness.emissions) == ends
