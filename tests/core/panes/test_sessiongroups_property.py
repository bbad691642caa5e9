"""SessionGroups beside a plain loop: elements in order of time, sessions that fire and go in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Sum
from fastwin.core.bags.bag import Distinct
from fastwin.core.panes.grouptable import head_cells
from fastwin.core.panes.sessiongroups import SessionGroups, are_in_order

GAP = 10
SHAPES = [(False,), (True,)]
ELEMENTS = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 7]), st.integers(0, 12)), min_size=1, max_size=60)


def new_table(texts: tuple[bool, ...]) -> SessionGroups:
    members = [Count(column=-1), Sum(column=0), Max(column=0)]
    return SessionGroups(AccumulatorSet(members, head_cells(texts)), texts)


def encoded(texts: tuple[bool, ...], keys: np.ndarray) -> list[tuple]:
    if not texts[0]:
        return [(keys.astype(np.int64), None)]
    names = ["x" * (10 * key) + str(key) for key in keys.tolist()]
    ends = np.cumsum([0, *(len(name) for name in names)]).astype(np.int32)
    return [(ends, np.frombuffer("".join(names).encode(), np.uint8), None)]


def key_numbers(texts: tuple[bool, ...], keys: tuple) -> list[int]:
    if not texts[0]:
        return keys[0].tolist()
    offsets, data, _ = keys
    return [int(bytes(data[a:b]).lstrip(b"x")) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def over(table: SessionGroups, texts: tuple[bool, ...], before: int) -> list[tuple]:
    """Ends and forgets the sessions before a time, and returns what they were."""
    table.end_before(before)
    table._check()
    slots, ends = table.ended_sessions()
    assert sorted(slots.tolist()) == list(range(len(slots)))
    assert ends.tolist() == sorted(ends.tolist())
    assert all(a < b for a, b, alike in zip(slots[:-1], slots[1:], ends[:-1] == ends[1:], strict=True) if alike)
    found = [values.tolist() for values, _ in table.accumulators.results(table.ended, slots)]
    starts, (keys,) = table.ended_heads(slots)
    keys = key_numbers(texts, keys)
    table.forget_ended()
    table._check()
    return list(zip(keys, starts.tolist(), ends.tolist(), *found, strict=True))


def naive(keys: np.ndarray, times: np.ndarray, values: np.ndarray) -> list[tuple]:
    last: dict[int, list] = {}
    found: list[list] = []
    for key, time, value in zip(keys.tolist(), times.tolist(), values.tolist(), strict=True):
        if key in last and time <= last[key][2]:
            _, start, _, n, total, high = last[key]
            last[key][:] = [key, start, time + GAP, n + 1, total + value, max(high, value)]
        else:
            last[key] = [key, time, time + GAP, 1, value, value]
            found.append(last[key])
    return sorted(map(tuple, found))


def run(texts: tuple[bool, ...], part: int, keys: np.ndarray, times: np.ndarray) -> list[tuple]:
    values, found, table = times % 7 - 3, [], new_table(texts)
    for at in range(0, len(times), part):
        here = slice(at, at + part)
        table.feed_sessions(encoded(texts, keys[here]), times[here], GAP, [(values[here], None)])
        table._check()
        before = int(times[at + part]) if at + part < len(times) else 10**9
        found += over(table, texts, before)
    assert len(table) == 0
    return sorted(found)


@given(st.sampled_from(SHAPES), st.integers(1, 20), ELEMENTS)
def test_sessions_are_those_of_a_loop(texts: tuple, part: int, elements: list) -> None:
    keys = np.array([key for key, _ in elements])
    times = np.cumsum([step for _, step in elements]) - 50
    assert run(texts, part, keys, times) == naive(keys, times, times % 7 - 3)


@pytest.mark.parametrize("keys", [1, 3, 700])
@pytest.mark.parametrize("texts", SHAPES)
def test_many_elements_in_blocks(texts: tuple[bool, ...], keys: int) -> None:
    random = np.random.default_rng(keys)
    ids = random.integers(0, keys, 8_000)
    times = np.cumsum(random.choice([0, 0, 1, 2, GAP + 1], 8_000))
    assert run(texts, 3_000, ids, times) == naive(ids, times, times % 7 - 3)


@pytest.mark.parametrize("keys", [1, 5, 90])
@pytest.mark.parametrize("step", [1, GAP, GAP + 1, 10**12])
def test_sessions_of_a_few_elements_each(keys: int, step: int) -> None:
    """Where a block has many sessions of a key, and where ends are too far apart to be counted."""
    ids = np.arange(3_000) // 2 % keys
    times = np.arange(3_000) * step - 2**60
    assert run((False,), 1_400, ids, times) == naive(ids, times, times % 7 - 3)


@given(st.sampled_from(SHAPES), st.integers(1, 20), ELEMENTS)
def test_sessions_merge_as_elements_do(texts: tuple, part: int, elements: list) -> None:
    keys = np.array([key for key, _ in elements])
    times = np.cumsum([step for _, step in elements]) - 50
    values, found, table = times % 7 - 3, [], new_table(texts)
    for at in range(0, len(times), part):
        here = slice(at, at + part)
        rows = table.accumulators.new_rows()
        slots = rows.fresh(np.zeros(len(times[here]), np.int32), times[here])
        table.accumulators.add_rows(rows, slots, [(values[here], None)])
        table.absorb_sessions(encoded(texts, keys[here]), times[here], times[here] + GAP, rows, slots)
        table._check()
        found += over(table, texts, int(times[at + part]) if at + part < len(times) else 10**9)
    assert len(table) == 0
    assert sorted(found) == naive(keys, times, values)


def test_a_long_session_takes_in_a_short_one() -> None:
    table = new_table((False,))
    rows = table.accumulators.new_rows()
    slots = rows.fresh(np.zeros(3, np.int32), np.array([0, 5, 41]))
    table.accumulators.add_rows(rows, slots, [(np.array([1, 2, 3]), None)])
    keys, starts, ends = [(np.array([7, 7, 7]), None)], np.array([0, 5, 41]), np.array([40, 15, 51])
    table.absorb_sessions(keys, starts, ends, rows, slots)
    slots, ends = table.open_sessions()
    assert (table.rows.starts(slots).tolist(), ends.tolist()) == ([41], [51])
    assert over(table, (False,), 100) == [(7, 0, 40, 2, 3, 2), (7, 41, 51, 1, 3, 3)]
    with pytest.raises(ValueError, match="ends"):
        table.absorb_sessions(keys, starts, ends, rows, slots)


def test_sessions_take_along_what_their_rows_own() -> None:
    random = np.random.default_rng(2)
    ids, times = random.integers(0, 9, 4_000), np.cumsum(random.choice([0, 1, 2, GAP + 1], 4_000))
    bags = AccumulatorSet([Distinct("int64", 0), Count(column=-1)], head_cells((False,)))
    table, found = SessionGroups(bags, (False,)), 0
    for at in range(0, 4_000, 1_000):
        here = slice(at, at + 1_000)
        table.feed_sessions([(ids[here], None)], times[here], GAP, [(times[here], None)])
        table._check()
        table.end_before(int(times[here][-1]))
        slots, ends = table.ended_sessions()
        (distinct, _), (counts, _) = bags.results(table.ended, slots)
        starts, ((keys, _),) = table.ended_heads(slots)
        for key, start, end, n, count in zip(keys, starts, ends, distinct, counts, strict=True):
            inside = times[(ids == key) & (times >= start) & (times < end)]
            assert (n, count) == (len(set(inside.tolist())), len(inside))
        found += len(slots)
        table.forget_ended()
    assert found > 1_000


def test_elements_out_of_order_are_refused() -> None:
    times = np.arange(1_500)
    assert are_in_order(times[:0])
    assert are_in_order(times)
    assert are_in_order(times // 2)
    for at in (1, 511, 512, 513, 1_499):
        table = new_table((False,))
        spoilt = times.copy()
        spoilt[at] = spoilt[at - 1] - 1
        assert not are_in_order(spoilt)
        with pytest.raises(ValueError, match="must be in order"):
            table.feed_sessions([(times, None)], spoilt, GAP, [(times, None)])
        assert len(table) == at // 512 * 512  # what comes before is in the table, block by block
    table = new_table((False,))
    with pytest.raises(ValueError, match="must be in order"):
        table.feed_sessions([(times, None)], np.append(times[:-1], 10), GAP, [(times, None)])
    assert len(table) == 0
    with pytest.raises(ValueError, match="gap: must be at least 1"):
        table.feed_sessions([(times, None)], times, 0, [(times, None)])
    assert len(table) == 0
