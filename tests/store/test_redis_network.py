"""A Redis behind a network that is cut: nothing answers, and nobody says that it is gone."""

import threading

import pytest
import redis

from fastwin.errors import StoreUnavailableError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, MINUTE
from tests.support.cut_network import Network
from tests.support.numbered_clicks import batch, spec
from tests.support.redis_server import RedisServer

PANE = 3 * MINUTE


@pytest.fixture
def network(redis_server):
    redis.Redis.from_url(redis_server.url).flushall()
    made = Network(redis_server.port)
    yield made
    made.stop()


def url(network: Network) -> str:
    return f"redis://127.0.0.1:{network.port}/0?socket_timeout=0.5"


def views(store: PaneStore, batches: int) -> set[int]:
    return set(store.query(start=FIRST, end=FIRST + batches * PANE)["pv"].to_pylist())


@pytest.mark.parametrize("lost", [{}, {"asks": False}], ids=["all", "answers"])
def test_cut_between_batches(network, lost):
    """Without answers, the server has done what it was told: put again, it is counted once."""
    with PaneStore.open(url(network), spec()) as store, PaneStore.open(url(network), read_only=True) as reader:
        store.put(batch(0), (1, 0))
        assert views(reader, 1) == {1}
        network.cut(**lost)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match=r"did not answer|out of reach"):
                store.put(batch(1), (1, 1))
        with pytest.raises(StoreUnavailableError, match=r"did not answer|out of reach"):
            views(reader, 1)
        network.mend()
        store.put(batch(1), (1, 1))
        assert views(reader, 2) == views(store, 2) == {1 + 2}
        assert reader.meta().version == 2


def test_cut_within_a_batch(network):
    """Panes are there, the end of their batch is not: readers stay with the watermark of before."""
    with PaneStore.open(url(network), spec()) as store:
        store.put(batch(0), (1, 0))
        store.begin_batch()
        store.put(batch(1), (1, 1), advance=False)
        network.cut(asks=False)
        with pytest.raises(StoreUnavailableError):
            store.put(batch(2), (1, 1), advance=False)
        network.mend()
        with PaneStore.open(url(network), read_only=True) as reader:
            assert (reader.meta().version, reader.watermark) == (1, FIRST + PANE)
        for number in (1, 2):
            store.put(batch(number), (1, 1), advance=False)
        store.advance_watermark(FIRST + 3 * PANE, FIRST + PANE)
        assert views(store, 3) == {1 + 2 + 3} and store.meta().version == 2


def test_cut_network_that_is_mended_while_a_question_waits(network):
    with PaneStore.open(url(network).replace("0.5", "30"), spec()) as store:
        store.put(batch(0), (1, 0))
        network.cut()
        timer = threading.Timer(0.3, network.mend)
        timer.start()
        try:
            assert views(store, 1) == {1}  # asked once more, over a new connection
        finally:
            timer.join(30)


def test_network_without_a_server(tmp_path):
    """What is behind the network is away: connections end at once."""
    server = RedisServer(tmp_path)
    network = Network(server.port)
    try:
        with PaneStore.open(url(network), spec()) as store:
            store.put(batch(0), (1, 0))
            server.kill()
            with pytest.raises(StoreUnavailableError):
                store.put(batch(1), (1, 1))
            server.start()
            with pytest.warns(UserWarning, match="has lost all panes"):
                store.put(batch(1), (1, 1))
            assert views(store, 2) == {2}
    finally:
        network.stop()
        server.stop()
