"""Inputs that are quiet: in process, joined and alone."""

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.inputclocks import InputClocks
from tests.support.clock import Clock
from tests.support.streams import COUNT, rows, table

NONE = fw.MIN_TIMESTAMP
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])
SIDE = fw.key_by("k").event_time("ts", unit="ms")
JOIN = fw.window_join(SIDE, SIDE, fw.TumblingEventTimeWindows.of(10), "left")


def side(*times: int) -> pa.Table:
    return pa.table({"k": ["a"] * len(times), "ts": list(times)}, schema=SCHEMA)


def test_the_watermark_is_that_of_the_slowest_input_that_is_not_idle() -> None:
    clocks = InputClocks.begin(2, 0)
    assert clocks.watermark((5, 0), 0, 100) == NONE
    clocks = clocks.hear((50, NONE), 10)
    assert clocks.watermark((5, 0), 99, 100) == NONE  # the second may still come
    assert clocks.watermark((5, 0), 100, 100) == 44
    assert clocks.holder((5, 0), 100, 100) == 0
    clocks = clocks.hear((NONE, 20), 105)
    assert (clocks.holder((5, 0), 105, 100), clocks.watermark((5, 0), 105, 100)) == (1, 19)
    assert clocks.watermark((5, 0), 204, 100) == 19
    assert clocks.watermark((5, 0), 205, 100) == 50  # both are idle now: the newest of all
    assert clocks.watermark((5, 0), 212, 100) == 57
    assert clocks.holder((5, 0), 212, 100) is None
    assert clocks.watermark((5, 0), 212, None) == 19


def test_a_clock_that_goes_back_makes_nothing_idle() -> None:
    clocks = InputClocks.begin(1, 1_000).hear((7,), 900)
    assert clocks.heard == (1_000,)
    assert clocks.watermark((0,), 500, 100) == 6


@pytest.mark.parametrize("idle_ms", [100, 101])
def test_one_long_time_without_a_look_makes_no_input_idle_and_two_do(idle_ms: int) -> None:
    clocks = InputClocks.begin(2, 0).hear((50, 20), 10)
    once = clocks.unseen(10, 5_000, idle_ms)
    assert once.idle(5_000, idle_ms) == (False, False)
    assert once.unseen(5_000, 9_000, idle_ms).idle(9_000, idle_ms) == (True, True)
    assert once.hear((60, NONE), 5_000).unseen(5_000, 9_000, idle_ms).idle(9_000, idle_ms) == (False, True)


def test_a_short_time_without_a_look_counts_and_so_does_a_long_one_for_idle_inputs() -> None:
    clocks = InputClocks.begin(2, 0).hear((50, 20), 10)
    assert clocks.unseen(10, 60, 100) == clocks
    assert clocks.unseen(10, 61, 100).heard == (11, 11)
    assert clocks.unseen(10, 5, 100) == clocks  # the clock has gone back
    assert clocks.unseen(110, 5_000, 100) == clocks


def test_time_ends_at_the_last_of_int64() -> None:
    clocks = InputClocks.begin(1, 0).hear((fw.MAX_TIMESTAMP - 1,), 0)
    assert clocks.watermark((0,), 500, 100) == fw.MAX_TIMESTAMP


def test_event_time_goes_on_with_the_clock_when_a_stream_is_quiet(clock: Clock) -> None:
    stream = COUNT.open(watermark="1 s", idle="30 s")
    stream.process(table(("a", 29, 1)))
    clock.now += 30.5
    stream.process(table())
    assert stream.watermark == 529
    clock.now += 1
    stream.process(table())
    assert stream.watermark == 1_529


def test_a_quiet_input_of_two_no_longer_holds_time_back(clock: Clock) -> None:
    stream = JOIN.open(("0 s", "0 s"), schemas=(SCHEMA, SCHEMA), idle="30 s")
    assert stream.process(left=side(5), right=side(3)).main.num_rows == 0
    clock.now += 29
    assert stream.process(left=side(25)).main.num_rows == 0
    assert stream.watermark == 2
    clock.now += 1
    assert stream.process(left=side(26)).main.num_rows == 1
    assert stream.watermark == 25
    assert "right" not in " ".join(JOIN.open(("0 s", "0 s"), schemas=(SCHEMA, SCHEMA)).why("a").rows)
    stream.process(right=side(12))  # late, as time has gone on
    assert stream.metrics.num_late_records_dropped == 1
    assert stream.watermark == 25
    clock.now += 30.25
    stream.process()
    assert stream.watermark == 26 + 250


def test_a_join_that_is_restored_goes_on_from_its_watermarks(clock: Clock) -> None:
    first = JOIN.open(("0 s", "1 s"), schemas=(SCHEMA, SCHEMA), idle="30 s")
    first.process(left=side(5), right=side(3))
    again = JOIN.open(("0 s", "1 s"), schemas=(SCHEMA, SCHEMA), idle="30 s")
    clock.now += 100
    again.restore(first.snapshot())
    again.process()
    assert again.watermark == 3 - 1_000 - 1
    clock.now += 30.1
    assert again.process().main.num_rows == 1
    assert again.watermark == 5 + 100


def test_without_idle_a_quiet_input_is_waited_for(clock: Clock) -> None:
    stream = JOIN.open(("0 s", "0 s"), schemas=(SCHEMA, SCHEMA))
    stream.process(left=side(5), right=side(3))
    clock.now += 1_000
    stream.process(left=side(100))
    assert stream.watermark == 2


def test_idle_of_a_join_needs_watermarks() -> None:
    with pytest.raises(fw.SpecError, match="idle: must be at least 1 ms, and needs a watermark="):
        JOIN.open(idle="1 s")
    assert rows(COUNT.open(watermark="1 s", idle="1 s").process(table())) == []
