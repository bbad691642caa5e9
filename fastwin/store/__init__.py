"""Panes in an online store, put together to windows when read."""

from fastwin.store.base import PaneStore
from fastwin.store.keytext import key_from_text, key_to_text, keys_to_text
from fastwin.store.layout import Layout
from fastwin.store.records import Meta, Revision, Written

__all__ = ["Layout", "Meta", "PaneStore", "Revision", "Written", "key_from_text", "key_to_text", "keys_to_text"]
