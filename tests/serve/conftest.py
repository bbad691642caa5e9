"""A service for each test that asks for one."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fastwin.serve.app import Settings
from fastwin.store import PaneStore
from tests.support.clicks import clicks
from tests.support.service import SPEC, Service, put_clicks, serving


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[Any]:
    """Returns a function that starts a service over a new store in a folder."""
    count = itertools.count()
    with ExitStack() as stack:

        def make(settings: Settings | None = None, table: pa.Table | None = None) -> Service:
            url = f"rocksdb:{tmp_path / f'store{next(count)}'}"
            store = stack.enter_context(PaneStore.open(url, SPEC))
            table = clicks(5_000) if table is None else table
            if table.num_rows:
                put_clicks(store, table)
            return stack.enter_context(serving(store, url, table, settings or Settings(refresh_ms=300)))

        yield make
