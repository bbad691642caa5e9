import numpy as np
import pytest

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.sessions.sessiontable import HEAD_CELLS, SessionTable
from tests.support.kernels import ids, no_columns, session_table, slots, times

NEVER = -(2**63)
GAP = 10


def add(
    table: SessionTable, *given: int, key: int = 5, watermark: int = NEVER, lateness: int = 0
) -> tuple[list[int], list[int]]:
    """Adds elements of one key; returns the slots they went to, and the rows that need a timer."""
    keys = table.keys.intern_int64(np.full(len(given), key))
    found, armed = table.add(keys, times(*given), GAP, watermark, lateness, no_columns(len(given)))
    table.keys.sweep()
    table._check()
    return found.tolist(), armed.tolist()


def sessions(table: SessionTable) -> list[tuple[int, int, int]]:
    """(start, end, count) of each session, in order."""
    found = table.rows.slots()
    counts = table.accumulators.results(table.rows, found)[0][0].tolist()
    return sorted(zip(table.rows.starts(found).tolist(), table.ends(found).tolist(), counts, strict=True))


def test_elements_within_the_gap_share_a_session() -> None:
    table = session_table()
    assert add(table, 0, 5, 14) == ([0, 0, 0], [0])
    assert sessions(table) == [(0, 24, 3)]
    assert len(table) == 1


def test_touching_sessions_merge() -> None:
    table = session_table()
    add(table, 0, 10)
    assert sessions(table) == [(0, 20, 2)]
    table = session_table()
    add(table, 10, 0)
    assert sessions(table) == [(0, 20, 2)]


def test_sessions_one_apart_do_not_merge() -> None:
    table = session_table()
    add(table, 0, 11, -11)
    assert sessions(table) == [(-11, -1, 1), (0, 10, 1), (11, 21, 1)]


def test_keys_have_sessions_of_their_own() -> None:
    table = session_table()
    add(table, 0, key=1)
    add(table, 3, key=2)
    assert sessions(table) == [(0, 10, 1), (3, 13, 1)]


def test_element_in_between_joins_two_sessions() -> None:
    table = session_table()
    assert add(table, 0, 20) == ([0, 1], [0, 1])
    assert add(table, 10) == ([1], [])
    assert sessions(table) == [(0, 30, 3)]


def test_rows_merged_within_a_call_are_not_armed() -> None:
    table = session_table()
    found, armed = add(table, 0, 20, 10, 40)
    assert found == [0, 1, 1, 2]
    assert armed == [1, 2]


def test_late_elements_are_not_taken() -> None:
    table = session_table()
    assert add(table, 0, 50, 1, watermark=20)[0] == [-1, 0, -1]
    assert sessions(table) == [(50, 60, 1)]


def test_element_is_late_when_its_window_has_ended() -> None:
    assert add(session_table(), 0, watermark=8)[0] == [0]
    assert add(session_table(), 0, watermark=9)[0] == [-1]
    assert add(session_table(), 0, watermark=9, lateness=1)[0] == [0]
    assert add(session_table(), 0, watermark=10, lateness=1)[0] == [-1]


def test_late_element_that_touches_a_session_is_taken() -> None:
    table = session_table()
    add(table, 20)
    assert add(table, 10, watermark=19)[0] == [0]
    assert sessions(table) == [(10, 30, 2)]


def test_no_watermark_and_endless_lateness_keep_all() -> None:
    assert add(session_table(), -(2**61))[0] == [0]
    assert add(session_table(), -(2**61), watermark=2**63 - 1, lateness=2**63 - 1)[0] == [-1]
    assert add(session_table(), 0, watermark=2**63 - 1, lateness=2**63 - 1)[0] == [0]
    assert add(session_table(), -(2**61), watermark=2**63 - 1)[0] == [-1]


def test_session_that_had_ended_is_armed_when_it_ends_later() -> None:
    table = session_table()
    add(table, 0)
    assert add(table, 0, watermark=9, lateness=100) == ([0], [])
    assert add(table, 5, watermark=9, lateness=100) == ([0], [0])
    assert add(table, 6, watermark=9, lateness=100) == ([0], [])


def test_dropped_session_takes_its_key_along() -> None:
    table = session_table()
    add(table, 0, 50)
    table.drop(slots(0))
    assert sessions(table) == [(50, 60, 1)]
    assert len(table.keys) == 1
    table.drop(slots(1))
    assert len(table) == len(table.keys) == 0


def test_slot_without_a_session_is_not_dropped() -> None:
    table = session_table()
    add(table, 0, 50)
    for bad in (2, -1):
        with pytest.raises(IndexError, match=f"slots: {bad} holds no session"):
            table.drop(slots(bad))
    with pytest.raises(IndexError, match="slots: 0 holds no session"):
        table.drop(slots(0, 0))
    assert sessions(table) == [(50, 60, 1)]
    table._check()


def test_sessions_are_found_by_start_and_by_time() -> None:
    table = session_table()
    add(table, 0, 50, 5)
    assert table.find(ids(0, 0, 0, 0), times(0, 5, 50, 51)).tolist() == [0, -1, 1, -1]
    assert table.covering(ids(0, 0, 0, 0, 0), times(-1, 0, 14, 15, 59)).tolist() == [-1, 0, 0, -1, 1]


