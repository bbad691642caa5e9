"""Panes in an online store, put together to windows when read."""

from fastwin.store.base import PaneStore
from fastwin.store.layout import Layout
from fastwin.store.records import Revision, Written

__all__ = ["Layout", "PaneStore", "Revision", "Written"]
