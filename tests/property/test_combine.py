"""WindowCombiner against merging the panes of every (key, window) by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.combine import WindowCombiner
from tests.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.kernels import accumulators, pane_table

KEYS, STARTS = st.integers(0, 5), st.integers(-6, 6)
STEP = st.one_of(
    st.tuples(st.just("fire"), st.integers(-8, 8), st.integers(0, 14)),
    st.tuples(st.just("fire_key"), st.integers(-8, 8), st.integers(0, 14), KEYS),
    st.tuples(st.just("clear")),
    st.tuples(st.just("drop_before"), STARTS),
)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_windows_hold_what_their_panes_hold(dtype: str, data: st.DataObject) -> None:
    element = st.tuples(KEYS, STARTS, st.one_of(st.none(), int64s if dtype == "int64" else float64s))
    panes = pane_table(accumulators(dtype))
    combiner = WindowCombiner(panes)
    rows: dict[tuple[int, int], list] = {}
    fired: list[tuple[int, int, list]] = []
    for elements in data.draw(st.lists(st.lists(element, max_size=30), min_size=1, max_size=3)):
        ids = panes.keys.intern_int64(np.array([key for key, _, _ in elements], np.int64))
        starts = np.array([start for _, start, _ in elements], np.int64)
        panes.add(ids, starts, [column([value for _, _, value in elements], dtype)])
        for key, start, value in elements:
            rows.setdefault((start, key), []).append(value)
        for action, *argument in data.draw(st.lists(STEP, max_size=6)):
            if action == "clear":
                combiner.clear()
                fired.clear()
                continue
            if action == "drop_before":
                panes.drop_before(argument[0])
                rows = {place: values for place, values in rows.items() if place[0] >= argument[0]}
                continue
            begin, end = argument[0], argument[0] + argument[1]
            inside = sorted(place for place in rows if begin <= place[0] < end)
            if action == "fire":
                keys = list(dict.fromkeys(key for _, key in inside))
                assert combiner.fire(begin, end) == len(keys)
            else:
                keys = [argument[2]] if any(key == argument[2] for _, key in inside) else []
                known = panes.keys.intern_int64(np.array([argument[2]]))
                assert combiner.fire_key(int(known[0]), begin, end) is bool(keys)
            fired += [(key, begin, [v for place in inside if place[1] == key for v in rows[place]]) for key in keys]
        compare(combiner, fired, dtype == "float64")
        panes._check()


def compare(combiner: WindowCombiner, fired: list[tuple[int, int, list]], is_float: bool) -> None:
    """The rows collected are those expected; keys of one window come in any order."""
    combiner.rows._check()
    slots = combiner.rows.slots()
    keys = combiner.panes.keys.take_int64(combiner.rows.keys(slots))[0].tolist()
    starts = combiner.rows.starts(slots).tolist()
    assert sorted(zip(keys, starts, strict=True)) == sorted((key, start) for key, start, _ in fired)
    results = combiner.panes.accumulators.results(combiner.rows, slots)
    left = list(fired)
    for i, (key, start) in enumerate(zip(keys, starts, strict=True)):
        at = next(at for at, row in enumerate(left) if row[:2] == (key, start))
        one = [(values[i : i + 1], None if valid is None else valid[i : i + 1]) for values, valid in results]
        assert_results(one, RESULTS, [left.pop(at)[2]], is_float)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_large_panes_are_merged_in_blocks(seed: int, windows: int) -> None:
    rng = np.random.default_rng(seed)
    panes = pane_table()
    combiner = WindowCombiner(panes)
    keys, starts = rng.integers(0, 1200, 3000), rng.integers(0, 4, 3000)
    values = rng.integers(-100, 100, 3000)
    panes.add(panes.keys.intern_int64(keys), starts, [(values, None)])
    for begin in range(windows):
        first = len(combiner.rows)
        inside = (starts >= begin) & (starts < begin + 2)
        assert combiner.fire(begin, begin + 2) == len(np.unique(keys[inside]))
        slots = combiner.rows.slots()[first:]
        found = panes.keys.take_int64(combiner.rows.keys(slots))[0]
        counts, _, sums, *_ = (result[0] for result in panes.accumulators.results(combiner.rows, slots))
        order = np.argsort(found)
        wanted, where = np.unique(keys[inside], return_inverse=True)
        assert found[order].tolist() == wanted.tolist()
        assert counts[order].tolist() == np.bincount(where).tolist()
        assert sums[order].tolist() == np.bincount(where, values[inside]).astype(np.int64).tolist()
