"""How many windows are open, asked at any moment, beside a list of all (key, window) pairs."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

KEYS = st.integers(0, 5)
BATCHES = st.lists(st.tuples(KEYS, st.integers(0, 120)), max_size=12)
STEPS = st.lists(st.tuples(BATCHES, st.none() | st.integers(0, 150), st.booleans()), max_size=12)
WINDOWS = {
    "sliding": (fw.SlidingEventTimeWindows.of(20, 5), lambda t: [(t // 5 - i) * 5 + 20 for i in range(4)]),
    "two slices a slide": (
        fw.SlidingEventTimeWindows.of(13, 5, offset=2),
        lambda t: [start + 13 for start in range(2 - 20, 200, 5) if start <= t < start + 13],
    ),
    "cumulative": (
        fw.CumulativeEventTimeWindows.of(24, 6),
        lambda t: [end for end in range(t // 24 * 24 + 6, t // 24 * 24 + 25, 6) if t < end],
    ),
    "calendar": (
        fw.CalendarEventTimeWindows.sliding("3 days", "1 day", time_zone="UTC"),
        lambda t: [(t // DAY + i) * DAY for i in (1, 2, 3)],
    ),
}
DAY = 86_400_000
SCALES = {"calendar": DAY // 5}  # ms for a unit of time; else one


@pytest.mark.parametrize("kind", WINDOWS)
@given(steps=STEPS, lateness=st.sampled_from([0, 7, 40]), restored=st.booleans())
def test_open_windows_are_counted_at_any_moment(kind: str, steps: list, lateness: int, restored: bool) -> None:
    assigner, ends_of = WINDOWS[kind]
    scale = SCALES.get(kind, 1)
    lateness *= scale
    spec = fw.key_by("k").event_time("t", unit="ms").window(assigner).allowed_lateness(lateness).aggregate(n=fw.Count())
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    stream = spec.open(schema=schema)
    pairs: set[tuple[int, int]] = set()
    watermark = None
    for given_rows, given_watermark, asked in steps:
        rows = [(k, t * scale) for k, t in given_rows]
        new = None if given_watermark is None else given_watermark * scale
        stream.process(pa.table({"k": [k for k, _ in rows], "t": [t for _, t in rows]}, schema=schema))
        pairs |= {(k, end) for k, t in rows for end in ends_of(t)}
        if new is not None and (watermark is None or new > watermark):
            watermark = new
            stream.advance_watermark(new)
        if watermark is not None:
            pairs = {(k, end) for k, end in pairs if end - 1 + lateness > watermark}
        if restored and asked:
            chunk = stream.snapshot()
            stream = spec.open(schema=schema)
            stream.restore(chunk)
        if asked:
            assert stream.metrics.open_windows == len(pairs)
    assert stream.metrics.open_windows == len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_windows_of_thousands_of_slides(seed: int) -> None:
    """Many keys begin with ends of their own, more than are gathered at a time."""
    random = np.random.default_rng(seed)
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.SlidingEventTimeWindows.of(1_000, 1))
    stream = spec.aggregate(n=fw.Count()).open()
    pairs: set[tuple[int, int]] = set()
    for first in (0, 300, 900):
        keys, times = random.integers(0, 60, 80), random.integers(first, first + 700, 80)
        stream.process(pa.table({"k": keys, "t": times}))
        for key, t in zip(keys.tolist(), times.tolist(), strict=True):
            pairs |= {(key, end) for end in range(t + 1, t + 1_001)}
        assert stream.metrics.open_windows == len(pairs)


def test_windows_of_milliards_of_slides() -> None:
    slides = 365 * 86_400_000
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.SlidingEventTimeWindows.of("365 days", 1))
    stream = spec.aggregate(n=fw.Count()).open()
    stream.process(pa.table({"k": [1, 1, 2], "t": [0, 10, 5]}))
    assert stream.metrics.open_windows == slides + 10 + slides


def test_windows_of_a_calendar_are_counted_once() -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(WINDOWS["calendar"][0])
    stream = spec.aggregate(n=fw.Count()).open()
    stream.process(pa.table({"k": np.arange(5_000), "t": np.full(5_000, DAY)}))
    assert stream.metrics.open_windows == 15_000
    counted = stream._operator._open_ends.looked
    for key in range(20):
        stream.process(pa.table({"k": [key], "t": [2 * DAY]}))
        assert stream.metrics.open_windows == 15_000 + key + 1
    assert stream._operator._open_ends.looked - counted < 1_000
