"""Names in Redis run out by the clock; a stream that pauses does not: ``since`` says what may be gone."""

import pytest
import redis

from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR, MINUTE
from tests.support.numbered_clicks import batch, spec

START = 1_800_000_000_000
LIFE = 4 * 2 * HOUR
PANE = 3 * MINUTE


@pytest.fixture
def clock(monkeypatch):
    """The clock of writers and readers, ms, in a list."""
    now = [START]
    monkeypatch.setattr("fastwin.store.redis.time.time_ns", lambda: now[0] * 1_000_000)
    return now


@pytest.fixture
def store(redis_server, clock):
    redis.Redis.from_url(redis_server.url).flushall()
    with PaneStore.open(redis_server.url, spec(), retention="2 hours") as opened:
        yield opened


def test_names_live_longer_than_since_says(store):
    """Corrected old panes, too."""
    for number in (0, 30, 5):
        store.put(batch(number), (1, number))
    names = [name for name in store._client.scan_iter("*") if not name.endswith((b":meta", b":keys", b":queries"))]
    assert names and all(store._client.pttl(name) > LIFE + HOUR - MINUTE for name in names)


def test_stream_that_pauses(store, clock):
    for number in range(3):
        store.put(batch(number), (1, number))
        clock[0] += MINUTE
    assert store.meta().since == FIRST
    clock[0] = START + LIFE - MINUTE
    assert store.meta().since == FIRST
    clock[0] = START + LIFE
    assert store.meta().since == store.watermark == FIRST + 3 * PANE  # all may be gone
    store.put(batch(3), (1, 3))
    assert store.meta().since == FIRST + 4 * PANE  # the first entry behind the pause
    clock[0] += HOUR
    store.put(batch(4), (1, 4))
    assert store.meta().since == FIRST + 4 * PANE


def test_stream_slower_than_the_clock(store, clock):
    """A pane an hour. What ended by ``since`` may be gone, and no pane behind it is older than its life."""
    written = {}
    for number in range(40):
        store.put(batch(number), (1, number))
        written[number] = clock[0]
        clock[0] += HOUR
        kept = (store.meta().since - FIRST) // PANE
        assert all(clock[0] - written[n] <= LIFE for n in range(kept, number + 1))
        assert kept <= max(0, number - 5)  # and not more is given up than must be
    assert len(store._client.hget("{fastwin}:meta", "clock").split()) == 16


def test_stream_as_fast_as_the_clock(store, clock):
    """``since`` is where retention has it."""
    for number in range(100):
        store.put(batch(number), (1, number))
        clock[0] += PANE
        floor = (store.watermark - 2 * HOUR) // (15 * MINUTE) * 15 * MINUTE
        assert store.meta().since == max(FIRST, floor)
