"""Tables run as groups give the rows of a stream, in the order of their windows; what is run so, and what is not."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run import bounded
from fastwin.run import threads as parallel
from fastwin.run.grouped import grouped
from fastwin.run.planner import plan
from tests.support.streams import rows

MINUTES = fw.TumblingEventTimeWindows.of(10)


def table_of(n: int, order: str) -> pa.Table:
    random = np.random.default_rng(9)
    keys, times = random.integers(0, 40, n), random.integers(-300, 900, n)
    times = {"random": times, "sorted": np.sort(times), "newest first": np.sort(times)[::-1].copy()}[order]
    return pa.table(
        {
            "k": keys,
            "c": pa.array(["device-" + "x" * (key % 11) + str(key) for key in keys.tolist()]),
            "f": pa.array(np.where(keys % 3, keys / 4, -0.0)),
            "d": pa.array([f"{key}" for key in keys.tolist()]).dictionary_encode(),
            "none": pa.array(keys, mask=keys == 7),
            "t": times,
            "v": pa.array(random.integers(-9, 9, n), mask=random.random(n) < 0.1),
            "x": random.normal(size=n),
        }
    )


MANY = {"n": fw.Count(), "s": fw.Sum("v"), "lo": fw.Min("x"), "hi": fw.Max("x"), "m": fw.Mean("v")}
MANY |= {"first": fw.First("v"), "text": fw.Max("c"), "d": fw.CountDistinct("v")}


@pytest.mark.parametrize("order", ["random", "sorted", "newest first"])
@pytest.mark.parametrize("keys", [["k"], ["c"], ["f", "c"], ["k", "f"], []], ids=str)
def test_rows_and_their_order_are_those_of_a_stream(
    keys: list[str], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(bounded, "_CACHED_ROWS", 170)
    table = table_of(1_500, order)
    for aggregates in (MANY, {name: MANY[name] for name in ("n", "s", "lo", "m")}):
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(MINUTES).aggregate(**aggregates)
        assert grouped(plan(spec, table.schema), table.to_batches()).operator == "groups"
        stream = spec.open()
        stream.process(table)
        expected = rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
        assert rows(spec.run(table)) == expected
        for threads, few in ((2, False), (3, False), (3, True)):
            monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, few=few: few)
            assert sorted(map(repr, rows(spec.run(table, threads=threads)))) == sorted(map(repr, expected))


def test_what_is_not_run_as_groups() -> None:
    table = table_of(100, "sorted")
    for keys, assigner in [
        ("none", MINUTES),
        ("d", MINUTES),
        ("k", fw.SlidingEventTimeWindows.of(20, 10)),
        ("k", fw.SlidingEventTimeWindows.of(10, 20)),
        ("k", fw.EventTimeSessionWindows.with_gap(10)),
    ]:
        found = plan(fw.key_by(keys).event_time("t").window(assigner).aggregate(n=fw.Count()), table.schema)
        assert grouped(found, table.to_batches()) is found


def test_calendar_days_are_groups() -> None:
    table = pa.table({"k": [1, 1, 2], "t": pa.array([0, 90_000_000, 90_000_001], pa.timestamp("ms", "UTC"))})
    spec = fw.key_by("k").event_time("t").window(fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin"))
    spec = spec.aggregate(n=fw.Count())
    assert grouped(plan(spec, table.schema), table.to_batches()).operator == "groups"
    assert [one[3] for one in rows(spec.run(table))] == [1, 1, 1]