def test_inserted_sessions_are_as_given() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1, 1, 2))
    assert table.insert(keys, times(50, 0, 0), times(60, 30, 5)).tolist() == [0, 1, 2]
    assert sessions(table) == [(0, 5, 0), (0, 30, 0), (50, 60, 0)]
    table._check()


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (0, 5), (10, 12), (30, 33), (12, 13), (0, 99)])
def test_session_that_touches_another_is_not_inserted(start: int, end: int) -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1))
    table.insert(keys, times(5), times(30))
    with pytest.raises(ValueError, match=rf"sessions: \[{start}, {end}\) is empty or touches another session"):
        table.insert(keys, times(start), times(end))
    table._check()


def test_merged_sessions_that_were_saved_are_removals() -> None:
    table = session_table()
    add(table, 0, 20)
    assert [found.tolist() for found in table.removals(table.rows.dirty_slots())] == [[], []]
    table.saved(table.rows.dirty_slots())
    assert table.rows.dirty_slots().tolist() == []
    add(table, 10)
    changed = table.rows.dirty_slots()
    assert changed.tolist() == [1]
    keys, starts = table.removals(changed)
    assert keys.tolist() == [0, 0]
    assert sorted(starts.tolist()) == [0, 20]
    table.saved(changed)
    assert table.removals(table.rows.slots())[0].tolist() == []


def test_session_whose_start_moved_is_a_removal_under_its_old_start() -> None:
    table = session_table()
    add(table, 20)
    table.saved(slots(0))
    add(table, 15)
    assert [found.tolist() for found in table.removals(slots(0))] == [[0], [20]]


def test_key_outlives_its_sessions_while_a_removal_names_it_not_after() -> None:
    table = session_table()
    add(table, 0, 20)
    table.saved(slots(0, 1))
    add(table, 10)
    table.drop(slots(1))
    assert len(table.keys) == 0
    assert table.removals(slots())[0].tolist() == []


def test_sessions_that_go_leave_the_removals_of_other_keys_alone() -> None:
    table, n = session_table(), 300
    add(table, *range(0, 40 * n, 20))
    table.saved(table.rows.slots())
    joined = add(table, *range(10, 40 * n, 40))[0]  # two of them become one, and both are removals but for one
    keys, starts = table.removals(table.rows.dirty_slots())
    assert len(keys) == 2 * n
    before = table.looked
    for other in range(n):
        table.drop(slots(*add(table, 0, key=100 + other)[0]))
        table.drop(slots())
    assert table.looked - before <= 2 * n
    assert [sorted(found.tolist()) for found in table.removals(table.rows.dirty_slots())] == [
        sorted(keys.tolist()), sorted(starts.tolist())
    ]  # fmt: skip
    table.drop(slots(*joined[1:]))
    assert len(table.removals(slots())[0]) == n
    add(table, 10**6, key=7)
    table.drop(slots(joined[0]))
    table._check()
    assert table.removals(slots())[0].tolist() == []
    assert len(table.keys) == 1


def test_removals_are_forgotten_when_they_are_saved() -> None:
    table = session_table()
    for key in (5, 6, 5):
        start = 0 if key == 6 or not len(table) else 1_000
        add(table, start, start + 20, start + 40, key=key)
        table.saved(table.rows.slots())
        add(table, start + 10, start + 30, key=key)
    assert len(table.removals(slots())[0]) == 2
    table.saved(table.rows.slots())
    assert table.removals(slots())[0].tolist() == []
    found = table.rows.slots()
    table.drop(found)
    table._check()
    assert len(table.keys) == 0


@pytest.mark.parametrize("where", ["anywhere", "the first one", "in front of all", "late"])
def test_a_search_passes_few_of_many_sessions(where: str) -> None:
    table = session_table()
    add(table, *range(0, 800_000, 20))
    assert table._farthest() == 40_000, "nobody has had to search"
    anywhere = np.random.default_rng(1).integers(0, 800_000, 200).tolist()
    for i in range(200):
        time = {"anywhere": anywhere[i], "the first one": 0, "in front of all": -20 * i, "late": -99}[where]
        keys = table.keys.intern_int64(times(5, 5))
        both = times(time, 800_000 + 20 * i)
        table.add(keys, both, GAP, -60 if where == "late" else NEVER, 0, no_columns(2))
        table.keys.sweep()
    table._check()
    assert 32 <= table._farthest() < 700


def test_a_guide_goes_with_the_sessions_of_its_key() -> None:
    table, sizes = session_table(), []
    for _ in range(3):
        for key in (5, 6):
            add(table, *range(0, 40_000, 20), key=key)
            before = table.nbytes
            add(table, 0, key=key)
            assert table._farthest() < 300
            assert table.nbytes - before >= 63 * 16
        add(table, *range(10, 40_000, 20), key=5)
        assert len(table) == 2_001
        sizes.append(table.nbytes)
        table.drop(table.rows.slots())
        table._check()
    assert len(set(sizes)) == 1


