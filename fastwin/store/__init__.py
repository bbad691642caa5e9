"""Panes in an online store, put together to windows when read."""

from fastwin.store.keytext import key_from_text, key_to_text, keys_to_text
from fastwin.store.layout import Layout
from fastwin.store.panestore import PaneStore
from fastwin.store.records import Meta, Revision, Written
from fastwin.store.redis import RedisStore
from fastwin.store.rocks import RocksStore

__all__ = [
    "Layout",
    "Meta",
    "PaneStore",
    "RedisStore",
    "Revision",
    "RocksStore",
    "Written",
    "key_from_text",
    "key_to_text",
    "keys_to_text",
]
