"""Stores of both kinds: RocksDB in a folder, and a real Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for all tests that leave it as it is."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(params=["rocksdb", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store."""
    if request.param == "rocksdb":
        return f"rocksdb:{tmp_path / 'store'}"
    server = request.getfixturevalue("redis_server")
    import redis

    redis.Redis.from_url(server.url).flushall()
    return server.url
