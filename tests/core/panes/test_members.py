"""Members of rows: found row by row in the order in which they came, against plain lists; what is out of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.members import link, unlink
from fastwin.core.panes.panetable import PaneTable

ROWS = 4


def panes() -> PaneTable:
    keys = KeyTable("int64")
    table = PaneTable(keys, AccumulatorSet([]))
    ids = keys.intern_int64(np.arange(ROWS))
    assert table.ensure(ids, np.zeros(ROWS, np.int64)).tolist() == [*range(ROWS)]
    return table


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, ROWS - 1), max_size=5)), max_size=20))
def test_members_are_those_of_plain_lists(steps: list[tuple[bool, list[int]]]) -> None:
    table, before, count = panes(), np.full(100, -1, np.int32), 0
    held: list[list[int]] = [[] for _ in range(ROWS)]
    for comes, slots in steps:
        if comes:
            members = np.arange(count, count + len(slots), dtype=np.int32)
            link(table, ints(*slots), members, before)
            for slot, member in zip(slots, members.tolist(), strict=True):
                held[slot].append(member)
            count += len(slots)
            continue
        expected = []
        for slot in slots:
            expected += [(member, slot) for member in held[slot]]
            held[slot] = []
        found = [array.tolist() for array in unlink(table, ints(*slots), before)]
        assert list(zip(*found, strict=True)) == expected
    table._check()


def test_what_is_out_of_bounds_is_refused() -> None:
    table, before = panes(), np.full(3, -1, np.int32)
    with pytest.raises(ValueError, match="slots: needs 2 values, one for each row, got 1"):
        link(table, ints(0), ints(0, 1), before)
    for slots, members in ((ints(ROWS), ints(0)), (ints(-1), ints(0)), (ints(0), ints(3)), (ints(0), ints(-1))):
        with pytest.raises(IndexError):
            link(table, slots, members, before)
    link(table, ints(1, 1), ints(0, 2), before)
    with pytest.raises(IndexError, match="before: must have a place for member 2, has 2"):
        unlink(table, ints(1), before[:2])
    table.drop_before(1)
    for call in (lambda: link(table, ints(1), ints(1), before), lambda: unlink(table, ints(1), before)):
        with pytest.raises(IndexError):
            call()
