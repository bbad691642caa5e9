"""Time windows: half-open intervals, and the merging of those that overlap or touch."""

from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.windows.timewindow import TimeWindow, merge_time_windows


def test_time_windows_that_touch_intersect() -> None:
    window = TimeWindow(0, 10)
    assert window.intersects(TimeWindow(10, 20))
    assert window.intersects(TimeWindow(-5, 0))
    assert not window.intersects(TimeWindow(11, 20))
    assert window.cover(TimeWindow(15, 20)) == TimeWindow(0, 20)
    assert window.max_timestamp() == 9
    assert fw.GlobalWindow().max_timestamp() == fw.MAX_TIMESTAMP


@given(st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 8)), max_size=12))
def test_merging_gives_what_joining_pairs_until_none_touch_gives(found: list[tuple[int, int]]) -> None:
    windows = {TimeWindow(start, start + size) for start, size in found}
    left = set(windows)
    while pair := next(((a, b) for a in left for b in left if a != b and a.intersects(b)), None):
        left = left - set(pair) | {pair[0].cover(pair[1])}
    merged: dict[TimeWindow, list[TimeWindow]] = {}
    merge_time_windows(windows, lambda group, result: merged.__setitem__(result, list(group)))
    alone = windows - {window for group in merged.values() for window in group}
    assert set(merged) | alone == left
    for result, group in merged.items():
        assert len(group) > 1
        assert (min(w.start for w in group), max(w.end for w in group)) == result
