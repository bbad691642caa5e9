"""WindowSlider: what fires, what leaves, what it holds, what it refuses."""

import math

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.core.accumulators.basic import AccumulatorSet, Sum
from fastwin.core.panes.windowslider import WindowSlider
from fastwin.core.rows.rowstore import RowStore
from fastwin.operators.aligned.slicing import SlidingSlicing
from fastwin.run.stream import open_plan
from tests.support.kernels import ids, no_columns, pane_table, times


def fired(slider: WindowSlider, start: int, end: int) -> list[tuple[int, int]]:
    """(key id, count) of each row, sorted."""
    rows = RowStore(slider.panes.accumulators.blank())
    slider.fire(start, end, rows)
    slots = rows.slots()
    counts = slider.panes.accumulators.results(rows, slots)[0][0]
    return sorted(zip(rows.keys(slots).tolist(), counts.tolist(), strict=True))


def test_window_is_half_open_and_slides() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(5, 5, 6)), times(0, 10, 20), no_columns(3))
    slider = WindowSlider(panes, 10)
    assert fired(slider, -10, 0) == []
    assert fired(slider, -10, 10) == [(0, 1)]
    assert fired(slider, 0, 20) == [(0, 2)]
    assert fired(slider, 10, 30) == [(0, 1), (1, 1)]
    assert fired(slider, 20, 40) == [(1, 1)]
    assert fired(slider, 30, 50) == []
    slider._check()


def test_late_elements_count_where_their_pane_is_in_the_window() -> None:
    panes = pane_table()
    key = panes.keys.intern_int64(times(5))
    panes.add(key, times(40), no_columns(1))
    slider = WindowSlider(panes, 10, blocks=(2,))
    for start in range(0, 30, 10):
        fired(slider, start, start + 50)
    for late, start, wanted in ((30, 30, 2), (70, 40, 2), (50, 50, 2), (60, 50, 3), (40, 60, 2)):
        panes.add(key, times(late), no_columns(1))
        slider.add(key, times(late), no_columns(1))
        slider._check()
        assert fired(slider, start, start + 50) == [(0, wanted)]


@pytest.mark.parametrize(("slices", "most"), [(480, 45), (399, 24), (272, 20), (100, 15), (40, 11), (20, 10), (3, 4)])
def test_rows_held_are_few_beside_the_panes(slices: int, most: int) -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(np.arange(10))
    slider, held = WindowSlider(panes, 1, blocks=SlidingSlicing(slices, 1, 0).blocks), 0
    for start in range(4 * slices):
        panes.add(keys, np.full(10, start + slices - 1), no_columns(10))
        assert fired(slider, start, start + slices) == [(key, min(start + 1, slices)) for key in range(10)]
        slider.leave(start + 1)
        panes.drop_before(start + 1)
        held = max(held, len(slider.rows))
    assert len(panes.rows) == 10 * (slices - 1)
    assert held <= 10 * most


def test_memory_returns_when_all_has_left() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(np.arange(100_000)), np.zeros(100_000, np.int64), no_columns(100_000))
    slider = WindowSlider(panes, 10)
    slider.fire(0, 20, RowStore(panes.accumulators.blank()))
    full = slider.nbytes
    slider.leave(20)
    assert len(slider.rows) == slider.active_n == 0
    assert slider.nbytes < full / 3


def test_many_rows_are_absorbed_at_once() -> None:
    panes, n = pane_table(), 1_700
    keys = panes.keys.intern_int64(np.arange(n))
    panes.add(keys, np.zeros(n, np.int64), no_columns(n))
    slider = WindowSlider(panes, 10)
    assert fired(slider, 0, 10) == [(key, 1) for key in range(n)]
    others = panes.accumulators.new_rows()
    slots = others.fresh(keys, np.zeros(n, np.int64))
    panes.accumulators.add_rows(others, slots, no_columns(n))
    slider.absorb(others, slots)
    assert fired(slider, 0, 11) == [(key, 2) for key in range(n)]
    slider._check()


def test_float_sums_do_not_drift() -> None:
    """Many slides over values that cancel: the sum of each window stays that of its own values."""
    random = np.random.default_rng(5)
    values = random.choice([1e16, -1e16, 1.0, 1e-3, -3.25, 1e8], 20_000)
    panes = pane_table(AccumulatorSet([Sum("float64")]))
    key = panes.keys.intern_int64(times(1))
    slider, size = WindowSlider(panes, 1, blocks=(10,)), 100
    for start in range(len(values) - size):
        until = start + size
        first = until - 1 if start else 0
        part = values[first:until]
        panes.add(np.repeat(key, len(part)), np.arange(first, until), [(part, None)])
        rows = RowStore(panes.accumulators.blank())
        slider.fire(start, until, rows)
        got = panes.accumulators.results(rows, ids(0))[0][0][0]
        wanted = math.fsum(values[start:until])
        assert abs(got - wanted) <= 2 * math.ulp(wanted) + 1e-15
        slider.leave(start + 1)
        panes.drop_before(start + 1)


def test_float_sums_are_exact_over_a_million_windows() -> None:
    n, size = 1_000_000, 8
    values = np.random.default_rng(6).choice([1e16, -1e16, 1.0, 1e-3, -3.25, 1e8], n)
    table = pa.table({"k": np.zeros(n, np.int64), "ts": np.arange(n), "v": values})
    spec = fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(size, 1)).aggregate(s=fw.Sum("v"))
    stream = open_plan(fw.plan(spec, table.schema))
    found = []
    for at in range(0, n, 50_000):
        stream.process(table.slice(at, 50_000))
        found.append(stream.advance_watermark(at + 49_999).main)
    sums = pa.concat_tables(found)["s"].to_numpy()
    listed = values.tolist()
    wanted = np.array([math.fsum(listed[max(0, end - size) : end]) for end in range(1, n + 1)])
    assert len(sums) == n
    assert (np.abs(sums - wanted) <= 2 * np.spacing(np.abs(wanted)) + 1e-15).all()


def test_windows_that_go_back_are_refused() -> None:
    slider, rows = WindowSlider(pane_table(), 10), RowStore(pane_table().accumulators.blank())
    slider.fire(0, 20, rows)
    for start, end in ((-10, 20), (0, 19), (20, 20)):
        with pytest.raises(ValueError, match="does not follow"):
            slider.fire(start, end, rows)
    with pytest.raises(ValueError, match="fired"):
        slider.fire(10, 30, RowStore(np.zeros(3, np.int64)))
    with pytest.raises(ValueError, match="others"):
        slider.absorb(RowStore(np.zeros(3, np.int64)), ids())
    for slide, blocks in ((10, (0,)), (2**60, (100,)), (10, (4, 6)), (10, (2, 0)), (10, (2, 4, 8))):
        with pytest.raises(ValueError, match="blocks"):
            WindowSlider(pane_table(), slide, blocks=blocks)
    with pytest.raises(TypeError, match="panes"):
        WindowSlider(None, 10)
