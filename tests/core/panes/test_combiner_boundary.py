import numpy as np
import pytest

from fastwin.core.panes.combiner import WindowCombiner
from tests.support.kernels import ids, no_columns, pane_table, times

LOW, TOP = -(2**63), 2**63 - 1


def test_table_without_panes_fires_nothing() -> None:
    combiner = WindowCombiner(pane_table())
    combiner.fire(ids(), times(), times())
    assert len(combiner.rows) == 0
    with pytest.raises(IndexError, match="keys"):
        combiner.fire(ids(0), times(LOW), times(TOP))
    combiner.clear()
    combiner.rows._check()


def test_window_of_all_times() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1, 1, 1)), times(LOW, 0, TOP), no_columns(3))
    combiner = WindowCombiner(panes)
    combiner.fire(ids(0), times(LOW), times(TOP))
    assert panes.accumulators.results(combiner.rows, combiner.rows.slots())[0][0].tolist() == [2]


def test_window_that_ends_before_it_starts_is_empty() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1)), times(0), no_columns(1))
    combiner = WindowCombiner(panes)
    combiner.fire(ids(0, 0), times(5, TOP), times(-5, LOW))
    assert panes.accumulators.results(combiner.rows, combiner.rows.slots())[0][0].tolist() == [0, 0]


@pytest.mark.parametrize("n", [511, 512, 513, 1_025])
def test_panes_of_a_whole_block_are_merged(n: int) -> None:
    panes = pane_table()
    key = panes.keys.intern_int64(times(9))
    panes.add(np.repeat(key, n), np.arange(n), no_columns(n))
    combiner = WindowCombiner(panes)
    combiner.fire(np.repeat(key, 2), times(1, 0), times(n, n - 1))
    counts = panes.accumulators.results(combiner.rows, combiner.rows.slots())[0][0]
    assert counts.tolist() == [n - 1, n - 1]


def test_lengths_and_counts_that_do_not_fit_are_refused() -> None:
    panes = pane_table()
    panes.keys.intern_int64(times(1))
    combiner = WindowCombiner(panes)
    with pytest.raises(ValueError, match="ends"):
        combiner.fire(ids(0), times(0), times())
    with pytest.raises(ValueError, match="starts"):
        combiner.add_firing(ids(0), times(0), no_columns(1), times(2), times(0), times(1))
    with pytest.raises(ValueError, match="counts"):
        combiner.add_firing(ids(0), times(0), no_columns(1), times(-1), times(), times())
    assert len(combiner.rows) == 0
