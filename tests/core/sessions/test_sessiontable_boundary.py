import numpy as np
import pytest

from fastwin.core.keys.keytable import KeyTable
from fastwin.core.sessions.sessiontable import HEAD_CELLS, SessionTable
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import accumulators, ids, no_columns, session_table, slots, times

LIMIT = 2**61
LOW, TOP = -(2**63), 2**63 - 1


def test_empty_arrays_change_nothing() -> None:
    table = session_table()
    found, armed = table.add(ids(), times(), 10, 0, 0, no_columns(0))
    assert found.tolist() == armed.tolist() == []
    for parts in ([table.insert(ids(), times(), times())], [table.find(ids(), times())], table.removals(slots())):
        assert all(part.tolist() == [] for part in parts)
    assert table.covering(ids(), times()).tolist() == []
    table.drop(slots())
    table.saved(slots())
    table._check()


def test_times_and_gap_at_the_limit() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1, 1))
    table.add(keys, times(LIMIT, -LIMIT), LIMIT, LOW, 0, no_columns(2))
    found = table.rows.slots()
    assert sorted(table.rows.starts(found).tolist()) == [-LIMIT, LIMIT]
    assert sorted(table.ends(found).tolist()) == [0, 2 * LIMIT]
    table._check()


@pytest.mark.parametrize("time", [-LIMIT - 1, LIMIT + 1, LOW, TOP])
def test_times_beyond_the_limit_are_refused(time: int) -> None:
    table = session_table()
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        table.add(table.keys.intern_int64(times(1, 1)), times(0, time), 10, LOW, 0, no_columns(2))
    assert len(table) == 0


@pytest.mark.parametrize("gap", [LOW, -1, 0, LIMIT + 1, TOP])
def test_gap_out_of_bounds_is_refused(gap: int) -> None:
    table = session_table()
    with pytest.raises(ValueError, match=f"gap: .* got {gap}"):
        table.add(table.keys.intern_int64(times(1)), times(0), gap, LOW, 0, no_columns(1))


@pytest.mark.parametrize(
    ("watermark", "lateness", "is_late"),
    [(LOW, 0, 0), (LOW, TOP, 0), (TOP, 0, 1), (TOP, TOP, 0), (TOP, TOP - 9, 1), (TOP, TOP - 8, 0)],
)
def test_lateness_is_decided_without_overflow(watermark: int, lateness: int, is_late: int) -> None:
    table = session_table()
    found, _ = table.add(table.keys.intern_int64(times(1)), times(0), 10, watermark, lateness, no_columns(1))
    assert found.tolist() == ([-1] if is_late else [0])


def test_early_times_at_the_last_watermark_are_late() -> None:
    table = session_table()
    keys = table.keys.intern_int64(np.arange(3))
    found, armed = table.add(keys, times(-LIMIT, -1, LIMIT), 10, TOP, 0, no_columns(3))
    assert found.tolist() == [-1, -1, -1]
    assert armed.tolist() == []


def test_blocks_full_of_late_elements() -> None:
    """Late elements at the edges of blocks, alone and in rows, leave the others in their places."""
    n = 2000
    for late in ([0], [511], [512], [0, 511, 512, 513, 1999], range(500, 530), range(0, n, 2), range(n)):
        table = session_table()
        given = np.full(n, 1000)
        given[list(late)] = 0
        values = np.arange(n)
        found, _ = table.add(table.keys.intern_int64(np.arange(n)), given, 10, 500, 0, [(values, None)])
        assert np.flatnonzero(found < 0).tolist() == list(late)
        taken = found[found >= 0]
        total = table.accumulators.results(table.rows, taken)[2][0]
        assert total.tolist() == [i for i in range(n) if i not in set(late)]
        table._check()


def test_chain_of_merges_within_a_block() -> None:
    """Every second element bridges two sessions; all end in one, with nothing lost."""
    table = session_table()
    order = [*range(0, 6000, 20), *range(10, 5990, 20)]
    keys = table.keys.intern_int64(np.zeros(len(order), np.int64))
    table.add(keys, np.array(order), 10, LOW, 0, [(np.ones(len(order), np.int64), None)])
    assert len(table) == 1
    assert table.accumulators.results(table.rows, table.rows.slots())[2][0].tolist() == [len(order)]
    table._check()


def test_read_only_arrays_are_taken() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1, 1))
    table.add(keys, times(0, 50), 10, LOW, 0, no_columns(2))
    takes_read_only(lambda k, t: table.add(k, t, 10, LOW, 0, no_columns(2)), keys, times(0, 50))
    takes_read_only(table.find, keys, times(0, 50))
    takes_read_only(table.covering, keys, times(0, 50))
    takes_read_only(table.removals, slots(0, 1))
    takes_read_only(table.ends, slots(0, 1))


def test_other_things_than_arrays_are_refused() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1, 1))
    refuses_what_is_no_array(lambda k, t: table.add(k, t, 10, LOW, 0, no_columns(2)), keys, times(0, 50))
    refuses_what_is_no_array(table.insert, keys, times(0, 50), times(10, 60))
    for call in (table.find, table.covering):
        refuses_what_is_no_array(call, keys, times(0, 50))
    assert len(table) == 0
    table.add(keys, times(0, 50), 10, LOW, 0, no_columns(2))
    for call in (table.drop, table.ends, table.removals, table.saved):
        refuses_what_is_no_array(call, slots(0, 1))
    assert len(table) == 2
    table._check()


def test_none_is_no_table() -> None:
    with pytest.raises(TypeError, match="keys"):
        SessionTable(None, accumulators("int64", HEAD_CELLS))
    with pytest.raises(TypeError, match="accumulators"):
        SessionTable(KeyTable("int64"), None)
