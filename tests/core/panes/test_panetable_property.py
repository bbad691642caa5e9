"""PaneTable in lockstep with a dict from (key, pane start) to the values that went there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.panes.panetable import PaneTable
from tests.support.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.support.kernels import accumulators, pane_table, row_of

STARTS = st.one_of(st.integers(-4, 4), st.sampled_from([-(2**63), 2**63 - 1]))
KEYS = st.one_of(st.integers(0, 5), st.integers(0, 200))


def steps(values: st.SearchStrategy) -> st.SearchStrategy:
    element = st.tuples(KEYS, STARTS, st.one_of(st.none(), values))
    return st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.lists(element, max_size=40)),
            st.tuples(st.just("ensure"), st.lists(st.tuples(KEYS, STARTS), max_size=10)),
            st.tuples(st.just("drop_before"), STARTS),
            st.tuples(st.just("clear_dirty"), st.none()),
            st.tuples(st.just("sweep"), st.none()),
        ),
        max_size=12,
    )


class Model:
    """Values by (start, key) in the order in which rows came, and the rows that are dirty."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], list] = {}
        self.dirty: set[tuple[int, int]] = set()

    def touch(self, key: int, start: int) -> list:
        self.dirty.add((start, key))
        return self.rows.setdefault((start, key), [])

    def drop_before(self, start: int) -> None:
        self.rows = {place: values for place, values in self.rows.items() if place[0] >= start}
        self.dirty &= set(self.rows)


def key_values(panes: PaneTable, slots: np.ndarray) -> list[int]:
    return panes.keys.take_int64(panes.rows.keys(slots))[0].tolist()


def apply(panes: PaneTable, model: Model, action: str, argument: object, dtype: str) -> None:
    if action in ("add", "ensure"):
        ids = panes.keys.intern_int64(np.array([element[0] for element in argument], np.int64))
        starts = np.array([element[1] for element in argument], np.int64)
        if action == "add":
            slots = panes.add(ids, starts, [column([element[2] for element in argument], dtype)])
        else:
            slots = panes.ensure(ids, starts)
        for element in argument:
            model.touch(*element[:2]).extend(element[2:])
        assert key_values(panes, slots) == [element[0] for element in argument]
        assert panes.rows.starts(slots).tolist() == starts.tolist()
    elif action == "drop_before":
        panes.drop_before(argument)
        model.drop_before(argument)
    elif action == "clear_dirty":
        panes.rows.clear_dirty()
        model.dirty.clear()
    else:
        panes.keys.sweep()
        assert sorted(panes.keys.take_int64(panes.keys.ids())[0].tolist()) == sorted({key for _, key in model.rows})


def compare(panes: PaneTable, model: Model, is_float: bool) -> None:
    panes._check()
    assert len(panes) == len(model.rows)
    starts = sorted({start for start, _ in model.rows})
    assert panes.starts().tolist() == starts
    for probe in (-(2**63), -1, 0, 1, 2**63 - 1):
        assert panes.first_start(probe) == min((start for start in starts if start >= probe), default=None)
    for start in [*starts, 17]:
        slots = panes.slots_of(start)
        keys = [key for place, key in model.rows if place == start]
        assert key_values(panes, slots) == keys, "rows of a pane are not in the order in which they came"
        assert_results(
            panes.accumulators.results(panes.rows, slots),
            RESULTS,
            [model.rows[start, key] for key in keys],
            is_float,
        )
        for slot, key in zip(slots.tolist(), panes.rows.keys(slots).tolist(), strict=True):
            assert row_of(panes, key, start) == slot
    dirty = panes.rows.dirty_slots()
    assert set(zip(panes.rows.starts(dirty).tolist(), key_values(panes, dirty), strict=True)) == model.dirty
    assert len(dirty) == len(model.dirty)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_rows_are_found_by_key_and_pane(dtype: str, data: st.DataObject) -> None:
    panes, model = pane_table(accumulators(dtype)), Model()
    for action, argument in data.draw(steps(int64s if dtype == "int64" else float64s)):
        apply(panes, model, action, argument, dtype)
        compare(panes, model, dtype == "float64")
    panes.drop_before(2**63 - 1)
    model.drop_before(2**63 - 1)
    compare(panes, model, dtype == "float64")


@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(1, 6))
def test_many_rows_come_and_go(seed: int, rounds: int) -> None:
    """Blocks that are full, indexes that grow, by key id and by hash, and ids that are used again."""
    rng = np.random.default_rng(seed)
    panes, model = pane_table(), Model()
    for now in range(rounds):
        n = rng.integers(0, 1500)
        keys = rng.integers(0, 10 ** rng.integers(1, 5), n)
        starts = rng.integers(now - 2, now + 2, n)
        values = [None if key % 7 == 0 else key for key in keys.tolist()]
        apply(panes, model, "add", list(zip(keys.tolist(), starts.tolist(), values, strict=True)), "int64")
        apply(panes, model, "sweep", None, "int64")
        apply(panes, model, "drop_before", now - 1, "int64")
        compare(panes, model, False)


@given(
    seed=st.integers(0, 2**32 - 1),
    order=st.sampled_from(["random", "newest first", "oldest first", "nearly in order"]),
    drops=st.integers(0, 3),
)
def test_many_panes_in_any_order(seed: int, order: str, drops: int) -> None:
    """The index of panes grows and shrinks, and the order is there whenever it is asked for."""
    rng = np.random.default_rng(seed)
    panes, model = pane_table(), Model()
    for _ in range(drops + 1):
        starts = rng.integers(-300, 300, rng.integers(1, 400))
        if order != "random":
            starts.sort()
        if order == "newest first":
            starts = starts[::-1]
        if order == "nearly in order":
            starts = starts + rng.integers(-3, 4, len(starts))
        apply(panes, model, "add", [(int(key), int(t), 1) for key, t in enumerate(starts)], "int64")
        compare(panes, model, False)
        apply(panes, model, "drop_before", int(rng.integers(-300, 320)), "int64")
        compare(panes, model, False)
