import numpy as np
import pytest

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import accumulators, ids, no_columns, pane_table, times

MIN = -(2**61)

LOW, TOP = -(2**63), 2**63 - 1


def test_empty_arrays_change_nothing() -> None:
    panes = pane_table()
    assert panes.add(ids(), times(), no_columns(0)).tolist() == []
    assert panes.ensure(ids(), times()).tolist() == []
    assert panes.count == len(panes) == 0


def test_extreme_starts_are_panes() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 1, 1))
    panes.add(keys, times(TOP, LOW, 0), no_columns(3))
    assert panes.starts().tolist() == [LOW, 0, TOP]
    assert panes.first_start(TOP) == TOP
    panes.drop_before(LOW)
    assert panes.count == 3
    panes.drop_before(TOP)
    assert panes.starts().tolist() == [TOP]
    panes._check()


def test_table_without_accumulators_counts_on_its_rows() -> None:
    panes = PaneTable(KeyTable("int64"), AccumulatorSet([]))
    panes.add(panes.keys.intern_int64(times(1, 2)), times(0, 0), [])
    assert panes.slots_of(0).tolist() == [0, 1]


def test_blocks_of_any_length_are_added() -> None:
    for n in (1, 511, 512, 513, 1024, 1025):
        panes = pane_table()
        keys = panes.keys.intern_int64(np.arange(n))
        assert panes.add(keys, np.zeros(n, np.int64), no_columns(n)).tolist() == list(range(n))
        panes._check()


def test_read_only_arrays_are_taken() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    takes_read_only(lambda k, s: panes.add(k, s, no_columns(2)), keys, times(0, 1))
    takes_read_only(panes.ensure, keys, times(0, 1))


def test_other_things_than_arrays_are_refused() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    refuses_what_is_no_array(lambda k, s: panes.add(k, s, no_columns(2)), keys, times(0, 1))
    refuses_what_is_no_array(panes.ensure, keys, times(0, 1))
    assert len(panes) == 0
    panes._check()


def test_refused_columns_leave_no_rows() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    with pytest.raises(ValueError, match="column 0: must be of int64 or float64, got int32"):
        panes.add(keys, times(0, 1), [(ids(1, 2), None)])
    with pytest.raises(TypeError):
        panes.add(keys, times(0, 1), None)
    assert len(panes) == panes.count == 0


def test_none_is_no_table() -> None:
    with pytest.raises(TypeError, match="keys"):
        PaneTable(None, accumulators())
    with pytest.raises(TypeError, match="accumulators"):
        PaneTable(KeyTable("int64"), None)


def test_times_beyond_int64_are_refused() -> None:
    for call in (pane_table().first_start, pane_table().drop_before, pane_table().slots_of):
        with pytest.raises(OverflowError):
            call(2**63)


@pytest.mark.parametrize(
    ("first", "passed"), [(-7, []), (-6, [1]), (25, [1]), (26, [0, 1]), (2**61 + 1, [0, 1]), (TOP, [0, 1])]
)
def test_feed_passes_over_what_is_before_the_first(first: int, passed: list[int]) -> None:
    panes = pane_table()
    given = (10, 0, 0, no_columns(2))
    with pytest.raises(ValueError, match=r"times: .* got 2305843009213693953"):
        panes.feed(None, times(1, 2), None, times(2**61 + 1, -7), first, *given)
    assert panes.feed(None, times(1, 2), None, times(25, -7), first, *given).tolist() == passed
    assert panes.starts().tolist() == [start for start, i in ((-10, 1), (20, 0)) if i not in passed]
    assert len(panes.keys) == 2 - len(passed)
    panes._check()


def test_feed_passes_over_elements_anywhere_in_a_block() -> None:
    panes, n = pane_table(), 1_500
    passed = np.array([0, 1, 511, 512, 700, n - 1])
    when = np.full(n, 5)
    when[passed] = -5
    keys = panes.keys.intern_int64(np.arange(n))
    for ids_, values in ((keys, None), (None, np.arange(n))):
        assert panes.feed(ids_, values, None, when, 0, 10, 0, 0, no_columns(n)).tolist() == passed.tolist()
    assert panes.rows.keys(panes.slots_of(0)).tolist() == np.delete(keys, passed).tolist()


def test_rows_of_many_panes_are_listed_in_order() -> None:
    panes = pane_table()
    starts = times(30, 10, 20, 20, TOP, LOW)
    panes.ensure(panes.keys.intern_int64(times(1, 2, 3, 4, 5, 6)), starts)
    for most in (0, 1, 2, 3, 100):
        found = panes.slots_from(10, 30, most)
        assert found.tolist() == [1, 2, 3, 0][: {2: 1, 3: 3, 100: 4}.get(most, 1)]
    assert panes.slots_from(LOW, TOP, 100).tolist() == [5, 1, 2, 3, 0, 4]
    assert panes.slots_from(11, 19, 100).tolist() == panes.slots_from(30, 10, 100).tolist() == []


def test_feed_refuses_what_does_not_fit() -> None:
    panes = pane_table()
    known = panes.keys.intern_int64(times(5))
    given = (times(0), MIN, 10, 0, 0, no_columns(1))
    with pytest.raises(ValueError, match="values"):
        panes.feed(None, None, None, *given)
    with pytest.raises(ValueError, match="values"):
        panes.feed(None, times(1, 2), None, *given)
    with pytest.raises(ValueError, match="valid"):
        panes.feed(None, times(1), np.zeros(2, np.uint8), *given)
    with pytest.raises(ValueError, match="ids"):
        panes.feed(np.repeat(known, 2), None, None, *given)
    with pytest.raises(IndexError, match="ids"):
        panes.feed(known + 1, None, None, *given)
    for slide, rest, offset in ((10, 10, 0), (10, -1, 0), (10, 0, 10), (10, 0, -10), (0, 0, 0)):
        with pytest.raises(ValueError, match=r"slide|rest"):
            panes.feed(known, None, None, times(0), MIN, slide, rest, offset, no_columns(1))
    with pytest.raises(ValueError, match="times"):
        panes.feed(known, None, None, times(2**62), MIN, 10, 0, 0, no_columns(1))
    with pytest.raises(ValueError, match="columns"):
        panes.feed(known, None, None, times(0), MIN, 10, 0, 0, no_columns(2))
    assert len(panes) == 0
    panes.feed(known[:0], None, None, times(), MIN, 10, 0, 0, no_columns(0))
    panes.feed(None, times(1, 1), np.array([1, 0], np.uint8), times(-1, 25), MIN, 10, 3, 0, no_columns(2))
    assert panes.starts().tolist() == [-7, 23]
    panes._check()
