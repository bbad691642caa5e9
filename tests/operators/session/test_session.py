"""Session windows: touching, merging, late elements saved or not, timers, deltas."""

import random

import pyarrow as pa
import pytest

import fastwin as fw

MAX = fw.MAX_TIMESTAMP


def spec_of(gap: int = 10, lateness: int = 0, coalesce: bool = False) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(gap))
    spec = spec.allowed_lateness(lateness, coalesce=coalesce).side_output_late_data()
    return spec.aggregate(n=fw.Count(), s=fw.Sum("t"), lo=fw.Min("t"), hi=fw.Max("t"), m=fw.Mean("t"))


def table(*times: int, key: str = "a") -> pa.Table:
    return pa.table({"k": pa.array([key] * len(times), pa.string()), "t": pa.array(times, pa.int64())})


def fired(result: fw.Result) -> list[tuple[int, int, int]]:
    main = result.main
    return list(
        zip(
            main["window_start"].cast(pa.int64()).to_pylist(),
            main["window_end"].cast(pa.int64()).to_pylist(),
            main["n"].to_pylist(),
            strict=True,
        )
    )


def test_one_element_lasts_a_gap() -> None:
    assert fired(spec_of().run(table(-5))) == [(-5, 5, 1)]


@pytest.mark.parametrize("times", [(0, 10), (10, 0), (0, 10, 20), (20, 0, 10), (0, 20, 10), (-10, 0)])
def test_touching_sessions_merge(times: tuple[int, ...]) -> None:
    assert fired(spec_of().run(table(*times))) == [(min(times), max(times) + 10, len(times))]


@pytest.mark.parametrize("times", [(0, 11), (11, 0), (-11, 0)])
def test_a_millisecond_more_keeps_them_apart(times: tuple[int, ...]) -> None:
    assert fired(spec_of().run(table(*times))) == [(time, time + 10, 1) for time in sorted(times)]


def test_merged_sessions_merge_their_aggregates() -> None:
    main = spec_of().run(table(0, 20, 5, 15, 10, 15)).main
    assert main.select(["n", "s", "lo", "hi", "m"]).to_pylist() == [{"n": 6, "s": 65, "lo": 0, "hi": 20, "m": 65 / 6}]


def test_keys_do_not_share_sessions() -> None:
    found = spec_of().run(pa.concat_tables([table(0, 5), table(5, 10, key="b"), table(15)])).main
    assert sorted(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True)) == [("a", 3), ("b", 2)]


def test_same_session_whatever_the_order() -> None:
    dice = random.Random(7)
    times = [start + step for start in range(0, 1_000, 100) for step in range(0, 50, 7)]
    wanted = fired(spec_of().run(table(*times)))
    for _ in range(5):
        dice.shuffle(times)
        assert fired(spec_of().run(table(*times))) == wanted


def test_session_fires_at_its_last_millisecond_and_goes() -> None:
    stream = spec_of().open()
    stream.process(table(0, 5))
    assert fired(stream.advance_watermark(13)) == []
    assert fired(stream.advance_watermark(14)) == [(0, 15, 2)]
    assert stream.metrics.state_rows == 0
    assert fired(stream.advance_watermark(MAX)) == []


def test_extended_session_fires_once_at_its_new_end() -> None:
    stream = spec_of().open()
    stream.process(table(0))
    stream.process(table(8))
    stream.process(table(16))
    assert fired(stream.advance_watermark(20)) == []
    assert fired(stream.advance_watermark(25)) == [(0, 26, 3)]


def test_late_element_is_saved_by_an_open_session() -> None:
    stream = spec_of().open()
    stream.process(table(20))
    stream.advance_watermark(22)
    assert stream.process(table(12)).late.num_rows == 0
    assert stream.process(table(1)).late["t"].to_pylist() == [1]
    assert stream.process(table(2)).late.num_rows == 0
    assert fired(stream.advance_watermark(MAX)) == [(2, 30, 3)]


def test_element_whose_own_window_has_just_passed_is_late() -> None:
    for watermark, late in [(8, 0), (9, 1)]:
        stream = spec_of().open()
        stream.advance_watermark(watermark)
        assert stream.process(table(0)).late.num_rows == late


def test_within_lateness_every_element_fires() -> None:
    stream = spec_of(lateness=100).open()
    stream.process(table(0))
    assert fired(stream.advance_watermark(20)) == [(0, 10, 1)]
    assert fired(stream.process(table(3, 4))) == [(0, 13, 2), (0, 14, 3)]
    assert fired(stream.process(table(-50))) == [(-50, -40, 1)]
    assert fired(stream.advance_watermark(MAX)) == []


def test_fired_session_that_is_extended_into_the_future_fires_again_in_time() -> None:
    stream = spec_of(lateness=100).open()
    stream.process(table(0))
    stream.advance_watermark(9)
    assert fired(stream.process(table(10))) == []
    assert stream.next_timer() == 19
    assert fired(stream.advance_watermark(19)) == [(0, 20, 2)]


