"""Accumulators in lockstep with lists of values: adding, merging and results, in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.support.kernels import accumulators, ids, pane_table

VALUES = {"int64": st.one_of(st.none(), int64s), "float64": st.one_of(st.none(), float64s)}


def fresh_rows(members, n: int):
    """A store with n rows of these accumulators, and their slots."""
    panes = pane_table(members)
    keys = panes.keys.intern_int64(np.arange(n))
    return panes.rows, panes.ensure(keys, np.zeros(n, np.int64))


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_values_of_each_row_add_up(dtype: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 4))
    batches = data.draw(st.lists(st.lists(st.tuples(st.integers(0, n - 1), VALUES[dtype]), max_size=12), max_size=6))
    members = accumulators(dtype)
    rows, slots = fresh_rows(members, n)
    model: list[list] = [[] for _ in range(n)]
    for batch in batches:
        members.add_rows(rows, slots[[row for row, _ in batch]], [column([value for _, value in batch], dtype)])
        for row, value in batch:
            model[row].append(value)
        assert_results(members.results(rows, slots), RESULTS, model, dtype == "float64")


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_merging_rows_is_as_if_all_values_had_gone_into_one(dtype: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(VALUES[dtype], max_size=8), min_size=2, max_size=6))
    members = accumulators(dtype)
    rows, slots = fresh_rows(members, len(parts))
    for slot, part in zip(slots, parts, strict=True):
        members.add_rows(rows, ids(*[slot] * len(part)), [column(part, dtype)])
    # Each row goes into the one before it; the last ones first, so that all end up in row 0.
    order = slots[::-1].copy()
    members.merge_rows(rows, order[1:], rows, order[:-1])
    together = [[value for part in parts[i:] for value in part] for i in range(len(parts))]
    assert_results(members.results(rows, slots), RESULTS, together, dtype == "float64")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_int_sums_do_not_depend_on_the_order(values: list[int], random) -> None:
    """A sum that leaves int64 on the way and comes back is no overflow."""
    shuffled = list(values)
    random.shuffle(shuffled)
    results = []
    for one in (values, shuffled):
        members = accumulators("int64")
        rows, slots = fresh_rows(members, 1)
        members.add_rows(rows, np.repeat(slots, len(one)), [column(one, "int64")])
        assert_results(members.results(rows, slots), RESULTS, [values], False)
        results.append([values.tolist() for values, _ in members.results(rows, slots)])
    assert results[0] == results[1]


# Values of such different size that much is rounded away, and comes to light when the large ones cancel out.
UNEVEN = st.builds(lambda number, power: number * 2.0**power, st.integers(-99, 99), st.integers(-80, 80))


@given(
    st.lists(UNEVEN, max_size=15), st.lists(UNEVEN, max_size=5), st.integers(1, 4), st.randoms(use_true_random=False)
)
def test_float_sums_keep_what_rounding_takes(large: list[float], rest: list[float], parts: int, random) -> None:
    values = [*large, *rest, *(-value for value in large)]
    random.shuffle(values)
    members = accumulators("float64")
    rows, slots = fresh_rows(members, parts)
    members.add_rows(rows, slots[np.arange(len(values)) % parts], [column(values, "float64")])
    members.merge_rows(rows, np.repeat(slots[:1], parts - 1), rows, slots[1:])
    assert_results(members.results(rows, slots[:1]), RESULTS, [values], True)