def test_arguments_are_checked() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(1, 2))
    columns = no_columns(2)
    with pytest.raises(ValueError, match="times: needs 2 values, one for each row, got 1"):
        table.add(keys, times(0), GAP, 0, 0, columns)
    with pytest.raises(IndexError, match="keys: must be at least 0 and below 2, got 2"):
        table.add(ids(0, 2), times(0, 0), GAP, 0, 0, columns)
    with pytest.raises(ValueError, match=r"gap: must be at least 1 ms and at most 2\*\*61 ms, got 0"):
        table.add(keys, times(0, 0), 0, 0, 0, columns)
    with pytest.raises(ValueError, match="lateness: must be at least 0 ms, got -1"):
        table.add(keys, times(0, 0), GAP, 0, -1, columns)
    with pytest.raises(ValueError, match=r"times: must be within \+-2\*\*61 ms, got 2305843009213693953"):
        table.add(keys, times(0, 2**61 + 1), GAP, 0, 0, columns)
    for call in (table.find, table.covering):
        with pytest.raises(ValueError, match="needs 2 values, one for each row, got 1"):
            call(keys, times(0))
        with pytest.raises(IndexError, match="keys: must be at least 0 and below 2, got -1"):
            call(ids(-1), times(0))
    with pytest.raises(ValueError, match="ends: needs 2 values"):
        table.insert(keys, times(0, 0), times(1))
    for call in (table.ends, table.saved, table.removals):
        with pytest.raises(IndexError, match="must be at least 0 and below 0, got 0"):
            call(slots(0))
    assert len(table) == 0
    table._check()


def test_head_has_room_for_the_session() -> None:
    with pytest.raises(ValueError, match=f"accumulators: need head_cells={HEAD_CELLS}, got 3"):
        SessionTable(KeyTable("int64"), AccumulatorSet([]))


def absorbed(
    table: SessionTable, start: int, end: int, watermark: int = -(2**63), lateness: int = 0
) -> tuple[int, list]:
    """Absorbs a session of key 7 with one element; returns its slot and those to be armed."""
    key = table.keys.intern_int64(times(7))
    others = table.accumulators.new_rows()
    rows = others.fresh(key, times(start))
    table.accumulators.add_rows(others, rows, no_columns(1))
    taken, armed = table.absorb(key, times(start), times(end), watermark, lateness, others, rows)
    table._check()
    return taken.tolist()[0], armed.tolist()


def test_absorbed_sessions_that_touch_are_one() -> None:
    table = session_table()
    first, armed = absorbed(table, 10, 20)
    assert armed == [first]
    assert absorbed(table, 20, 30) == (first, [])
    assert absorbed(table, 0, 10) == (first, [])
    apart, _ = absorbed(table, 31, 40)
    assert len(table.rows) == 2
    assert absorbed(table, 30, 31)[0] in (first, apart)
    left = table.rows.slots()
    assert table.rows.starts(left).tolist() == [0]
    assert table.accumulators.results(table.rows, left)[0][0].tolist() == [5]


def test_an_absorbed_session_is_armed_again_where_it_has_fired() -> None:
    for watermark, again in ((8, False), (9, True), (10, True)):
        table = session_table()
        slot, _ = absorbed(table, 0, 10, lateness=50)
        assert absorbed(table, 5, 12, watermark, 50) == (slot, [slot] if again else [])


def test_absorbed_sessions_are_late_when_their_lateness_is_over() -> None:
    assert absorbed(session_table(), 0, 10, 13, 5)[0] >= 0
    assert absorbed(session_table(), 0, 10, 14, 5) == (-1, [])


def test_sessions_bridged_within_one_call_count_each_element_once() -> None:
    table = session_table()
    keys = table.keys.intern_int64(times(7, 7, 7, 7))
    starts, ends = times(0, 20, 5, 40), times(10, 30, 25, 50)
    others = table.accumulators.new_rows()
    rows = others.fresh(keys, starts)
    table.accumulators.add_rows(others, rows, no_columns(4))
    table.absorb(keys, starts, ends, NEVER, 0, others, rows)
    table.keys.sweep()
    assert sessions(table) == [(0, 30, 3), (40, 50, 1)]


def test_each_element_of_a_passed_session_adds_a_copy() -> None:
    table = session_table()
    add(table, 0, 100)
    fired = table.accumulators.new_rows()
    keys = table.keys.intern_int64(np.full(6, 5))
    when = times(5, 95, 12, -80, 60, 130)
    found, armed = table.add(keys, when, GAP, 30, 60, no_columns(6), fired)
    assert found.tolist() == [0, 1, 0, -1, 2, 3]
    assert armed.tolist() == [0, 0, 2, 3]
    assert list(zip(fired.starts(fired.slots()), fired.cells(fired.slots(), 3), strict=True)) == [(0, 15), (0, 22)]
    assert table.accumulators.results(fired, fired.slots())[0][0].tolist() == [2, 3]
    with pytest.raises(ValueError, match="fired: rows of"):
        table.add(keys, when, GAP, 30, 60, no_columns(6), AccumulatorSet([]).new_rows())
