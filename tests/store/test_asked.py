"""Questions: bounds and keys as callers have them."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR, clicks, spec_of


@pytest.fixture
def store(url):
    with PaneStore.open(url, spec_of()) as opened:
        opened.put(spec_of().panes().run(clicks(300)).main)
        yield opened


def test_bounds_may_be_ints_of_numpy(store):
    start, end = np.int64(FIRST + HOUR), np.int64(FIRST + 3 * HOUR)
    assert store.query(None, start, end).equals(store.query(None, int(start), int(end)))
    assert store.series(None, start, end).equals(store.series(None, int(start), int(end)))
    assert store.query(end=np.int64(store.watermark)).equals(store.query())


def test_bounds_may_be_dates(store):
    start, end = FIRST + HOUR, FIRST + 3 * HOUR
    wanted, chart = store.query(None, start, end), store.series(None, start, end)
    assert wanted.num_rows
    for make in (
        lambda ms: datetime.fromtimestamp(ms / 1_000, UTC),
        lambda ms: datetime.fromtimestamp(ms / 1_000, UTC).replace(tzinfo=None),
        lambda ms: datetime.fromtimestamp(ms / 1_000, timezone(timedelta(hours=2))).isoformat(" "),
        lambda ms: np.datetime64(ms, "ms"),
        lambda ms: pd.Timestamp(ms, unit="ms", tz="Europe/Berlin"),
    ):
        assert store.query(None, make(start), make(end)).equals(wanted)
        assert store.series(None, make(start), make(end)).equals(chart)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            {"end": FIRST + 1},
            f"end: {FIRST + 1} is within a pane of 3 min; next to it are {FIRST} and {FIRST + 180_000}",
        ),
        ({"end": np.int64(FIRST + 1)}, f"end: {FIRST + 1} is within .*; next to it are {FIRST} and {FIRST + 180_000}"),
        ({"end": np.datetime64("2024-01-01T00:01")}, "next to it are 2024-01-01 00:00:00.000Z and 2024"),
        (
            {"end": datetime(2024, 1, 1, 1, 0, 0, 500)},
            "end: must be whole milliseconds, got 2024-01-01 01:00:00.000500",
        ),
        ({"end": np.datetime64("2024-01-01T01:00:00.000000001")}, "end: must be whole milliseconds, got 2024"),
        ({"end": pd.Timestamp("2024-01-01T01:00:00.000000001")}, "end: must be whole milliseconds, got 2024"),
        ({"end": pd.NaT}, "end: must be a time, got NaT"),
        ({"start": np.datetime64("NaT")}, "start: must be a time, got NaT"),
        ({"end": np.datetime64(2**62, "s")}, "end: must be in the years 1 to 9999, got one of the year 146"),
        ({"end": 1.5}, "end: must be a time: a datetime, such a text, or an int; got 1.5"),
        ({"end": "soon"}, "end: 'soon' is no time; write for example '2026-01-31 12:30:00' or a number"),
        ({"end": "2024-01-01 00:01"}, "is within a pane of 3 min; next to it are 2024-01-01 00:00:00.000Z and 2024"),
        ({"start": FIRST, "end": FIRST}, "end must be after start"),
        ({"start": FIRST, "end": FIRST - HOUR}, "end must be after start"),
        ({"end": 2**62}, "years 1 to 9999"),
        ({"keys": "module 1"}, "must be a list of keys"),
        ({"start": -62_135_596_800_000, "end": 253_402_300_620_000}, "at most 5,000,000 panes"),
    ],
)
def test_questions_without_sense_are_refused(store, arguments, says):
    with pytest.raises(SpecError, match=says):
        store.query(**arguments)


def test_windows_without_panes_are_bounded_in_bytes(url, monkeypatch):
    """Nothing may be long: a histogram has a number for each of its ranges."""
    spec = spec_of("1 hour", "3 minutes", h=fw.Histogram("user", list(range(1_000))))
    panes = spec.panes().run(
        pa.table({"module": ["a"], "ts": pa.array([FIRST], pa.timestamp("ms", "UTC")), "user": [1]})
    )
    with PaneStore.open(url, spec) as store:
        store.put(panes.main)
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 1_000_000)
        assert store.series(["b"], FIRST, FIRST + HOUR)["h"].to_pylist() == [[0] * 1_001] * 20
        with pytest.raises(
            SpecError, match=r"at most 1,000,000 bytes of results in one go, got 1,\d+,\d+ in the first 160"
        ):
            store.series([f"b{i}" for i in range(8)], FIRST, FIRST + HOUR)


@pytest.mark.parametrize(
    ("kept", "same", "none"),
    [
        ([True, False], [np.True_, pa.scalar(True), 1], [2, "yes", date(2024, 1, 1)]),
        (
            [7, 8],
            [np.int8(7), 7.0, np.float64(7), "7", pa.scalar(7), Decimal("7.0")],
            [7.5, "07", "seven", b"7", float("nan")],
        ),
        (["7", "8"], [np.str_("7"), 7, pa.scalar("7")], ["\ud800", [], object(), 2**70]),
        ([date(2024, 1, 1), date(2024, 1, 2)], [datetime(2024, 1, 1), "2024-01-01"], [datetime(2024, 1, 1, 9), 1.5]),
    ],
)
def test_keys_are_values_of_their_columns(url, kept, same, none):
    """What is equal is found, and what cannot be a key is told."""
    windows = fw.SlidingEventTimeWindows.of("24 hours", "3 minutes")
    spec = fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count())
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(pa.table({"k": kept, "ts": [FIRST, FIRST]})).main)
        for key in same:
            assert store.has([key]) == [True], key
            assert store.series([key]).equals(store.series(kept[:1]))
        for key in none:
            with pytest.raises(SpecError, match=r"keys: .* is no key of k \("):
                store.query([key])
        assert store.has([None]) == [False]
