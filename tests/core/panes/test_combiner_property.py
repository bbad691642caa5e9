"""WindowCombiner against merging the panes of every (key, window) by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.panes.combiner import WindowCombiner
from tests.support.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.support.kernels import accumulators, pane_table

KEYS, STARTS = st.integers(0, 3), st.integers(-12, 12)
WINDOWS = st.lists(st.tuples(KEYS, st.integers(-14, 10), st.integers(0, 14)), max_size=12)


def column_of(rows: list[tuple], at: int) -> np.ndarray:
    return np.array([row[at] for row in rows], np.int64)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_windows_hold_what_their_panes_hold(dtype: str, data: st.DataObject) -> None:
    element = st.tuples(KEYS, STARTS, st.one_of(st.none(), int64s if dtype == "int64" else float64s))
    panes = pane_table(accumulators(dtype))
    panes.keys.intern_int64(np.arange(4))
    combiner = WindowCombiner(panes)
    rows: dict[tuple[int, int], list] = {}
    wanted: list[list] = []

    def fired(key: int, begin: int, length: int) -> None:
        inside = sorted(place for place in rows if begin <= place[0] < begin + length and place[1] == key)
        wanted.append([value for place in inside for value in rows[place]])

    for elements in data.draw(st.lists(st.lists(element, max_size=30), min_size=1, max_size=3)):
        one_by_one, windows = data.draw(st.booleans()), data.draw(WINDOWS)
        if data.draw(st.booleans()):
            windows.sort(key=lambda window: (window[0], -window[1]))  # so that windows stand together
        keys, starts = column_of(elements, 0).astype(np.int32), column_of(elements, 1)
        columns = [column([value for *_, value in elements], dtype)]
        if one_by_one:
            # Each element fires the windows drawn, made its own key's.
            counts = np.array([len(windows) if i % 2 else 0 for i in range(len(elements))], np.int64)
            for (key, start, value), count in zip(elements, counts, strict=True):
                rows.setdefault((start, key), []).append(value)
                for _, begin, length in windows[:count]:
                    fired(key, begin, length)
            many = np.tile(column_of(windows, 1), len(elements) // 2)
            lengths = np.tile(column_of(windows, 2), len(elements) // 2)
            combiner.add_firing(keys, starts, columns, counts, many, many + lengths)
            continue
        panes.add(keys, starts, columns)
        for key, start, value in elements:
            rows.setdefault((start, key), []).append(value)
        for window in windows:
            fired(*window)
        begins = column_of(windows, 1)
        combiner.fire(column_of(windows, 0).astype(np.int32), begins, begins + column_of(windows, 2))
    panes._check()
    combiner.rows._check()
    results = panes.accumulators.results(combiner.rows, combiner.rows.slots())
    assert_results(results, RESULTS, wanted, dtype == "float64")
