"""Sets of Count, Sum, Min, Max and Mean over some columns, each fed by one loop, against aggregates over lists."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Mean, Min, Sum
from tests.support.kernel_models import assert_results, column, int64s
from tests.support.kernels import pane_table

MEMBERS = {
    "count": lambda kind, at: Count(column=at),
    "sum": lambda kind, at: Sum(kind, at, on_overflow="null"),
    "min": lambda kind, at: Min(kind, at),
    "max": lambda kind, at: Max(kind, at),
    "mean": lambda kind, at: Mean(kind, at),
}
# Sum, Min and Max together have a loop of their own; a kind named twice takes turns, as do columns beyond the fourth.
SOME = st.builds(lambda kinds, n: kinds[:n], st.permutations(list(MEMBERS)), st.integers(3, 5))
KINDS = SOME | st.lists(st.sampled_from(list(MEMBERS)), min_size=1, max_size=6)
floats = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308]) | st.floats(width=32)


@st.composite
def fed(draw: st.DrawFn) -> tuple[list[str], list[list[str]], bool, list]:
    """The types of some columns, which members read each, whether elements are counted, and batches of rows."""
    types = draw(st.lists(st.sampled_from(["int64", "float64"]), min_size=1, max_size=5))
    kinds = [draw(KINDS) for _ in types]
    ones = [int64s if kind == "int64" else floats for kind in types]
    row = [st.integers(0, 4), st.integers(-3, 3), *(st.none() | one if draw(st.booleans()) else one for one in ones)]
    runs = st.builds(lambda one, n: [one] * n, st.tuples(*row), st.integers(1, 4))
    batch = st.one_of(st.lists(st.tuples(*row), max_size=30), runs)
    return types, kinds, draw(st.booleans()), draw(st.lists(batch, max_size=4))


@given(fed(), st.booleans())
def test_fed_and_merged_rows_hold_what_went_in(given_: tuple, by_ids: bool) -> None:
    types, kinds, counted, batches = given_

    def new_members() -> AccumulatorSet:
        found = [MEMBERS[kind](types[at], at) for at, own in enumerate(kinds) for kind in own]
        return AccumulatorSet([*([Count(column=-1)] if counted else []), *found])

    def check(results: list, rows: list[list]) -> None:
        if counted:
            assert results.pop(0)[0].tolist() == [len(row) for row in rows]
        for at, own in enumerate(kinds):
            values = [[element[at] for element in row] for row in rows]
            assert_results(results[: len(own)], own, values, types[at] == "float64")
            del results[: len(own)]

    members = new_members()
    panes = pane_table(members)
    wanted: dict[tuple[int, int], list] = {}
    for batch in batches:
        keys, times = (np.array([row[at] for row in batch], np.int64) for at in (0, 1))
        columns = [column([row[2 + at] for row in batch], kind) for at, kind in enumerate(types)]
        for key, time, *values in batch:
            wanted.setdefault((key, time - time % 2), []).append(values)
        if by_ids:
            panes.feed(panes.keys.intern_int64(keys), None, None, times, -(2**61), 2, 0, 0, columns)
        else:
            panes.feed(None, keys, None, times, -(2**61), 2, 0, 0, columns)
        panes._check()
    slots = panes.rows.slots()
    keys = panes.keys.take_int64(panes.rows.keys(slots))[0].tolist()
    places = list(zip(keys, panes.rows.starts(slots).tolist(), strict=True))
    assert sorted(places) == sorted(wanted)
    check(members.results(panes.rows, slots), [wanted[place] for place in places])
    # All rows into one, in two steps.
    panes_of_one = pane_table(new_members())
    one = panes_of_one.ensure(panes_of_one.keys.intern_int64(np.array([7])), np.array([0]))
    half = len(slots) // 2
    for part in (slots[:half], slots[half:]):
        members.merge_rows(panes_of_one.rows, np.repeat(one, len(part)), panes.rows, part)
    check(members.results(panes_of_one.rows, one), [[values for place in places for values in wanted[place]]])


EXTREME = [-(2**63), 2**63 - 1, -1, 0, 1, 2**32, -(2**32) - 1]
FLOATS = {"zeros": [0.0, -0.0, 1.0], "nans": [math.nan, 1.0, -2.0], "infinite": [math.inf, -math.inf, 1.0]}


@pytest.mark.parametrize("n", [1, 3, 4, 15, 16, 17, 600])
@pytest.mark.parametrize("kind", ["extreme", "ints", "floats", *FLOATS])
def test_many_values_of_one_row(kind: str, n: int) -> None:
    """They are added and compared several at a time."""
    random, is_float = np.random.default_rng(n), kind not in ("extreme", "ints")
    some = {"extreme": EXTREME, "ints": range(-(2**40), 2**40, 2**33 + 7), "floats": random.normal(size=50)} | FLOATS
    type_ = "float64" if is_float else "int64"
    for own in (list(MEMBERS), ["mean", "max"], ["sum", "mean"], ["min"]):
        members = AccumulatorSet([MEMBERS[one](type_, 0) for one in own])
        rows, fed = members.new_rows(), []
        slots = rows.fresh(np.zeros(1, np.int32), np.zeros(1, np.int64))
        for _ in range(2):
            values = random.choice(np.array(list(some[kind])), n).tolist()
            members.add_rows(rows, np.repeat(slots, n), [column(values, type_)])
            fed += values
        assert_results(members.results(rows, slots), own, [fed], is_float)
