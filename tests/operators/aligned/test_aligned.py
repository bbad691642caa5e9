"""Tumbling and sliding windows: boundaries, slices, late elements, timers, deltas."""

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan

MAX = fw.MAX_TIMESTAMP


def spec_of(
    size: int, slide: int | None = None, offset: int = 0, lateness: int = 0, coalesce: bool = False
) -> fw.WindowSpec:
    assigner = (
        fw.SlidingEventTimeWindows.of(size, slide, offset) if slide else fw.TumblingEventTimeWindows.of(size, offset)
    )
    spec = fw.key_by("k").event_time("t").window(assigner).allowed_lateness(lateness, coalesce=coalesce)
    return spec.side_output_late_data().aggregate(n=fw.Count(), s=fw.Sum("t"))


def table(*times: int, key: str = "a") -> pa.Table:
    return pa.table({"k": pa.array([key] * len(times), pa.string()), "t": pa.array(times, pa.int64())})


def fired(result: fw.Result) -> list[tuple[int, int, int]]:
    """``(start, end, count)`` of each result row, in order."""
    main = result.main
    return list(
        zip(
            main["window_start"].cast(pa.int64()).to_pylist(),
            main["window_end"].cast(pa.int64()).to_pylist(),
            main["n"].to_pylist(),
            strict=True,
        )
    )


