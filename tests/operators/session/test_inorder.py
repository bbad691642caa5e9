"""Sessions of tables in order of time: the rows of a stream, in the order of their ends, whatever divides them."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.session import inorder
from fastwin.operators.session import operator as sessions
from fastwin.run import threads as parallel
from tests.support.variants import variants

GAP = fw.EventTimeSessionWindows.with_gap(30)
NUMBERS = {"n": fw.Count(), "s": fw.Sum("v"), "m": fw.Mean("x"), "x": fw.Sum("x"), "hi": fw.Max("x")}
WHOLE = {"n": fw.Count(), "s": fw.Sum("v"), "m": fw.Mean("v"), "lo": fw.Min("x"), "hi": fw.Max("v")}
MANY = NUMBERS | {"first": fw.First("v"), "late": fw.LastArrived("v"), "few": fw.CountDistinct("v")}
TEXTS = MANY | {"text": fw.Last("c"), "d": fw.Sum("d"), "sketch": fw.HyperLogLog("v", output="sketch")}


def table_of(n: int) -> pa.Table:
    random = np.random.default_rng(3)
    keys = random.integers(0, 40, n)
    return pa.table(
        {
            "k": keys,
            "c": pa.array(["device-" + "x" * (key % 11) + str(key) for key in keys.tolist()]),
            "t": np.sort(random.integers(-300, 3_000, n)),
            "v": pa.array(random.integers(-9, 9, n), mask=random.random(n) < 0.1),
            "x": random.normal(size=n),
            "d": pa.array(range(n)).cast(pa.decimal128(21, 2)),
        }
    )


@pytest.mark.parametrize("disorder", [0, 1, 200])
@pytest.mark.parametrize("piece", variants([7, 300, 10**6], 7, 300))
@pytest.mark.parametrize("keys", [["k"], ["c"], ["c", "k"], []], ids=str)
def test_rows_are_those_of_a_stream(
    keys: list[str], piece: int, disorder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_FEW_ROWS", 10)
    monkeypatch.setattr(inorder, "_PIECE_ROWS", piece)
    monkeypatch.setattr(inorder, "_FEW_SESSIONS", 20)
    ran: list[int] = []
    run = sessions.run_in_order
    monkeypatch.setattr(sessions, "run_in_order", lambda *given: ran.append(given[4].count) or run(*given))
    table = table_of(5_000 if disorder else 1_500)  # as many as milliseconds, so that they are put in order
    table = table.take(
        np.argsort(table["t"].to_numpy() + np.random.default_rng(1).integers(0, disorder + 1, len(table)))
    )
    names = [*keys, "window_end", "window_start"]
    for functions in (WHOLE, NUMBERS, MANY, TEXTS):
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(GAP).aggregate(**functions)
        stream = spec.open()
        stream.process(table)
        expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
        for threads in (1, 2, 3):
            found = spec.run(table, threads=threads).main
            assert found["window_end"].to_pylist() == expected["window_end"].to_pylist(), (functions, threads)
            order = [(name, "ascending") for name in names]
            assert found.sort_by(order).equals(expected.sort_by(order))
    # Text is not divided among threads; without keys there is one thread. Out of order, keys have to be numbers, and
    # what has arrived last is not divided.
    threads_of = {True: [1, 2, 3, 1, 2, 3, 1, 2, 3, 1], False: 12 * [1]}[bool(keys)]
    if disorder:
        threads_of = {"k": [1, 2, 3, 1, 2, 3, 1, 1], "": 12 * [1]}.get("".join(keys), [])
    assert ran == threads_of


@pytest.mark.parametrize("threads", [2, 3, 7, 60])
@pytest.mark.parametrize("key", ["k", "c"])
@pytest.mark.parametrize(("step", "gap"), [(1, 3), (1, 40), (5, 200), (1, 10**6), (7, 1), (0, 5)])
def test_sessions_reach_across_parts_of_the_time(
    step: int, gap: int, key: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread begins where others have sessions open; some last as long as all parts, some touch the next one."""
    monkeypatch.setattr(parallel, "_FEW_ROWS", 1)
    monkeypatch.setattr(inorder, "_PIECE_ROWS", 9)
    monkeypatch.setattr(inorder, "_FEW_SESSIONS", 3)
    table = table_of(240)
    random = np.random.default_rng(gap)
    times = np.cumsum(random.integers(0, step + 1, 240) * random.choice([1, 1, 1, 1, 30], 240))
    table = table.set_column(2, "t", pa.array(times))
    spec = fw.key_by(key).event_time("t", unit="ms").window(fw.EventTimeSessionWindows.with_gap(gap)).aggregate(**WHOLE)
    stream = spec.open()
    stream.process(table)
    expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    found = spec.run(table, threads=threads).main
    assert found["window_end"].to_pylist() == expected["window_end"].to_pylist()
    order = [(name, "ascending") for name in (key, "window_start")]
    assert found.sort_by(order).equals(expected.sort_by(order))
    assert spec.run(table.slice(0, 0), threads=threads).main.num_rows == 0


@pytest.mark.parametrize(("last", "sessions"), [(130, 1), (131, 2)])
def test_a_session_that_touches_the_next_part(last: int, sessions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_FEW_ROWS", 1)
    table = pa.table({"k": [1] * 4, "t": [70, 100, last, last]})
    spec = fw.key_by("k").event_time("t", unit="ms").window(GAP).aggregate(n=fw.Count())
    assert spec.run(table, threads=2).main["n"].to_pylist() == ([4] if sessions == 1 else [2, 2])


def test_what_is_not_run_so(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(200)
    monkeypatch.setattr(sessions, "run_in_order", lambda *given: pytest.fail("it was"))
    spoilt = table.set_column(2, "t", table["t"].take(list(range(199, -1, -1))))
    nulls = table.set_column(0, "k", pa.array([None, *table["k"].to_pylist()[1:]]))
    coded = table.set_column(1, "c", table["c"].dictionary_encode())
    for one, key in ((spoilt, "k"), (nulls, "k"), (coded, "c")):
        fw.key_by(key).event_time("t", unit="ms").window(GAP).aggregate(n=fw.Count()).run(one)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.filterwarnings("ignore:event_time .t.")  # in nanoseconds, the last ones would be in 2043
@pytest.mark.parametrize("times", [[-(2**61), 1 - 2**61], [2**61 - 100, 2**61 - 1, 2**61]], ids=["first", "last"])
def test_the_limits_of_time(times: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_FEW_ROWS", 1)
    table = pa.table({"k": list(range(len(times))), "t": times})
    found = fw.key_by("k").event_time("t").window(GAP).aggregate(n=fw.Count()).run(table, threads=threads).main
    assert found["window_end"].cast("int64").to_pylist() == [time + 30 for time in times]
    assert found["n"].to_pylist() == [1] * len(times)


def test_an_error_of_a_result_is_raised() -> None:
    table = pa.table({"k": [1] * 20, "t": range(20), "v": [2**62] * 20})
    spec = fw.key_by("k").event_time("t", unit="ms").window(GAP).aggregate(s=fw.Sum("v"))
    with pytest.raises(fw.AggregateOverflowError):
        spec.run(table)
