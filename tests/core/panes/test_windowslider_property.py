"""WindowSlider in lockstep with merging the panes of every (key, window) by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastwin.core.panes.windowslider import WindowSlider
from fastwin.core.rows.rowstore import RowStore
from tests.support.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.support.kernels import accumulators, pane_table

KEYS = st.integers(0, 3)


def compare(slider: WindowSlider, start: int, end: int, rows: dict, is_float: bool) -> None:
    """Fires the window; its rows are those expected, whatever their order."""
    fired = RowStore(slider.panes.accumulators.blank())
    count = slider.fire(start, end, fired)
    slider._check()
    slots = fired.slots()
    keys = slider.panes.keys.take_int64(fired.keys(slots))[0].tolist()
    inside = sorted(place for place in rows if start <= place[0] < end)
    assert sorted(keys) == sorted({key for _, key in inside})
    assert count == len(keys)
    assert fired.starts(slots).tolist() == [start] * count
    wanted = [[value for place in inside if place[1] == key for value in rows[place]] for key in keys]
    assert_results(slider.panes.accumulators.results(fired, slots), RESULTS, wanted, is_float)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_windows_hold_what_their_panes_hold(dtype: str, data: st.DataObject) -> None:
    slide, offset = data.draw(st.integers(1, 3)), data.draw(st.integers(-2, 2))
    size = data.draw(st.integers(1, 30))  # need not be a multiple of slide
    panes = pane_table(accumulators(dtype))
    blocks = data.draw(st.sampled_from([(), (1,), (2,), (5,), (2, 4), (2, 8), (3, 9), (1, 3)]))
    slider = WindowSlider(panes, slide, offset, blocks)
    value = st.one_of(st.none(), int64s if dtype == "int64" else float64s)
    rows: dict[tuple[int, int], list] = {}
    start = offset + slide * data.draw(st.integers(-20, 0))
    kept = start
    for _ in range(data.draw(st.integers(1, 15))):
        element = st.tuples(KEYS, st.integers(kept, start + size + 2 * slide), value)
        elements = data.draw(st.lists(element, max_size=6))
        ids = panes.keys.intern_int64(np.array([key for key, *_ in elements], np.int64))
        starts = np.array([start for _, start, _ in elements], np.int64)
        columns = [column([value for *_, value in elements], dtype)]
        panes.add(ids, starts, columns)
        slider.add(ids, starts, columns)
        slider._check()
        panes.keys.sweep()
        for key, pane, one in elements:
            rows.setdefault((pane, key), []).append(one)
        compare(slider, start, start + size, rows, dtype == "float64")
        start += slide * data.draw(st.sampled_from([1, 1, 1, 1, 2, 5, 40]))
        if data.draw(st.booleans()):
            kept = start - slide * data.draw(st.sampled_from([0, 0, 3]))
            slider.leave(kept)
            slider._check()
            panes.drop_before(kept)
            panes._check()
            rows = {place: values for place, values in rows.items() if place[0] >= kept}


@settings(max_examples=2)  # one is some hundred thousand comparisons
@given(st.integers(0, 2**32 - 1), st.sampled_from([(4,), (2, 6)]))
def test_blocks_of_keys(seed: int, blocks: tuple[int, ...]) -> None:
    """More keys than a block takes, over windows whose stacks turn over many times."""
    random = np.random.default_rng(seed)
    panes = pane_table()
    slider = WindowSlider(panes, 1, 0, blocks)
    rows: dict[tuple[int, int], list] = {}
    for step in range(40):
        n = int(random.integers(0, 900))
        keys, values = random.integers(0, 700, n), random.integers(-9, 9, n)
        starts = np.maximum(step + 16 - random.integers(0, 30, n) ** 2 // 40, step)
        ids = panes.keys.intern_int64(keys)
        panes.add(ids, starts, [(values, None)])
        slider.add(ids, starts, [(values, None)])
        panes.keys.sweep()
        for key, start, value in zip(keys.tolist(), starts.tolist(), values.tolist(), strict=True):
            rows.setdefault((start, key), []).append(value)
        compare(slider, step, step + 16, rows, False)
        slider.leave(step + 1)
        panes.drop_before(step + 1)
        rows = {place: found for place, found in rows.items() if place[0] > step}