@pytest.mark.parametrize(
    ("size", "offset", "time", "start"),
    [
        (10, 0, 0, 0), (10, 0, 9, 0), (10, 0, 10, 10), (10, 0, -1, -10), (10, 0, -10, -10), (10, 0, -11, -20),
        (10, 3, 2, -7), (10, 3, 3, 3), (10, 3, -7, -7), (10, -3, 6, -3), (10, -3, 7, 7), (10, -3, -4, -13),
        (1, 0, -5, -5), (10, 0, 2**61, 2**61 // 10 * 10), (10, 0, -(2**61), -(2**61) // 10 * 10),
    ],
)  # fmt: skip
def test_element_on_the_boundary_of_tumbling_windows(size: int, offset: int, time: int, start: int) -> None:
    assert fired(spec_of(size, offset=offset).run(table(time))) == [(start, start + size, 1)]


@pytest.mark.parametrize(
    ("size", "slide", "offset", "time", "starts"),
    [
        (20, 10, 0, 0, [-10, 0]), (20, 10, 0, 9, [-10, 0]), (20, 10, 0, 10, [0, 10]), (20, 10, 0, -1, [-20, -10]),
        (25, 10, 0, 4, [-20, -10, 0]), (25, 10, 0, 5, [-10, 0]), (25, 10, 0, 14, [-10, 0, 10]), (25, 10, 0, 15, [0, 10]),
        (25, 10, 3, 2, [-17, -7]), (25, 10, 3, 7, [-17, -7, 3]), (25, 10, -3, 7, [-13, -3, 7]),
        (10, 10, 0, 5, [0]), (5, 10, 0, 4, [0]), (5, 10, 0, 5, []), (5, 10, 0, 9, []), (5, 10, 0, -6, [-10]), (5, 10, -2, 8, [8]),
        (3, 1, 0, 0, [-2, -1, 0]), (2, 3, 1, 0, []), (2, 3, 1, 1, [1]),
    ],
)  # fmt: skip
def test_element_is_in_all_windows_that_cover_it(
    size: int, slide: int, offset: int, time: int, starts: list[int]
) -> None:
    assert fired(spec_of(size, slide, offset).run(table(time))) == [(start, start + size, 1) for start in starts]


def test_elements_between_windows_are_unassigned_or_late() -> None:
    stream = spec_of(5, 10).open()
    assert stream.process(table(7, 8)).late.num_rows == 0
    assert stream.metrics.unassigned == 2
    stream.advance_watermark(17)
    assert stream.process(table(17, 18)).late["t"].to_pylist() == [17]
    assert stream.metrics.unassigned == 3
    assert stream.metrics.state_rows == 0


def test_element_in_a_gap_is_late_by_its_own_time() -> None:
    stream = spec_of(5, 10, lateness=4).open()
    stream.advance_watermark(20)
    late = stream.process(table(15, 16, 17)).late
    assert late["t"].to_pylist() == [15, 16]
    assert stream.metrics.unassigned == 1


def test_a_slice_is_one_row_however_many_windows_cover_it() -> None:
    stream = spec_of(86_400, 1).open()
    stream.process(table(*range(0, 100, 10)))
    assert stream.metrics.state_rows == 10
    assert stream.metrics.open_windows == 86_400 + 90
    small = spec_of(60, 3).open()
    small.process(table(*range(0, 100, 10)))
    assert small.metrics.state_rows == 10
    assert len(stream.snapshot()) < 1.2 * len(small.snapshot())


def test_two_slices_a_slide_where_the_size_is_no_multiple() -> None:
    stream = spec_of(25, 10).open()
    stream.process(table(*range(100)))
    assert stream.metrics.state_rows == 20


def test_windows_without_elements_do_not_fire() -> None:
    found = fired(spec_of(20, 10).run(table(0, 1_000_000)))
    assert [start for start, _, _ in found] == [-10, 0, 999_990, 1_000_000]


def test_far_apart_elements_cost_nothing_in_between() -> None:
    found = fired(spec_of(1_000, 1).run(table(-(2**60), 2**60)))
    assert len(found) == 2_000


def test_windows_fire_by_their_ends_and_keys_side_by_side() -> None:
    stream = spec_of(20, 10).open()
    stream.process(pa.concat_tables([table(25), table(5, key="b"), table(5, 15)]))
    found = fired(stream.advance_watermark(MAX))
    assert [end for _, end, _ in found] == sorted(end for _, end, _ in found)
    assert len(found) == 6


def test_element_late_for_some_windows_enters_the_others() -> None:
    stream = spec_of(20, 10).open()
    stream.advance_watermark(19)
    assert stream.process(table(15)).late.num_rows == 0
    assert fired(stream.advance_watermark(MAX)) == [(10, 30, 1)]


def test_late_element_fires_its_windows_the_latest_first() -> None:
    stream = spec_of(30, 10, lateness=100).open()
    stream.process(table(25))
    assert fired(stream.advance_watermark(49)) == [(0, 30, 1), (10, 40, 1), (20, 50, 1)]
    assert fired(stream.process(table(26, 5))) == [
        (20, 50, 2),
        (10, 40, 2),
        (0, 30, 2),
        (0, 30, 3),
        (-10, 20, 1),
        (-20, 10, 1),
    ]


@pytest.mark.parametrize(
    "assigner",
    [
        fw.SlidingEventTimeWindows.of("3 days", "1 day"),
        fw.CumulativeEventTimeWindows.of("3 days", "1 day"),
        fw.CalendarEventTimeWindows.sliding("1 week", "1 day", time_zone="UTC"),
        fw.CalendarEventTimeWindows.cumulative("1 week", "1 day", time_zone="UTC"),
    ],
    ids=str,
)
@pytest.mark.parametrize("general", [False, True])
def test_late_elements_fire_the_latest_window_first_with_each_operator(assigner: Any, general: bool) -> None:
    spec = fw.key_by("k").event_time("t").window(assigner).allowed_lateness("30 days").aggregate(n=fw.Count())
    elements = table(0)
    stream = open_plan(plan(spec, elements.schema, general=general))
    stream.advance_watermark(30 * 86_400_000)
    windows = [(start, end) for start, end, _ in fired(stream.process(elements))]
    assert windows == sorted(windows, key=lambda window: window[1], reverse=True)
    assert windows == [(window.start, window.end) for window in assigner.assign_windows(None, 0, None)]
    assert len(windows) > 2


def test_late_element_fires_only_what_has_passed() -> None:
    stream = spec_of(30, 10, lateness=100).open()
    stream.advance_watermark(39)
    assert fired(stream.process(table(25))) == [(10, 40, 1), (0, 30, 1)]
    assert fired(stream.advance_watermark(49)) == [(20, 50, 1)]


def test_window_is_gone_once_its_lateness_has_passed() -> None:
    stream = spec_of(10, lateness=5).open()
    stream.process(table(1))
    stream.advance_watermark(13)
    assert stream.metrics.open_windows == 1
    stream.advance_watermark(14)
    assert stream.metrics.open_windows == stream.metrics.state_rows == 0
    assert stream.process(table(2)).late["t"].to_pylist() == [2]


def test_next_timer_is_the_next_firing_or_cleanup() -> None:
    stream = spec_of(20, 10, lateness=5).open()
    assert stream.next_timer() is None
    stream.process(table(5))
    seen = []
    while (first := stream.next_timer()) is not None:
        seen.append((first, len(fired(stream.advance_watermark(first))), stream.metrics.state_rows))
    assert seen == [(9, 1, 1), (19, 1, 1), (24, 0, 0)]


def test_metrics_at_the_end_of_time() -> None:
    stream = spec_of(20, 10, lateness=3).open()
    stream.process(table(5, -(2**61), 2**61))
    for watermark in (fw.MIN_TIMESTAMP + 1, MAX - 1, MAX):
        stream.advance_watermark(watermark)
        assert stream.metrics.open_windows == (6 if watermark < 0 else 0)
    assert stream.process(table(2**61)).late.num_rows == 1


def test_coalesced_elements_fire_once_with_all_of_the_batch() -> None:
    stream = spec_of(20, 10, lateness=100, coalesce=True).open()
    stream.advance_watermark(29)
    found = stream.process(pa.concat_tables([table(5), table(5, 15, key="b"), table(6)]))
    assert fired(found) in (
        [(-10, 10, 2), (-10, 10, 1), (0, 20, 2), (0, 20, 2), (10, 30, 1)],
        [(-10, 10, 1), (-10, 10, 2), (0, 20, 2), (0, 20, 2), (10, 30, 1)],
    )


def test_deltas_tell_what_changed_and_the_watermark_what_went() -> None:
    stream = spec_of(10).open()
    stream.process(table(1, 11, 21))
    chunks = [stream.snapshot()]
    stream.process(table(2, 31))
    stream.advance_watermark(9)
    chunks.append(stream.delta())
    stream.process(table(12))
    chunks.append(stream.delta())
    chunks.append(stream.delta())
    fresh = spec_of(10).open()
    fresh.restore(chunks)
    assert fresh.watermark == 9
    assert fresh.metrics.state_rows == 3
    assert fired(fresh.advance_watermark(MAX)) == [(10, 20, 2), (20, 30, 1), (30, 40, 1)]


def test_key_comes_back_after_it_was_gone() -> None:
    stream = spec_of(10).open()
    for start in range(0, 100, 10):
        stream.process(table(start, key="a"))
        stream.process(table(start, key=f"only {start}"))
        assert len(fired(stream.advance_watermark(start + 9))) == 2
        assert len(stream._operator._keys) == 0
        stream._check_invariants()


@pytest.mark.parametrize("lateness", [0, 100])
def test_copy_follows_by_deltas_across_firings(lateness: int) -> None:
    """A copy that takes deltas goes on as the original does, also where that has fired windows before."""
    original, copy = (spec_of(100, 10, lateness=lateness).open() for _ in range(2))
    original.process(table(1, 5, 40))
    copy.restore(original.snapshot())
    for step in range(1, 30):
        original.advance_watermark(10 * step + 9)
        original.process(table(10 * step, 10 * step - 5, 10 * step + 60, 10 * step + 80))
        copy._operator.apply([original.delta()])
        copy._check_invariants()
        assert copy.metrics.state_rows == original.metrics.state_rows
    assert fired(copy.advance_watermark(MAX)) == fired(original.advance_watermark(MAX))


def test_copy_that_has_gone_on_by_itself_takes_no_deltas() -> None:
    original, copy = (spec_of(100, 10).open() for _ in range(2))
    original.process(table(1, 5, 40))
    copy.restore(original.snapshot())
    copy.advance_watermark(19)
    original.advance_watermark(19)
    with pytest.raises(fw.StateError, match="the stream has changed since"):
        copy._operator.apply([original.delta()])


@pytest.mark.parametrize("watermark", [2**63 - 3, 2**63 - 2])
def test_watermark_near_the_end_of_time_with_gaps_between_windows(watermark: int) -> None:
    spec = fw.key_by("k").event_time("t").window(fw.SlidingEventTimeWindows.of(100, 1_000)).aggregate(n=fw.Count())
    stream = spec.open()
    stream.process(pa.table({"k": [1], "t": [50]}))
    assert stream.advance_watermark(watermark).main["n"].to_pylist() == [1]
    assert stream.advance_watermark(2**63 - 1).main.num_rows == 0


@pytest.mark.parametrize("backwards", [False, True])
def test_many_small_windows_come_in_few_batches(backwards: bool) -> None:
    times = list(range(0, 30_000, 3))
    result = spec_of(3).run(table(*(reversed(times) if backwards else times)))
    assert fired(result) == [(start, start + 3, 1) for start in times]
    assert result.main.column(0).num_chunks < 5


def test_one_passed_element_fires_and_the_others_wait() -> None:
    stream = spec_of(10, lateness=100).open()
    stream.process(table(5))
    stream.advance_watermark(9)
    result = stream.process(table(20, 6, 21, -95))
    assert fired(result) == [(0, 10, 2)]
    assert result.late["t"].to_pylist() == [-95]
    assert fired(stream.advance_watermark(MAX)) == [(20, 30, 2)]


@pytest.mark.parametrize("lateness", [0, 3, 12])
@pytest.mark.parametrize(("size", "slide"), [(10, None), (10, 4), (4, 10)])
def test_watermark_that_moves_by_milliseconds_fires_and_cleans_in_time(
    size: int, slide: int | None, lateness: int
) -> None:
    stream = spec_of(size, slide, lateness=lateness).open()
    elements = table(*range(0, 40, 3))
    stream.process(elements)
    found = []
    for watermark in range(-20, 70):
        now = fired(stream.advance_watermark(watermark))
        assert {end for _, end, _ in now} <= {watermark + 1}
        stream._check_invariants()  # no slice is there that should be gone
        found += now
    assert found == fired(spec_of(size, slide).run(elements))
    assert stream.metrics.state_rows == 0


@pytest.mark.parametrize("slices", [1, 480])
def test_late_elements_that_fire_together_take_room_for_their_windows_alone(slices: int) -> None:
    """However many there are in a slice, and however many slices a window has."""
    spec = spec_of(480, 1, lateness=2_000, coalesce=True)
    stream = spec.open(schema=table().schema)
    stream.process(table(0))
    stream.advance_watermark(1_500)
    late = table(*(np.arange(20_000) % slices).tolist())
    tracemalloc.start()
    found = stream.process(late)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.main.num_rows == 480 + slices - 1
    assert peak < 20_000 * 480


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("slide", [None, 25])
def test_late_elements_newest_first_need_no_order_of_slices(slide: int | None, coalesce: bool) -> None:
    n = 500
    stream = spec_of(10, slide, lateness=10**6, coalesce=coalesce).open()
    stream.advance_watermark(10**6)
    times = [start + 1 for start in range((slide or 10) * n, 0, -(slide or 10))]
    late = fired(stream.process(table(*times)))
    assert sorted(late) == sorted((time - 1, time + 9, 1) for time in times)
    assert stream._operator._panes.moved == 0
    assert fired(stream.process(table(*times[:1]))) == [(times[0] - 1, times[0] + 9, 2)]
