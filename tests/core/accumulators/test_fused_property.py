"""Sets of Count, Sum, Min and Max over one int64 column, which one loop feeds, against aggregates over lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Min, Sum
from tests.support.kernel_models import assert_results, column, int64s
from tests.support.kernels import pane_table

MEMBERS = {
    "count": lambda: Count(column=0),
    "sum": lambda: Sum(on_overflow="null"),
    "min": Min,
    "max": Max,
}
# All four have a loop of their own; a kind named twice is in no fused loop, nor are nulls.
SOME = st.builds(lambda kinds, n: kinds[:n], st.permutations(list(MEMBERS)), st.integers(3, 4))
KINDS = SOME | st.lists(st.sampled_from(list(MEMBERS)), min_size=1, max_size=5)
BATCH = st.one_of(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), values), max_size=30)
    for values in (int64s, st.none() | int64s)
)


@given(KINDS, st.lists(BATCH, max_size=4), st.booleans())
def test_fed_and_merged_rows_hold_what_went_in(kinds: list[str], batches: list, by_ids: bool) -> None:
    members = AccumulatorSet([MEMBERS[kind]() for kind in kinds])
    panes = pane_table(members)
    wanted: dict[tuple[int, int], list] = {}
    for batch in batches:
        keys, times = (np.array([row[at] for row in batch], np.int64) for at in (0, 1))
        columns = [column([value for *_, value in batch], "int64")]
        for key, time, value in batch:
            wanted.setdefault((key, time - time % 2), []).append(value)
        if by_ids:
            panes.feed(panes.keys.intern_int64(keys), None, None, times, -(2**61), 2, 0, 0, columns)
        else:
            panes.feed(None, keys, None, times, -(2**61), 2, 0, 0, columns)
        panes._check()
    slots = panes.rows.slots()
    keys = panes.keys.take_int64(panes.rows.keys(slots))[0].tolist()
    places = list(zip(keys, panes.rows.starts(slots).tolist(), strict=True))
    assert sorted(places) == sorted(wanted)
    assert_results(members.results(panes.rows, slots), kinds, [wanted[place] for place in places], False)
    # All rows into one, in two steps.
    panes_of_one = pane_table(AccumulatorSet([MEMBERS[kind]() for kind in kinds]))
    one = panes_of_one.ensure(panes_of_one.keys.intern_int64(np.array([7])), np.array([0]))
    half = len(slots) // 2
    for part in (slots[:half], slots[half:]):
        members.merge_rows(panes_of_one.rows, np.repeat(one, len(part)), panes.rows, part)
    assert_results(
        members.results(panes_of_one.rows, one), kinds, [[value for place in places for value in wanted[place]]], False
    )
