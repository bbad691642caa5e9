"""Windows of runs in order of their ends, against a stable sort of all of them."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.panes.rowsbyend import repeat_until, rows_by_end

FAR = 2**62
runs = st.tuples(
    st.integers(0, 5), st.one_of(st.integers(-30, 30), st.sampled_from([-FAR, 1 - FAR, FAR - 12, 10**15])),
    st.integers(0, 12),
)  # fmt: skip


def laid_out(*given_runs: tuple[int, int, int]) -> list[list[int]]:
    """Of runs of (key, first place, more places behind it)."""
    keys, firsts, more = (np.array([run[i] for run in given_runs], np.int64) for i in range(3))
    return [found.tolist() for found in rows_by_end(keys.astype(np.int32), firsts, firsts + more)]


@given(st.lists(runs, max_size=30))
def test_rows_are_in_order_of_ends_and_then_of_runs(given_runs: list[tuple[int, int, int]]) -> None:
    every = sorted(
        (first + step, i, step) for i, (_, first, more) in enumerate(given_runs) for step in range(more + 1)
    )  # fmt: skip
    ids, at, places, bounds = laid_out(*given_runs)
    assert ids == [given_runs[i][0] for _, i, _ in every]
    assert at == [row for _, row in sorted((i, row) for row, (_, i, step) in enumerate(every) if step == 0)]
    counted = [(place, len(list(rows))) for place, rows in groupby(every, lambda one: one[0])]
    assert places == [place for place, _ in counted]
    assert bounds == np.cumsum([count for _, count in counted], dtype=np.int64).tolist()
    back = repeat_until(np.array(places, np.int64), np.array(bounds, np.int64))
    assert back.tolist() == [place for place, _, _ in every]


def test_no_runs_have_no_rows() -> None:
    assert laid_out() == [[], [], [], []]
    assert repeat_until(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


def test_the_ends_of_all_places() -> None:
    assert laid_out((1, FAR, 0), (2, -FAR, 0)) == [[2, 1], [1, 0], [-FAR, FAR], [1, 2]]


def test_neighbouring_runs_touch() -> None:
    assert laid_out((1, 3, 1), (2, 5, 0), (3, 1, 1)) == [[3, 3, 1, 1, 2], [2, 4, 0], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]


def test_a_row_of_no_place_is_passed_over_when_values_are_repeated() -> None:
    assert repeat_until(np.array([7, 8, 9]), np.array([0, 2, 2])).tolist() == [8, 8]


@pytest.mark.parametrize(
    ("keys", "firsts", "lasts", "said"),
    [
        ([1], [5], [4], r"must ascend within \+-2\*\*62, got 5 and 4 for run 0"),
        ([1, 1], [0, 0], [0, FAR + 1], r"must ascend within \+-2\*\*62"),
        ([1], [-FAR - 1], [0], r"must ascend within \+-2\*\*62"),
        ([1], [-FAR], [FAR], r"at most 2\*\*40 windows together"),
        ([1, 1], [0, 0], [0, 2**40 - 1], r"at most 2\*\*40 windows together"),
        ([1], [1, 2], [1], "firsts: needs 1 values"),
        ([1], [1], [1, 2], "lasts: needs 1 values"),
    ],
)
def test_what_is_out_of_bounds(keys: list[int], firsts: list[int], lasts: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rows_by_end(np.array(keys, np.int32), np.array(firsts), np.array(lasts))


@pytest.mark.parametrize(
    ("values", "bounds", "said"),
    [
        ([1, 2], [2, 1], "must ascend from 0 on, got 1 after 2"),
        ([1], [-1], "must ascend from 0 on, got -1 after 0"),
        ([1, 2], [1], "bounds: needs 2 values"),
    ],
)
def test_bounds_that_repeat_nothing(values: list[int], bounds: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        repeat_until(np.array(values), np.array(bounds))
