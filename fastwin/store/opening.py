"""Opens a store by its URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from fastwin.duration import Duration
from fastwin.errors import SpecError
from fastwin.spec import WindowSpec
from fastwin.store.base import PaneStore
from fastwin.store.redis import RedisStore
from fastwin.store.rocks import RocksStore

__all__ = ["open_store"]


def open_store(
    url: str, spec: WindowSpec | None = None, *, retention: Duration | None = None, read_only: bool = False
) -> PaneStore:
    """Opens a pane store; see ``PaneStore.open``."""
    if not isinstance(url, str):
        raise SpecError(f"store: the URL must be text such as 'rocksdb:PATH' or 'redis://localhost', got {url!r}")
    kind = urlsplit(url).scheme
    if kind == "rocksdb":
        path = url.removeprefix("rocksdb:").removeprefix("//")
        if not path:
            raise SpecError("store: rocksdb:PATH needs a path")
        return RocksStore(Path(path), spec, retention, read_only)
    if kind in ("redis", "rediss", "unix"):
        return RedisStore(url, spec, retention, read_only)
    raise SpecError(f"store: the URL must begin with rocksdb: or redis://, got {url.split(':')[0]!r}")
