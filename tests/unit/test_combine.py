import pytest

from fastwin.core.combine import WindowCombiner
from fastwin.core.panes import PaneTable
from tests.kernels import ids, no_columns, pane_table, times


def filled() -> PaneTable:
    """Key 0 in the panes 0, 10, 20; key 1 in 10; key 2 in 20, twice."""
    panes = pane_table()
    keys = panes.keys.intern_int64(times(5, 5, 5, 6, 7, 7))
    panes.add(keys, times(0, 10, 20, 10, 20, 20), no_columns(6))
    return panes


def collected(combiner: WindowCombiner) -> list[tuple[int, int, int]]:
    """(key id, window start, count) of each row, sorted."""
    slots = combiner.rows.slots()
    counts = combiner.panes.accumulators.results(combiner.rows, slots)[0][0]
    rows = zip(combiner.rows.keys(slots).tolist(), combiner.rows.starts(slots).tolist(), counts.tolist(), strict=True)
    return sorted(rows)


def test_window_holds_its_panes() -> None:
    combiner = WindowCombiner(filled())
    assert combiner.fire(0, 20) == 2
    assert collected(combiner) == [(0, 0, 2), (1, 0, 1)]


def test_window_is_half_open() -> None:
    combiner = WindowCombiner(filled())
    assert combiner.fire(1, 20) == 2
    assert combiner.fire(1, 21) == 3
    assert combiner.fire(21, 30) == 0
    assert combiner.fire(10, 10) == 0


def test_windows_collect_until_cleared() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire(0, 10)
    combiner.fire(20, 30)
    assert collected(combiner) == [(0, 0, 1), (0, 20, 1), (2, 20, 2)]
    combiner.clear()
    assert len(combiner.rows) == 0
    combiner.fire(10, 20)
    assert collected(combiner) == [(0, 10, 1), (1, 10, 1)]


def test_one_key_fires_alone() -> None:
    combiner = WindowCombiner(filled())
    assert combiner.fire_key(0, 0, 30) is True
    assert combiner.fire_key(1, 0, 10) is False
    assert combiner.fire_key(99, 0, 30) is False
    assert combiner.fire_key(-1, 0, 30) is False
    assert collected(combiner) == [(0, 0, 3)]


def test_key_fired_alone_does_not_mix_with_the_next_window() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire_key(0, 0, 30)
    combiner.fire(0, 30)
    combiner.fire_key(0, 0, 30)
    assert collected(combiner) == [(0, 0, 3), (0, 0, 3), (0, 0, 3), (1, 0, 1), (2, 0, 2)]


def test_panes_are_left_alone() -> None:
    panes = filled()
    panes.rows.clear_dirty()
    before = panes.accumulators.results(panes.rows, panes.rows.slots())[0][0].tolist()
    WindowCombiner(panes).fire(0, 30)
    assert panes.accumulators.results(panes.rows, panes.rows.slots())[0][0].tolist() == before
    assert panes.rows.dirty_slots().tolist() == []


def test_ids_used_again_are_not_mixed_up() -> None:
    panes = filled()
    panes.keys.sweep()
    combiner = WindowCombiner(panes)
    combiner.fire(0, 30)
    panes.drop_before(20)       # key id 1 is free now
    again = panes.keys.intern_int64(times(8))
    assert again.tolist() == [1]
    panes.add(ids(1), times(20), no_columns(1))
    combiner.fire(20, 30)
    assert collected(combiner) == [(0, 0, 3), (0, 20, 1), (1, 0, 1), (1, 20, 1), (2, 0, 2), (2, 20, 2)]


def test_needs_panes() -> None:
    with pytest.raises(TypeError, match="panes"):
        WindowCombiner(None)
