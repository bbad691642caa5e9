"""Joins of bounded inputs, in shares of the keys and on threads: the rows are those of a stream."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import BadRowError, SpecError, UserFunctionError
from fastwin.run import joinrun
from fastwin.run.shares import between
from tests.support.spark_streams import assert_same_rows

WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of(10),
    "sliding": fw.SlidingEventTimeWindows.of(10, 4),
    "apart": fw.SlidingEventTimeWindows.of(7, 10),
    "calendar": fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin"),
}
KEYS = {
    "int": (lambda numbers: {"k": pa.array(numbers, mask=numbers == 7)},) * 2,
    "of two widths": (
        lambda numbers: {"k": pa.array(numbers, pa.int16())},
        lambda numbers: {"k": pa.array(numbers, pa.uint64())},
    ),
    "text": (lambda numbers: {"k": pa.array([None if n == 7 else f"key {n}" for n in numbers.tolist()])},) * 2,
    "two columns": (lambda numbers: {"k": pa.array(numbers // 5), "l": pa.array(numbers % 5).cast(pa.string())},) * 2,
}


@pytest.fixture(autouse=True)
def small_shares(monkeypatch):
    monkeypatch.setattr(joinrun, "_FEW_ROWS", 0)
    monkeypatch.setattr(joinrun, "_SHARE_ROWS", 40)


def table(seed, n, keys):
    random = np.random.default_rng(seed)
    times = pa.array(random.integers(0, 60, n), mask=random.random(n) < 0.02)
    return pa.table({**keys(random.integers(0, 40, n)), "ts": times, "v": np.arange(n)})


def streamed(join, left, right):
    stream = join.open(schemas=(left.schema, right.schema))
    stream.process(left, right)
    return stream.advance_watermark(fw.MAX_TIMESTAMP)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("windows", WINDOWS)
def test_rows_are_those_of_a_stream(windows, kind, how, threads):
    left, right = (table(seed, n, make) for seed, n, make in zip((1, 2), (300, 170), KEYS[kind], strict=True))
    names = [name for name in left.column_names if name in "kl"]
    side = fw.key_by(*names).event_time("ts", unit="ms").bad_rows("drop")
    join = fw.window_join(side, side.allowed_lateness(5).side_output_late_data(), WINDOWS[windows], how)
    found, expected = join.run(left, right, threads=threads), streamed(join, left, right)
    assert found.main.num_rows > 80
    assert found.main.schema == expected.main.schema
    assert_same_rows(found.main, expected.main)
    assert found.side == expected.side
    assert list(found.side) == ["late_right"]
    ends = found.main.select([*names, "window_end"]).to_pylist()
    assert all(sorted(some) == some for some in by_key(ends, names).values())
    if windows in ("tumbling", "apart"):  # each thread has had windows of its own
        assert [row["window_end"] for row in ends] == sorted(row["window_end"] for row in ends)


def far_apart(seed, n, in_order):
    """Rows of some months around both changes of the clock of Berlin, a few of them years away."""
    random, hour = np.random.default_rng(seed), 3_600_000
    times = random.integers(1_709_251_200_000 // hour, 1_733_011_200_000 // hour, n) * hour
    times[:3] = [-2_208_988_800_000, -1, 4_102_444_800_000]
    times = np.sort(times) if in_order else times
    text = pa.array(random.integers(0, 9, n)).cast(pa.string())
    return pa.table(
        {
            "k": random.integers(0, 3, n),
            "ts": pa.array(times, pa.timestamp("ms", "Europe/Berlin")),
            "word": text.dictionary_encode(),
            "view": text.cast(pa.string_view()),
        }
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("keys", [(), ("k",)])
@pytest.mark.parametrize("in_order", [False, True])
def test_days_of_a_zone_and_values_of_other_kinds(in_order, keys, threads):
    left, right = (far_apart(seed, n, in_order) for seed, n in ((1, 700), (2, 300)))
    days = fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin")
    side = fw.key_by(*keys).event_time("ts")
    join = fw.window_join(side, side, days, "full")
    found, expected = join.run(left, right, threads=threads).main, streamed(join, left, right).main
    assert found.schema == expected.schema
    assert_same_rows(found, expected)
    assert found["window_end"].to_pylist() == expected["window_end"].to_pylist()
    lengths = pc.subtract(found["window_end"].cast(pa.int64()), found["window_start"].cast(pa.int64()))
    assert {23, 24, 25} <= {length // 3_600_000 for length in lengths.to_pylist()}


def test_rows_between_two_times():
    rows, times = pa.record_batch({"v": range(6)}), np.array([5, 1, 2, 9, 2, -4])
    for first, last in itertools.product([None, -9, 1, 2, 50], [None, -9, 2, 3, 50]):
        found, at = between((rows, times), first, last)
        wanted = [i for i, t in enumerate(times) if (first is None or t >= first) and (last is None or t < last)]
        assert found["v"].to_pylist() == wanted
        assert at.tolist() == times[wanted].tolist()
    neighbours, _ = between((rows, np.sort(times)), 2, 9)
    assert neighbours.column(0).buffers()[1].address == rows.column(0).buffers()[1].address
    assert between((rows[:0], times[:0]), 1, 2)[0].num_rows == 0


def test_the_share_of_a_thread_is_no_larger_than_others(monkeypatch):
    """Many rows of one input all over, and few of the other at the end: it is all of them that are divided."""
    shares = []
    joined = joinrun._joined

    def noted(plan, bound, inputs):
        inputs = list(inputs)
        shares.append(sum(len(times) for _, (_, times) in inputs))
        return joined(plan, bound, inputs)

    monkeypatch.setattr(joinrun, "_joined", noted)
    side = fw.key_by("k").event_time("ts", unit="ms")
    join = fw.window_join(side, side, WINDOWS["tumbling"])
    left = pa.table({"k": np.arange(9_000) % 7, "ts": np.arange(9_000)})
    right = pa.table({"k": np.arange(90) % 7, "ts": np.arange(8_910, 9_000)})
    join.run(left, right, threads=2)
    assert max(shares) < 0.6 * (9_000 + 90)
    assert len(shares) == 2, "by windows"


def by_key(rows, names):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row["window_end"])
    return found


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows_and_none(n):
    left, right = table(1, n, KEYS["int"][0]), table(2, 0, KEYS["int"][0])
    side = fw.key_by("k").event_time("ts")
    assert fw.window_join(side, side, WINDOWS["tumbling"], "left").run(left, right, threads=2).main.num_rows == n


def test_a_function_is_called_in_the_order_of_windows():
    called = []

    def function(key, window, left, right):
        called.append(window.end)
        if key == "bad":
            raise KeyError("no")
        yield len(left), len(right)

    side = fw.key_by("k").event_time("ts", unit="ms").bad_rows("drop")
    join = fw.co_group(side, side, WINDOWS["tumbling"], function, output="l int, r int")
    left, right = table(1, 300, KEYS["int"][0]), table(2, 170, KEYS["int"][0])
    found = join.run(left, right, threads=3).main
    assert called == sorted(called) != []
    assert_same_rows(found, streamed(join, left, right).main)
    bad = pa.table({"k": ["bad"], "ts": [1], "v": [1]})
    with pytest.raises(UserFunctionError, match="for key 'bad'"):
        join.run(bad, bad, threads=2)


def test_bad_rows_and_numbers_of_threads_are_refused():
    side = fw.key_by("k").event_time("ts", unit="ms")
    join = fw.window_join(side, side, WINDOWS["tumbling"])
    left, right = table(1, 300, KEYS["int"][0]), table(2, 170, KEYS["int"][0])
    with pytest.raises(BadRowError, match="null timestamp"):
        join.run(left, right, threads=2)
    for threads in (0, True, "2"):
        with pytest.raises(SpecError, match="threads: must be an int of at least 1"):
            join.run(left, right, threads=threads)


def test_inputs_that_do_not_fit_are_named():
    side = fw.key_by("k").event_time("ts", unit="ms")
    join, left = fw.window_join(side, side, WINDOWS["tumbling"]), table(1, 3, KEYS["int"][0])
    with pytest.raises(SpecError, match=r"run: right: .*list"):
        join.run(left, [1])
    with pytest.raises(SpecError, match="run: right: the table has no rows and does not tell the types"):
        join.run(left, pd.DataFrame(columns=["k", "ts"]))


def test_times_of_another_unit_are_warned_of_once():
    side = fw.key_by("k").event_time("ts")
    left, right = (table(seed, 300, KEYS["int"][0]).drop_columns("ts") for seed in (1, 2))
    seconds = pa.array(np.full(300, 1_790_000_000))
    tables = [one.append_column("ts", seconds) for one in (left, right)]
    with pytest.warns(UserWarning, match="the int64 times are taken for milliseconds") as told:
        fw.window_join(side, side, WINDOWS["tumbling"]).run(*tables, threads=2)
    assert len(told) == 2  # one for each input
    assert {one.filename for one in told} == {__file__}
