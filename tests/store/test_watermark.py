"""The watermark of a store: on the panes' grid and in the calendar, whatever it was told."""

import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from tests.support.clicks import DAY, FIRST, HOUR, by_module, clicks, counted, spec_of
from tests.support.numbered_clicks import batch, spec


def test_watermark_of_the_stream_within_a_pane(url):
    """It is rounded down, so the window that ends there is one of the panes."""
    table = clicks(2_000)
    stream = spec_of().panes().open(watermark="1 minute")
    with PaneStore.open(url, spec_of()) as store:
        store.put(stream.process(table).main, watermark=stream.watermark)
        assert stream.watermark % 180_000
        assert store.watermark == stream.watermark - stream.watermark % 180_000
        end = store.watermark
        assert by_module(store.query()) == counted(table, end - DAY, end)
        assert store.series(["module 1"]).num_rows == 480
        store.advance_watermark(end + 180_000 + 1)
        assert store.watermark == end + 180_000
        store.put(stream.advance_watermark(fw.MAX_TIMESTAMP).main, watermark=stream.watermark)
        end = FIRST + 30 * HOUR  # a stream that has ended says that all is complete: to the end of the last pane
        assert store.watermark == end
        assert by_module(store.query()) == counted(table, end - DAY, end)


def test_store_with_a_watermark_within_a_pane_is_read(redis_server):
    """As versions before this one have written it."""
    import redis

    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    with PaneStore.open(redis_server.url, spec()) as store:
        store.put(batch(30))
        end = store.watermark
        client.hset("{fastwin}:meta", "watermark", end + 12_345)
        assert store.watermark == end
        assert store.query().num_rows == 50
        store.put(batch(31))
        assert store.watermark == end + 180_000


@pytest.mark.parametrize("wrong", [1.5, "now", True])
def test_watermarks_that_are_none(url, wrong):
    with PaneStore.open(url, spec()) as store:
        with pytest.raises(SpecError, match="watermark: must be"):
            store.put(batch(0), watermark=wrong)
        assert store.watermark is None
        store.put(batch(0))
        with pytest.raises(SpecError, match="watermark: must be"):
            store.advance_watermark(wrong)


def test_no_panes_move_the_watermark_too(url):
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0))
        end = store.watermark
        store.put(batch(0).slice(0, 0), watermark=end + 200_000)
        assert store.watermark == end + 180_000
        store.put(batch(1), watermark=fw.MIN_TIMESTAMP)  # a stream that has none yet
        assert store.watermark == end + 180_000


def test_a_part_of_a_batch_is_not_behind_the_watermark(url):
    """As a writer leaves it that dies between the panes and the end of a batch."""
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))
        before, known = store.query(), store.meta()
        store.put(batch(1).slice(0, 20), (1, 1), advance=False)
    with PaneStore.open(url, spec()) as store:
        assert store.meta() == known and store.query() == before
        beyond = store.query(start=known.watermark, end=known.watermark + 180_000)
        assert beyond.num_rows == 20
        store.put(batch(1), (1, 1))
        assert store.watermark == known.watermark + 180_000
        assert set(store.query()["pv"].to_pylist()) == {3}


def test_no_panes_end_no_batch(url):
    with PaneStore.open(url, spec()) as store:
        store.put(batch(3), advance=False)
        store.put(batch(0).slice(0, 0))
        assert store.watermark is None
        store.advance_watermark(fw.MAX_TIMESTAMP)
        assert store.watermark == FIRST + 4 * 180_000


@pytest.mark.parametrize("how", ["advance_watermark", "put"])
def test_the_end_of_a_stream_is_that_of_the_last_pane_of_the_batch(url, how):
    """However many parts it was put in, and in which order; also where the last one has no panes."""
    empty = batch(0).slice(0, 0)
    with PaneStore.open(url, spec()) as store:
        store.put(batch(5), advance=False)
        store.put(batch(2), advance=False)
        assert store.watermark is None
        if how == "put":
            store.put(empty, watermark=fw.MAX_TIMESTAMP)
        else:
            store.advance_watermark(fw.MAX_TIMESTAMP)
        end = FIRST + 6 * 180_000
        assert store.watermark == end and store.query().num_rows
        version = store.meta().version
        store.advance_watermark(fw.MAX_TIMESTAMP)  # nothing more was put
        assert store.watermark == end and store.meta().version == version + 1
