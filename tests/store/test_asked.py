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
