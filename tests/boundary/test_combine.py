import numpy as np

from fastwin.core.combine import WindowCombiner
from tests.kernels import no_columns, pane_table, times

LOW, TOP = -(2**63), 2**63 - 1


def test_table_without_panes_fires_nothing() -> None:
    combiner = WindowCombiner(pane_table())
    assert combiner.fire(LOW, TOP) == 0
    assert combiner.fire_key(0, LOW, TOP) is False
    combiner.clear()
    combiner.rows._check()


def test_window_of_all_times() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1, 1, 1)), times(LOW, 0, TOP), no_columns(3))
    combiner = WindowCombiner(panes)
    assert combiner.fire(LOW, TOP) == 1
    assert panes.accumulators.results(combiner.rows, combiner.rows.slots())[0][0].tolist() == [2]


def test_window_that_ends_before_it_starts_is_empty() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1)), times(0), no_columns(1))
    combiner = WindowCombiner(panes)
    assert combiner.fire(5, -5) == combiner.fire(TOP, LOW) == 0
    assert combiner.fire_key(0, 5, -5) is False


def test_panes_of_a_whole_block_are_merged() -> None:
    for n in (511, 512, 513, 1025):
        panes = pane_table()
        keys = panes.keys.intern_int64(np.arange(n))
        for start in (0, 1):
            panes.add(keys, np.full(n, start), no_columns(n))
        combiner = WindowCombiner(panes)
        assert combiner.fire(0, 2) == n
        counts = panes.accumulators.results(combiner.rows, combiner.rows.slots())[0][0]
        assert counts.tolist() == [2] * n
