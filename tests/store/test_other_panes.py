"""What is none of a store's panes is refused, and the store is as it was."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from tests.support.clicks import DAY, by_module, clicks, counted, spec_of

TABLE = clicks(300)


def counts(store: PaneStore) -> dict[str, int]:
    """Returns the page views of the last window, which are what counting gives."""
    found = {module: row["pv"] for module, row in by_module(store.query()).items()}
    expected = counted(TABLE, store.watermark - DAY, store.watermark)
    assert found == {module: row["pv"] for module, row in expected.items()}
    return found


def test_windows_are_no_panes(url):
    """Each of them is as long as 480 panes, and begins where one does."""
    spec = spec_of(pv=fw.Count(), total=fw.Sum("v"))
    windows = spec.run(TABLE).main
    with PaneStore.open(url, spec) as store:
        for _ in range(2):
            with pytest.raises(SpecError, match="the panes must be 3 min wide, got a window of 1 d from 20"):
                store.put(windows)
        assert store.meta() is None
        store.put(spec.panes().run(TABLE).main)
        assert counts(store)
    with PaneStore.open(url) as store:
        before = store.query()
        with pytest.raises(SpecError, match="3 min wide, got a window of 1 d"):
            store.put(windows)
        assert store.query().equals(before)


def test_panes_of_another_width(url):
    spec = spec_of(pv=fw.Count())
    panes = spec.panes().run(TABLE).main
    with PaneStore.open(url, spec.panes("1 minute")) as store:
        with pytest.raises(SpecError, match="the panes must be 1 min wide, got a window of 3 min"):
            store.put(panes)
        assert store.meta() is None  # so that the store is free for the right spec
    with PaneStore.open(url, spec) as store:
        store.put(panes)
        assert counts(store)
        ends = panes["window_end"]
        last = pc.equal(pa.array(range(len(panes))), len(panes) - 1)
        for odd, says in (
            (pc.if_else(last, pc.add(ends, pa.scalar(1, pa.duration("ms"))), ends), "got a window of 180001 ms"),
            (pc.if_else(last, pa.scalar(None, ends.type), ends), f"window_end is null in 1 of {len(panes)} rows"),
        ):
            with pytest.raises(SpecError, match=says):
                store.put(panes.set_column(panes.column_names.index("window_end"), "window_end", odd))
        store.put(panes.drop_columns(["window_end"]))
        assert counts(store)


def test_counts_are_no_sketches(url):
    spec = spec_of(pv=fw.Count(), uv=fw.HyperLogLog("user"))
    with PaneStore.open(url, spec) as store:
        with pytest.raises(SpecError, match=r"'uv' must be a sketch as spec\.panes\(\) makes it, got int64"):
            store.put(spec.run(TABLE).main)
        assert store.meta() is None
        store.put(spec.panes().run(TABLE).main)
        assert counts(store)
