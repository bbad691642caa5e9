"""GroupTable beside a dict: rows fed, merged, fired and dropped, with keys of one column, of several, and of none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Sum
from fastwin.core.panes.grouptable import GroupTable, head_cells
from tests.support.keycolumns import SHAPES, batches, columns_of, key_of


def new_table(texts: tuple[bool, ...]) -> GroupTable:
    members = [Count(column=-1), Sum(column=0), Max(column=0)]
    return GroupTable(AccumulatorSet(members, head_cells(texts)), texts)


def keys_in(table: GroupTable, slots: np.ndarray) -> list[tuple]:
    columns = []
    for column in table.keys(slots):
        if len(column) == 2:
            columns.append(column[0].tolist())
        else:
            offsets, data, _ = column
            columns.append([bytes(data[a:b]).decode() for a, b in zip(offsets[:-1], offsets[1:], strict=True)])
    return list(zip(*columns, strict=True)) if columns else [()] * len(slots)


@pytest.mark.parametrize("panes", [2, 30, 40, 400])
@pytest.mark.parametrize("texts", [(False,), (True, False)])
def test_one_key_in_panes_that_are_few_or_many(texts: tuple[bool, ...], panes: int) -> None:
    """Of a block of one key, each pane is looked up once, as long as they are few."""
    random = np.random.default_rng(panes)
    table, counts = new_table(texts), {}
    for n in (1_300, 40_000, 700):
        times = random.integers(-5 * panes, 5 * panes, n) * 10
        columns = columns_of(texts, n * [key_of(texts, ("abc", "d", 1))], False)
        table.feed(columns, times, 100, -30, [(times, None)])
        for time in times.tolist():
            start = (time + 30) // 100 * 100 - 30
            count, total, highest = counts.get(start, (0, 0, time))
            counts[start] = count + 1, total + time, max(highest, time)
    table._check()
    slots, starts = table.slots_before(10**6)
    found = [values.tolist() for values, _ in table.accumulators.results(table.rows, slots)]
    assert dict(zip(starts.tolist(), zip(*found, strict=True), strict=True)) == counts


@pytest.mark.parametrize("keys", [3, 900, 40_000])
@pytest.mark.parametrize(("panes", "slide"), [(1, 100), (3, 100), (700, 100), (3, 1 << 44), (5, 1 << 55), (1 << 40, 3)])
def test_groups_that_were_found_lately(keys: int, panes: int, slide: int) -> None:
    """Their rows are known still, until rows move; others are looked up, and none of another key or pane is taken."""
    random = np.random.default_rng(keys + panes)
    names = np.concatenate([[-1, 0, 2**63 - 1, -(2**63)], random.integers(-(2**63), 2**63 - 1, keys)])
    table, counts, first = new_table((False,)), {}, -panes * slide
    for n in (700, 30_000, 513, 12_000):
        found = random.choice(names, n)
        times = random.integers(first, panes * slide, n)
        if n == 12_000:
            times.sort()
        values = random.integers(-99, 99, n)
        table.feed([(found, None)], times, slide, 0, [(values, None)])
        for key, time, value in zip(found.tolist(), times.tolist(), values.tolist(), strict=True):
            group = time // slide * slide, key
            count, total, highest = counts.get(group, (0, 0, value))
            counts[group] = count + 1, total + value, max(highest, value)
        table._check()
        slots, starts = table.slots_before(2**61)
        results = [values.tolist() for values, _ in table.accumulators.results(table.rows, slots)]
        rows = zip(starts.tolist(), table.keys(slots)[0][0].tolist(), *results, strict=True)
        assert {(start, key): tuple(values) for start, key, *values in rows} == counts
        first = 0 if panes < 100 else panes * slide // 2
        table.drop_before(first)
        counts = {group: values for group, values in counts.items() if group[0] >= first}


PACKED = ["", "\0", "a", "a\0", "\0a", "7 bytes", "8 bytes.", "8 bytes\0", "9 bytes..", "9 bytes.\0", "\0" * 8,
          "8 bytes.8 bytes.", "8 bytes.8 bytes\0", "8 bytes.8 bytes.a"]  # fmt: skip


@pytest.mark.parametrize("longest", [8, 16, 17])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("texts", [(True,), (True, False), (False, True), (True, True), (False, False), (True,) * 3])
def test_keys_found_lately_that_nearly_look_alike(texts: tuple[bool, ...], wide: bool, longest: int) -> None:
    """Texts that differ in zeros at their ends, beside words and columns of any length, are keys of their own."""
    random, table, counts = np.random.default_rng(longest), new_table(texts), {}
    parts = [text for text in PACKED if len(text) <= longest and (longest > 8 or not text.endswith("\0"))]
    numbers = [0, -1, 97, int.from_bytes(b"8 bytes.", "little"), 2**63 - 1]
    for n in (700, 20_000, 513):
        chosen = [random.choice(len(parts if text else numbers), n) for text in texts]
        columns = []
        for text, places in zip(texts, chosen, strict=True):
            if not text:
                columns.append((np.array(numbers)[places], None))
                continue
            found = [parts[place] for place in places]
            offsets = np.cumsum([0, *map(len, found)], dtype=np.int64 if wide else np.int32)
            columns.append((offsets, np.frombuffer("".join(found).encode(), np.uint8), None))
        times = random.integers(-300, 300, n)
        table.feed(columns, times, 100, 0, [(times, None)])
        for group in zip((times // 100 * 100).tolist(), *map(np.ndarray.tolist, chosen), strict=True):
            counts[group] = counts.get(group, 0) + 1
    table._check()
    slots, starts = table.slots_before(2**61)
    total, _ = table.accumulators.results(table.rows, slots)[0]
    told = {}
    for start, key, n in zip(starts.tolist(), keys_in(table, slots), total.tolist(), strict=True):
        places = [(parts if text else numbers).index(part) for text, part in zip(texts, key, strict=True)]
        told[(start, *places)] = n
    assert told == counts
    assert len(told) == len(slots)


def test_another_grid_makes_other_groups() -> None:
    """Panes of two grids that have one number are not one."""
    table, keys = new_table((False,)), [(np.array([7, 8] * 400), None)]
    times = np.arange(800) % 50
    table.feed(keys, times, 100, 0, [(times, None)])
    table.feed(keys, times, 100, -10, [(times, None)])
    table._check()
    assert sorted(table.slots_before(10**6)[1].tolist()) == [-10, -10, 0, 0]


@pytest.mark.parametrize("at", [0, 511, 512, 1_999])
@pytest.mark.parametrize("time", [2**61 + 1, -(2**61) - 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("keys", [1, 9])
def test_a_time_out_of_bounds_in_any_block(at: int, time: int, keys: int) -> None:
    times = np.zeros(2_000, np.int64)
    times[at] = time
    table = new_table((False,))
    with pytest.raises(ValueError, match=f"times: must be from .* ms, got {time}"):
        table.feed([(np.arange(2_000) % keys, None)], times, 100, 0, [(times, None)])
    table._check()


@pytest.mark.parametrize("at", [0, 511, 512, 1_999])
@pytest.mark.parametrize("keys", [1, 9])
@pytest.mark.parametrize("step", [0, 3, -3])
def test_the_first_and_the_last_time_are_told_and_limits_held(at: int, keys: int, step: int) -> None:
    times = 50 + np.arange(2_000) * step
    first, last = int(times.min()), int(times.max())
    columns = [(np.arange(2_000) % keys, None)], times, 100, 0, [(times, None)]
    assert new_table((False,)).feed(*columns, within=(first, last)) == (first, last)
    for beyond in (first - 1, last + 1):
        was, times[at] = times[at], beyond
        assert new_table((False,)).feed(*columns) == (int(times.min()), int(times.max()))
        with pytest.raises(ValueError, match=f"times: must be from {first} to {last} ms, got {beyond}"):
            new_table((False,)).feed(*columns, within=(first, last))
        times[at] = was
    nothing = times[:0]
    assert new_table((False,)).feed([(nothing, None)], nothing, 100, 0, [(nothing, None)]) is None


def feed(table: GroupTable, elements: list, texts: tuple[bool, ...], wide: bool = False) -> None:
    keys = [key_of(texts, parts) for parts, *_ in elements]
    values = np.array([0 if value is None else value for *_, value in elements], np.int64)
    valid = np.array([value is not None for *_, value in elements], np.bool_)
    column = (values, None if valid.all() else valid)
    times = np.array([time for _, time, _ in elements], np.int64)
    table.feed(columns_of(texts, keys, wide), times, 10, 3, [column])
    table._check()


def add(model: dict, elements: list, texts: tuple[bool, ...]) -> None:
    for parts, time, value in elements:
        model.setdefault(((time - 3) // 10 * 10 + 3, key_of(texts, parts)), []).append(value)


def fired(table: GroupTable, start: int) -> dict:
    slots, starts = table.slots_before(start)
    (count, _), (total, some), (highest, _) = table.accumulators.results(table.rows, slots)
    some = np.ones(len(slots), np.bool_) if some is None else some
    found = list(zip(starts.tolist(), keys_in(table, slots), strict=True))
    assert len(set(found)) == len(found)
    rows = zip(found, count.tolist(), total.tolist(), highest.tolist(), some.tolist(), strict=True)
    return {group: (n, *((s, hi) if one else (None, None))) for group, n, s, hi, one in rows}


def wanted(model: dict, start: int) -> dict:
    found = {}
    for group, values in model.items():
        here = [value for value in values if value is not None]
        if group[0] < start:
            found[group] = (len(values), sum(here) if here else None, max(here, default=None))
    return found


@given(st.sampled_from(SHAPES), batches, st.lists(st.sampled_from([None, -47, -7, 3, 23]), max_size=5), st.booleans())
def test_rows_fire_once_with_what_was_fed(texts: tuple, parts: list, drops: list, wide: bool) -> None:
    table, model, dropped = new_table(texts), {}, -100
    for at, elements in enumerate(parts):
        elements = [one for one in elements if (one[1] - 3) // 10 * 10 + 3 >= dropped]  # none comes late
        feed(table, elements, texts, wide=wide)
        add(model, elements, texts)
        start = drops[at] if at < len(drops) else None
        if start is not None:
            assert fired(table, start) == wanted(model, start)
            table.drop_before(start)
            table._check()
            dropped = max(dropped, start)
            model = {group: values for group, values in model.items() if group[0] >= dropped}
    assert fired(table, 100) == wanted(model, 100)
    assert len(table) <= 2 * max(len(model), 1) or not drops


@given(st.sampled_from(SHAPES), batches)
def test_merged_tables_hold_each_element_once(texts: tuple, parts: list) -> None:
    model: dict = {}
    first = new_table(texts)
    for elements in parts:
        add(model, elements, texts)
        other = new_table(texts)
        feed(other, elements, texts)
        first.absorb(other)
        first._check()
    assert fired(first, 100) == wanted(model, 100)


def test_many_rows_and_keys_of_one_hash_are_told_apart() -> None:
    random, table = np.random.default_rng(4), new_table((False,))
    keys, times = random.integers(0, 3_000, 20_000), np.sort(random.integers(0, 60, 20_000))
    values = np.ones(20_000, np.int64)
    table.feed([(keys, None)], times, 10, 0, [(values, None)])
    table._check()
    assert table.ascending
    assert len(table) == len(set(zip(keys.tolist(), (times // 10).tolist(), strict=True)))
    slots, starts = table.slots_before(60)
    assert table.accumulators.results(table.rows, slots)[0][0].sum() == 20_000
    assert (np.diff(starts) >= 0).all()


@pytest.mark.parametrize("texts", [(False, False), (True, False)])
def test_keys_of_several_columns_with_hashes_alike_are_told_apart(texts: tuple) -> None:
    # Of so many keys, about twenty pairs agree in the 32 bits of the hash that the index holds.
    n, table = 400_000, new_table(texts)
    numbers, zeros = np.arange(n), np.zeros(n, np.int64)
    text = np.frombuffer(b"".join(b"%06d" % number for number in range(n)), np.uint8)
    column = (np.arange(0, 6 * n + 1, 6), text, None) if texts[0] else (numbers, None)
    for _ in range(2):
        table.feed([column, (numbers % 7, None)], zeros, 10, 0, [(numbers, None)])
    assert len(table) == n
    (counts, _), (totals, _), (highest, _) = table.accumulators.results(table.rows, np.arange(n, dtype=np.int32))
    assert (counts == 2).all()
    assert (totals == 2 * highest).all()


@pytest.mark.parametrize("before", [0, 1_000])
def test_a_table_with_room_does_not_grow(before: int) -> None:
    table = new_table((False,))
    keys, times = np.arange(60_000), np.zeros(60_000, np.int64)
    table.feed([(keys[:before], None)], times[:before], 10, 0, [(keys[:before], None)])
    table.reserve_rows(50_000)
    room = table.nbytes
    for at in range(before, before + 50_000, 5_000):
        some = slice(at, min(at + 5_000, before + 50_000))
        table.feed([(keys[some], None)], times[some], 10, 0, [(keys[some], None)])
    assert table.nbytes - room <= 1 << 20  # what was found lately
    table._check()
    slots, _ = table.slots_before(10)
    assert table.keys(slots)[0][0].tolist() == list(range(before + 50_000))
    table.reserve_rows(0)
    assert len(table) == before + 50_000


def test_what_does_not_suit_is_refused() -> None:
    table, none = new_table((False,)), np.zeros(1, np.int64)
    values = [(none, None)]
    for keys, match in [
        ([], "a key has 1 columns, got 0"),
        ([(none, np.ones(1, np.uint8))], "column 0 must be int64 without nulls"),
        ([(np.zeros(2, np.int64), None)], "needs 1 values"),
    ]:
        with pytest.raises(ValueError, match=match):
            table.feed(keys, none, 10, 0, values)
    for arguments, match in [((0, 0), "slide"), ((10, 10), "offset")]:
        with pytest.raises(ValueError, match=match):
            table.feed([(none, None)], none, *arguments, values)
    with pytest.raises(ValueError, match="head"):
        GroupTable(AccumulatorSet([Count(column=-1)]), (False, False))
    with pytest.raises(IndexError, match="slots"):
        table.keys(np.zeros(1, np.int32))
