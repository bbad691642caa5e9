"""Questions: bounds and keys as callers have them."""

import numpy as np
import pytest

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
