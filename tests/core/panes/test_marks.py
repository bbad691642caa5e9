"""Marks of windows: which gaps they tell, and what is out of bounds."""

import numpy as np
import pytest

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.marks import MARK_CELLS, MOST_GAP, pass_windows
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import HEAD_CELLS


@pytest.fixture
def marks() -> PaneTable:
    keys = KeyTable("int64")
    keys.intern_int64(np.arange(3))
    return PaneTable(keys, AccumulatorSet([], HEAD_CELLS + MARK_CELLS))


def gaps(marks: PaneTable, *windows: tuple[int, int], gap: int = 100) -> list[tuple[int, int, int]]:
    keys, ends = (np.array(column) for column in zip(*windows, strict=True))
    return list(zip(*(found.tolist() for found in pass_windows(marks, keys.astype(np.int32), ends, gap)), strict=True))


def test_each_key_has_gaps_of_its_own(marks: PaneTable) -> None:
    assert gaps(marks, (0, 10), (1, 10), (0, 20), (1, 40)) == [(2, 10, 20), (3, 10, 40)]
    assert gaps(marks, (0, 120), (1, 141), (2, -50)) == [(0, 20, 120)]  # 101 ms are too long for key 1
    marks._check()


def test_a_window_before_the_first_ends_a_gap_and_may_join_two_runs(marks: PaneTable) -> None:
    assert gaps(marks, (0, 10), (0, 150)) == []
    assert gaps(marks, (0, 130)) == [(0, 130, 150)]
    assert gaps(marks, (0, 140)) == []
    assert gaps(marks, (0, 90)) == [(0, 90, 130), (0, 10, 90)]
    assert gaps(marks, (0, 50)) == []


def test_several_windows_before_the_first_have_none_of_them_between(marks: PaneTable) -> None:
    assert gaps(marks, (0, 80)) == []
    assert gaps(marks, (0, 20), (0, 50)) == [(1, 50, 80), (0, 20, 50)]


def test_two_late_windows_between_two_runs_have_none_of_them_in_a_gap(marks: PaneTable) -> None:
    assert gaps(marks, (0, 10), (0, 150)) == []
    assert gaps(marks, (0, 70), (0, 90)) == [(1, 90, 150), (0, 70, 90), (0, 10, 70)]
    assert gaps(marks, (0, 70), (0, 90)) == []


def test_runs_go_on_from_pane_to_pane_of_marks(marks: PaneTable) -> None:
    assert gaps(marks, *((0, end) for end in range(0, 1_000, 80))) == [
        (i + 1, end, end + 80) for i, end in enumerate(range(0, 960, 80))
    ]
    assert gaps(marks, (0, 1_040), (1, 1_040), (0, 1_141), (1, 1_141), (0, 2_000)) == [(0, 960, 1_040)]
    assert gaps(marks, (1, 1_100), (1, 1_120), (0, 1_950)) == [
        (2, 1_950, 2_000), (1, 1_120, 1_141), (0, 1_100, 1_120), (0, 1_040, 1_100)
    ]  # fmt: skip
    marks._check()


def test_far_ends_and_the_longest_gap(marks: PaneTable) -> None:
    far = 2**62
    assert gaps(marks, (0, -far), (1, far), (0, MOST_GAP - far), gap=MOST_GAP) == [(2, -far, MOST_GAP - far)]
    for windows, gap, said in (((0, far + 1), 10, r"2\*\*62"), ((0, 0), 0, "gap"), ((0, 0), MOST_GAP + 1, "gap")):
        with pytest.raises(ValueError, match=said):
            gaps(marks, windows, gap=gap)
    with pytest.raises(IndexError):
        gaps(marks, (3, 0))
