"""Shares that make their watermark themselves, without Spark: quiet inputs, repeated micro-batches, all shares alike."""

import copy

from tests.support.spark_harness import Harness, clock, counts, packet

IDLE = {"idle_ms": 100, "delays": (0, 0)}
ALONE = {"idle_ms": 100, "delays": (3,)}


def watermark(harness: Harness, group: int) -> int:
    return harness.handle.values[group]["inputs"][-2]


def test_what_a_batch_brings_counts_from_the_next_one():
    harness = Harness(**ALONE)
    harness.batch(0, {7: [packet((1, 5)), clock(5)]}, now=1_000)
    assert harness.batch(0, {7: [packet((1, 15)), clock(15)]}, now=1_010)["MAIN"] == []
    assert watermark(harness, 7) == 5 - 3 - 1
    assert counts(harness.batch(0, {7: [packet((1, 17)), clock(17)]}, now=1_020)["MAIN"]) == [(1, 0, 1)]
    assert watermark(harness, 7) == 11


def test_spark_s_own_watermark_does_not_matter():
    harness = Harness(**ALONE)
    harness.batch(0, {7: [packet((1, 5)), clock(5)]}, now=1_000)
    assert harness.batch(1_000, {}, now=1_010)["MAIN"] == []


def test_a_quiet_input_holds_time_back_until_it_is_idle():
    harness = Harness(**IDLE)
    harness.batch(0, {7: [packet((1, 5), (1, 9)), clock(9, 0), clock(5, 1)]}, now=1_000)
    for now, newest in ((1_050, 25), (1_099, 26), (1_100, 27)):
        assert harness.batch(0, {7: [packet((1, newest)), clock(newest, 0)]}, now=now)["MAIN"] == []
        assert watermark(harness, 7) == 4
    # at 1,100 the second input has been quiet for long enough, which counts from the next micro-batch
    assert counts(harness.batch(0, {}, now=1_110)["MAIN"]) == [(1, 0, 2)]
    assert watermark(harness, 7) == 26
    late = harness.batch(0, {7: [packet((1, 8)), clock(8, 1)]}, now=1_120)
    assert late["MAIN"] == []
    assert harness.counters["dropped"] == 1
    assert watermark(harness, 7) == 26


def test_time_goes_on_with_the_clock_when_all_are_quiet():
    harness = Harness(**ALONE)
    harness.batch(0, {7: [packet((1, 5)), clock(5)]}, now=1_000)
    marks = []
    for now in (1_050, 1_099, 1_100, 1_103, 1_104, 1_105, 1_110):
        fired = harness.batch(0, {}, now=now)["MAIN"]
        marks.append((watermark(harness, 7), len(fired)))
    assert marks == [(1, 0), (1, 0), (1, 0), (5, 0), (8, 0), (9, 1), (10, 0)]


def test_a_pause_of_the_query_is_no_silence():
    harness = Harness(**ALONE)
    harness.batch(0, {7: [packet((1, 5)), clock(5)]}, now=1_000)
    out = harness.batch(0, {7: [packet((1, 5), (1, 9)), clock(9)]}, now=9_000)  # stopped in between, with a backlog
    assert out["MAIN"] == []
    assert harness.counters["dropped"] == 0
    harness.batch(0, {}, now=9_050)
    assert watermark(harness, 7) == 9 - 3 - 1


def test_a_pause_makes_neither_of_two_inputs_quiet():
    harness = Harness(**IDLE)
    harness.batch(0, {7: [packet((1, 5), (1, 9)), clock(9, 0), clock(5, 1)]}, now=1_000)
    harness.batch(0, {7: [packet((1, 90)), clock(90, 0)]}, now=9_000)  # stopped in between; one is there sooner
    out = harness.batch(0, {7: [packet((1, 8), (1, 80)), clock(80, 1)]}, now=9_040)
    assert out["MAIN"] == []
    assert harness.counters["dropped"] == 0
    assert watermark(harness, 7) == 4
    assert counts(harness.batch(0, {}, now=9_050)["MAIN"]) == [(1, 0, 3)]
    assert watermark(harness, 7) == 79


def test_an_input_stays_quiet_through_a_pause():
    harness = Harness(**IDLE)
    harness.batch(0, {7: [packet((1, 5)), clock(5, 0), clock(5, 1)]}, now=1_000)
    for now, newest in ((1_050, 6), (1_100, 7)):
        harness.batch(0, {7: [packet((1, newest)), clock(newest, 0)]}, now=now)
    harness.batch(0, {7: [packet((1, 90)), clock(90, 0)]}, now=9_000)
    harness.batch(0, {}, now=9_010)
    assert watermark(harness, 7) == 89


def test_micro_batches_further_apart_than_idle_find_inputs_quiet_by_the_second():
    harness = Harness(**IDLE)
    harness.batch(0, {7: [packet((1, 5)), clock(5, 0), clock(5, 1)]}, now=1_000)
    marks = []
    for now in (2_000, 3_000, 4_000, 5_000):
        harness.batch(0, {}, now=now)
        marks.append(watermark(harness, 7))
    assert marks == [4, 4, 5, 1_005]  # idle at 3,000, and on with the clock from there


def test_shares_with_and_without_rows_have_one_time():
    harness = Harness(**IDLE)
    told = [clock(30, 0), clock(20, 1)]
    harness.batch(0, {7: [packet((1, 5), (1, 30)), *told], 8: list(told)}, now=1_000)
    for now in (1_010, 1_050, 1_100, 1_150, 1_170):
        harness.batch(0, {}, now=now)
        assert watermark(harness, 7) == watermark(harness, 8)
    assert watermark(harness, 8) == 30 + 50
    assert harness.counters["streams_loaded"] + harness.counters["streams_kept"] <= 1  # the other one was not opened


def test_a_batch_that_runs_again_judges_alike():
    harness = Harness(**ALONE)
    harness.batch(0, {7: [packet((1, 5)), clock(5)]}, now=1_000)
    for now in (1_050, 1_100, 1_110):
        harness.batch(0, {}, now=now)
    kept = copy.deepcopy((harness.handle.values, harness.handle.timers))
    first = harness.batch(0, {7: [packet((1, 4), (1, 16)), clock(16)]}, now=1_120)
    after = copy.deepcopy(harness.handle.values[7]["inputs"])
    harness.handle.values, harness.handle.timers = kept
    assert harness.batch(0, {7: [packet((1, 4), (1, 16)), clock(16)]}, now=1_120) == first
    assert harness.handle.values[7]["inputs"] == after
