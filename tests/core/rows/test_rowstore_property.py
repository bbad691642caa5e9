"""RowStore in lockstep with a list of cells, through the tables that give out and free its rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernel_models import int64s
from tests.support.kernels import pane_table

STEP = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 200)),
    st.tuples(st.just("free"), st.integers(1, 3)),
    st.tuples(st.just("write"), st.integers(0, 2**16), st.integers(3, 10), int64s),
    st.tuples(st.just("mark"), st.integers(0, 2**16), st.integers(0, 2**63 - 1)),
    st.tuples(st.just("clear_dirty")),
)


@given(st.lists(STEP, max_size=25))
def test_slots_are_stable_and_used_again(steps: list[tuple]) -> None:
    """A pane a step takes rows, dropping the oldest panes frees them."""
    panes = pane_table()
    rows = panes.rows
    cells = {}  # by slot: all cells but the first
    bits = {}
    pane_of = {}
    dirty = set()
    most = 0
    for now, (action, *argument) in enumerate(steps):
        known = sorted(cells)
        if action == "take":
            ids = panes.keys.intern_int64(np.arange(argument[0]))
            slots = panes.ensure(ids, np.full(argument[0], now)).tolist()
            assert not set(slots) & set(cells), "a slot in use was given out"
            for key, slot in zip(ids.tolist(), slots, strict=True):
                cells[slot] = {3: 0, 10: 0}
                bits[slot] = 0
                pane_of[slot] = (key, now)
                dirty.add(slot)
        elif action == "free":
            before = [*panes.starts().tolist(), now][: argument[0] + 1][-1]
            panes.drop_before(before)
            for slot in [slot for slot in known if pane_of[slot][1] < before]:
                del cells[slot], bits[slot], pane_of[slot]
                dirty.discard(slot)
        elif action == "write" and known:
            slot = known[argument[0] % len(known)]
            rows.set_cells(np.array([slot], np.int32), np.array([argument[1]], np.int32), [np.array([argument[2]])])
            cells[slot][argument[1]] = argument[2]
        elif action == "mark" and known:
            slot = known[argument[0] % len(known)]
            rows.set_bits(np.array([slot], np.int32), np.array([argument[1]]))
            bits[slot] = argument[1]
        elif action == "clear_dirty":
            rows.clear_dirty()
            dirty.clear()
        panes._check()
        most = max(most, len(cells)) if cells else 0
        assert rows.slots().tolist() == sorted(cells)
        assert rows.dirty_slots().tolist() == sorted(dirty)
        assert len(rows) == rows.live == len(cells)
        assert rows.top <= most, "free rows were not used again"
        slots = rows.slots()
        assert list(zip(rows.keys(slots).tolist(), rows.starts(slots).tolist(), strict=True)) == [
            pane_of[slot] for slot in sorted(cells)
        ]
        assert rows.bits(slots).tolist() == [bits[slot] for slot in sorted(cells)]
        for slot, written in cells.items():
            for cell, value in written.items():
                if cell < rows.stride // 8:
                    got = rows.cells(np.array([slot], np.int32), cell)[0]
                    assert got == value, f"cell {cell} of row {slot}"
        marks = rows.live_marks(np.arange(-1, rows.top + 1, dtype=np.int32))
        assert np.flatnonzero(marks).tolist() == [slot + 1 for slot in sorted(cells)]