def test_late_element_joins_two_fired_sessions_and_fires_once() -> None:
    stream = spec_of(lateness=100).open()
    stream.process(table(0, 15))
    assert len(fired(stream.advance_watermark(50))) == 2
    assert fired(stream.process(table(8))) == [(0, 25, 3)]
    assert stream.metrics.open_windows == 1


def test_session_is_gone_once_its_lateness_has_passed() -> None:
    stream = spec_of(lateness=5).open()
    stream.process(table(0))
    stream.advance_watermark(13)
    assert fired(stream.process(table(1))) == [(0, 11, 2)]
    stream.advance_watermark(15)
    assert stream.metrics.state_rows == 0
    assert stream.process(table(1)).late.num_rows == 1


def test_coalesced_batch_joins_before_lateness_is_decided() -> None:
    """In this order the first element would be late by itself; the order that accepts most saves it."""
    for coalesce, late in [(False, [0]), (True, [])]:
        stream = spec_of(coalesce=coalesce).open()
        stream.advance_watermark(12)
        assert stream.process(table(0, 9, 5)).late["t"].to_pylist() == late
        assert fired(stream.advance_watermark(MAX)) == ([(0, 19, 3)] if coalesce else [(5, 19, 2)])


def test_coalesced_batch_is_one_however_it_is_chunked() -> None:
    stream = spec_of(coalesce=True).open()
    stream.advance_watermark(12)
    batch = pa.concat_tables([table(*[0] * 70_000), table(*[9] * 70_000)])
    assert stream.process(batch).late.num_rows == 0
    assert fired(stream.advance_watermark(MAX)) == [(0, 19, 140_000)]


def test_coalesced_chain_reaches_back_from_an_open_session() -> None:
    stream = spec_of(coalesce=True).open()
    stream.process(table(100))
    stream.advance_watermark(95)
    assert stream.process(table(60, 70, 80, 90, 49)).late["t"].to_pylist() == [49]
    assert fired(stream.advance_watermark(MAX)) == [(60, 110, 5)]


def test_coalesced_late_elements_fire_once_a_session() -> None:
    stream = spec_of(lateness=1_000, coalesce=True).open()
    stream.advance_watermark(500)
    found = stream.process(pa.concat_tables([table(100, 0), table(50, 55, key="b"), table(5, 300), table(600)]))
    assert fired(found) == [(0, 15, 2), (50, 65, 2), (100, 110, 1), (300, 310, 1)]
    assert stream.metrics.open_windows == 5


def test_late_session_waits_for_its_cleanup_alone() -> None:
    stream = spec_of(lateness=50).open()
    stream.advance_watermark(30)
    assert fired(stream.process(table(0))) == [(0, 10, 1)]
    assert stream.next_timer() == 59
    stream.advance_watermark(58)
    assert stream.metrics.state_rows == 1
    stream.advance_watermark(59)
    assert stream.metrics.state_rows == 0
    assert stream.next_timer() is None


def test_delta_of_a_session_that_touches_one_long_cleaned() -> None:
    """The first session is in the snapshot, cleaned by the watermark, and touched by what the delta brings."""
    stream = spec_of().open()
    stream.process(table(0))
    chunks = [stream.snapshot()]
    stream.advance_watermark(9)
    stream.process(table(10))
    chunks.append(stream.delta())
    fresh = spec_of().open()
    fresh.restore(chunks)
    assert fired(fresh.advance_watermark(MAX)) == [(10, 20, 1)]


@pytest.mark.parametrize("later", [(-8,), (8,), (8, 28), (-8, 8, 12)])
def test_delta_of_sessions_moved_and_merged_away(later: tuple[int, ...]) -> None:
    stream, fresh = spec_of().open(), spec_of().open()
    stream.process(pa.concat_tables([table(0, 20, 40), table(5, key="b")]))
    chunks = [stream.snapshot()]
    for time in later:
        stream.process(table(time))
        chunks.append(stream.delta())
    fresh.restore(chunks)
    fresh._check_invariants()
    assert fresh.metrics.state_rows == stream.metrics.state_rows
    assert fired(fresh.advance_watermark(MAX)) == fired(stream.advance_watermark(MAX))
    assert len(fresh._operator._keys) == 0


def test_deltas_go_on_after_a_restore() -> None:
    first = spec_of().open()
    first.process(table(0, 20))
    chunks = [first.snapshot()]
    second = spec_of().open()
    second.restore(chunks)
    second.process(table(10))
    chunks.append(second.delta())
    third = spec_of().open()
    third.restore(chunks)
    assert third.metrics.state_rows == 1
    assert fired(third.advance_watermark(MAX)) == [(0, 30, 3)]


def test_many_sessions_of_one_key_in_any_order() -> None:
    dice = random.Random(5)
    times = [20 * i for i in range(2_000)]
    dice.shuffle(times)
    stream = spec_of().open()
    for at in range(0, len(times), 100):
        stream.process(table(*times[at : at + 100]))
        stream._check_invariants()
    assert stream.metrics.open_windows == 2_000
    joining = [20 * i + 10 for i in range(1_999)]
    dice.shuffle(joining)
    stream.process(table(*joining))
    assert fired(stream.advance_watermark(MAX)) == [(0, 39_990, 3_999)]
