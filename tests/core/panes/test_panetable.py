import numpy as np
import pytest

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Min, Sum
from fastwin.core.panes.panetable import PaneTable
from tests.support.kernels import ids, no_columns, pane_table, row_of, slots, times


def counts(panes: PaneTable, start: int) -> list[int]:
    return panes.accumulators.results(panes.rows, panes.slots_of(start))[0][0].tolist()


def test_fresh_table_is_empty() -> None:
    panes = pane_table()
    assert len(panes) == panes.count == panes.nbytes == 0
    assert panes.starts().tolist() == panes.slots_of(0).tolist() == []
    assert panes.first_start(-(2**63)) is None
    assert row_of(panes, 0, 0) == -1
    panes.drop_before(2**63 - 1)
    panes._check()


def test_elements_add_to_the_row_of_their_key_and_pane() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(7, 8, 7, 7))
    found = panes.add(keys, times(0, 0, 0, 10), no_columns(4))
    assert found.tolist() == [0, 1, 0, 2]
    assert panes.starts().tolist() == [0, 10]
    assert counts(panes, 0) == [2, 1]
    assert counts(panes, 10) == [1]
    assert row_of(panes, int(keys[0]), 10) == 2
    assert row_of(panes, int(keys[1]), 10) == -1


def test_panes_are_in_order_of_their_starts() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 1, 1, 1))
    panes.add(keys, times(20, -10, 5, 0), no_columns(4))
    assert panes.starts().tolist() == [-10, 0, 5, 20]
    assert [panes.first_start(t) for t in (-11, -10, -9, 5, 6, 20, 21)] == [-10, -10, 0, 5, 20, 20, None]


def test_ensure_makes_rows_without_values() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    assert panes.ensure(keys, times(0, 0)).tolist() == [0, 1]
    assert panes.ensure(keys, times(0, 0)).tolist() == [0, 1]
    assert counts(panes, 0) == [0, 0]
    assert panes.rows.dirty_slots().tolist() == [0, 1]


def test_pane_at_the_bound_stays() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1, 1)), times(0, 10), no_columns(2))
    panes.drop_before(0)
    assert panes.starts().tolist() == [0, 10]
    panes.drop_before(10)
    assert panes.starts().tolist() == [10]


def test_last_row_takes_its_key_along() -> None:
    panes = pane_table()
    panes.add(panes.keys.intern_int64(times(1, 2, 2)), times(0, 0, 10), no_columns(3))
    panes.keys.sweep()
    panes.drop_before(10)
    assert panes.keys.take_int64(panes.keys.ids())[0].tolist() == [2]
    panes.drop_before(11)
    assert len(panes.keys) == len(panes) == 0


def test_dense_and_sparse_panes_find_their_rows() -> None:
    """A pane with most of the keys is indexed by key id, one with few by hash; new keys turn one into the other."""
    panes = pane_table()
    first = panes.keys.intern_int64(np.arange(1000))
    panes.add(first, np.zeros(1000, np.int64), no_columns(1000))
    panes.add(first[::100].copy(), np.ones(10, np.int64), no_columns(10))
    panes._check()
    more = panes.keys.intern_int64(np.arange(1000, 9000))
    panes.add(more[-1:], times(0), no_columns(1))
    panes.add(more[-1:], times(1), no_columns(1))
    panes._check()
    assert row_of(panes, int(more[-1]), 0) == 1010
    assert row_of(panes, int(more[-1]), 1) == 1011
    assert row_of(panes, int(more[0]), 0) == row_of(panes, int(more[0]), 1) == -1
    assert row_of(panes, int(first[999]), 0) == 999


def test_state_per_row_is_small() -> None:
    """An int64 key with count, sum, min and max: the accumulators, 24 bytes of head, and the index."""
    panes = pane_table(AccumulatorSet([Count(column=-1), Sum(), Min(), Max()]))
    keys = panes.keys.intern_int64(np.arange(65_536))
    for start in range(4):
        panes.ensure(keys, np.full(65_536, start))
    assert panes.rows.stride == 64
    assert panes.nbytes / len(panes) < 70


def test_arguments_are_checked() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    with pytest.raises(ValueError, match="starts: needs 2 values, one for each row, got 1"):
        panes.add(keys, times(0), no_columns(2))
    with pytest.raises(ValueError, match="starts: needs 2 values, one for each row, got 3"):
        panes.ensure(keys, times(0, 0, 0))
    with pytest.raises(IndexError, match="keys: must be at least 0 and below 2, got 2"):
        panes.add(ids(0, 2), times(0, 0), no_columns(2))
    with pytest.raises(IndexError, match="keys: must be at least 0 and below 2, got -1"):
        panes.ensure(ids(-1), times(0))
    with pytest.raises(ValueError, match="columns: the accumulators read 1, got 0"):
        panes.add(keys, times(0, 0), [])
    assert len(panes) == 0
    panes._check()


def test_slots_stay_while_the_store_grows() -> None:
    panes = pane_table()
    one = panes.keys.intern_int64(times(-1))
    panes.add(one, times(0), no_columns(1))
    panes.add(panes.keys.intern_int64(np.arange(5000)), np.zeros(5000, np.int64), no_columns(5000))
    assert panes.rows.keys(slots(0)).tolist() == one.tolist()
    assert counts(panes, 0)[0] == 1


@pytest.mark.parametrize("before", range(0, 256, 8))
def test_index_that_becomes_a_hashed_one_within_a_block(before: int) -> None:
    """Rows are looked up a block at a time, and one that is made may change the kind of the index."""
    panes = pane_table()
    values = np.concatenate([np.zeros(before, dtype=np.int64), np.repeat(np.arange(3_000), 3)])
    n = len(values)
    panes.feed(None, values, None, np.zeros(n, dtype=np.int64), 0, 1, 0, 0, no_columns(n))
    panes._check()
    assert counts(panes, 0) == np.bincount(values).tolist()


def test_panes_that_go_one_by_one_leave_others_in_their_places() -> None:
    panes, n = pane_table(), 2_000
    key = panes.keys.intern_int64(times(7))
    panes.add(np.repeat(key, n), np.arange(n), no_columns(n))
    before = panes.moved
    for now in range(n):
        panes.add(key, times(n + now), no_columns(1))
        panes.drop_before(now + 1)
        assert panes.count == n
    panes._check()
    assert panes.moved - before <= 4 * n, f"{panes.moved - before} panes were moved for {n} that went"
    panes.drop_before(2 * n - 1)
    panes.add(np.repeat(key, 3), times(5 * n, 3 * n, 4 * n), no_columns(3))
    assert panes.starts().tolist() == [2 * n - 1, 3 * n, 4 * n, 5 * n]
    panes._check()


def test_panes_in_front_of_all_others_move_each_of_them_once() -> None:
    panes, n = pane_table(), 1_000
    key = panes.keys.intern_int64(times(7))
    panes.add(np.repeat(key, n), np.arange(n), no_columns(n))
    before = panes.moved
    panes.add(np.repeat(key, n), np.arange(-1, -n - 1, -1), no_columns(n))
    assert panes.starts().tolist() == list(range(-n, n))
    assert panes.moved - before <= 4 * n
