"""Tables run as groups give the rows of a stream, in the order of their windows; what is run so, and what is not."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.aligned import scattered
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.aligned.scattered import SliceRange
from fastwin.operators.aligned.slicing import SlidingSlicing
from fastwin.operators.batch import Batch
from fastwin.operators.protocol import Fed
from fastwin.run import bounded
from fastwin.run import threads as parallel
from fastwin.run.grouped import grouped
from fastwin.run.planner import Plan, plan
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


@pytest.mark.parametrize("whole_bytes", [1 << 30, 500])
@pytest.mark.parametrize("keys", [["k"], ["f", "c"]], ids=str)
def test_scattered_elements_are_divided_by_windows(
    keys: list[str], whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300), ("_RANGE_ROWS", 100)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part: False)
    monkeypatch.setattr(bounded, "_WHOLE_BYTES", whole_bytes)
    monkeypatch.setattr(scattered, "_SCATTERED", 20)
    asked: list[int] = []
    run_by_windows = parallel._run_by_windows

    def run(plan: Plan, pieces: list, windows: SliceRange, threads: int, pool: ThreadPoolExecutor) -> list:
        asked.append(windows.count)
        return run_by_windows(plan, pieces, windows, threads, pool)

    monkeypatch.setattr(parallel, "_run_by_windows", run)
    table, assigner = table_of(1_500, "random"), fw.TumblingEventTimeWindows.of(10, offset=-3)
    table = table.set_column(5, "t", pa.array([None, *table["t"].to_pylist()[1:]], pa.int64()))
    spec = fw.key_by(*keys).event_time("t", unit="ms").window(assigner).bad_rows("drop")
    # what came first is not kept in order, so such a spec is not divided by windows
    for aggregates, times in ((("n", "s", "lo", "m", "d"), 1), (("n", "first"), 0)):
        one = spec.aggregate(**{name: MANY[name] for name in aggregates})
        expected = rows(one.run(table))
        for threads in (2, 3, 500):
            assert sorted(map(repr, rows(one.run(table, threads=threads)))) == sorted(map(repr, expected))
            ends = one.run(table, threads=threads).main["window_end"].to_pylist()
            assert not times or ends == sorted(ends)
        assert asked == 6 * times * [121]
        asked.clear()


@pytest.mark.parametrize("late_ms", [0, 15, 300])
@pytest.mark.parametrize("days", [False, True])
def test_windows_of_one_piece_fire_there(days: bool, late_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that pieces share wait for the last of these, and all are in order."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part: True)
    table, assigner, alone = table_of(1_500, "sorted"), MINUTES, []
    times = table["t"].to_numpy() - np.random.default_rng(4).integers(0, late_ms + 1, 1_500)
    if days:
        assigner, times = fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin"), times * 8_640_000
    table = table.set_column(5, "t", pa.array(times))
    fire_alone = GroupsOperator.fire_alone

    def fire(operator: GroupsOperator, last: int, first: int) -> None:
        fire_alone(operator, last, first)
        alone.append(sum(part.num_rows for part in operator._fired))

    monkeypatch.setattr(GroupsOperator, "fire_alone", fire)
    for keys in (["k"], ["f", "c"], []):
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(assigner).aggregate(**MANY)
        expected, alone[:] = rows(spec.run(table)), []
        for threads in (2, 3):
            found = spec.run(table, threads=threads)
            assert sorted(map(repr, rows(found))) == sorted(map(repr, expected))
            ends = found.main["window_end"].to_pylist()
            assert ends == sorted(ends)
        assert not keys or len(alone) == 10
        assert not keys or (sum(alone) > len(expected) if late_ms < 100 else sum(alone) > 0)


def test_pieces_may_be_decades_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest come first, so the calendar that the operator knows does not reach back to where the watermark is."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part: True)
    table = pa.table({"k": [1] * 1_200, "t": np.arange(1_200)[::-1] * 10 * 86_400_000})
    days = fw.CalendarEventTimeWindows.of("1 day", time_zone="UTC")
    spec = fw.key_by("k").event_time("t", unit="ms").window(days).aggregate(n=fw.Count())
    assert spec.run(table, threads=2).main["n"].to_pylist() == [1] * 1_200


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("days", [False, True])
def test_rows_in_order_of_time_are_taken_window_by_window(
    days: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no operator ever holds groups of two windows, also where the next one begins with its first millisecond."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part: False)
    monkeypatch.setattr(bounded, "_CACHED_ROWS", 300)
    process, open_windows = GroupsOperator.process, []

    def count(operator: GroupsOperator, batch: Batch) -> Fed:
        fed = process(operator, batch)
        open_windows.append(len(set(operator._open_starts().tolist())))
        return fed

    monkeypatch.setattr(GroupsOperator, "process", count)
    day = 86_400_000
    times = np.repeat(np.arange(12) * 5, 100) * (day // 10 if days else 1)
    assigner = fw.CalendarEventTimeWindows.of("1 day", time_zone="UTC") if days else MINUTES
    table = pa.table({"k": np.arange(1_200) % 7, "t": times})
    spec = fw.key_by("k").event_time("t", unit="ms").window(assigner).aggregate(n=fw.Count())
    assert set(spec.run(table, threads=threads).main["n"].to_pylist()) == {28, 29}
    assert max(open_windows) == 1


@pytest.mark.parametrize(
    ("times", "most", "cuts"),
    [
        ([1, 2, 11, 12, 13, 21, 22, 23], 5, [2, 5]),
        ([1] * 8, 3, [3, 6]),
        ([], 3, []),
        ([15, 14, 13, 12, 1, 0], 4, [4]),
        ([1] * 2 + [11] * 70, 64, [64]),  # a piece of two is not worth it
        ([1] * 70 + [11] * 2, 64, [64]),
        ([1] * 20 + [11] * 20, 64, [20]),
        ([1] * 10 + [11] * 10 + [21] * 90, 64, [20, 84]),  # two small windows go together
    ],
)
def test_pieces_end_with_windows(times: list[int], most: int, cuts: list[int]) -> None:
    slicing = SlidingSlicing(10, 10, 0)
    assert scattered.cuts_between(slicing, np.array(times, np.int64), most) == cuts


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


@pytest.mark.parametrize("exact", [True, False])
def test_newest_first_is_taken_from_the_oldest_piece_on(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So windows are over, and their rows go, while others are still to come; unless the order of a sum would change."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part: False)
    held: list[int] = []
    process = GroupsOperator.process

    def fed(operator: GroupsOperator, batch: Batch) -> Fed:
        held.append(operator.state_rows)
        return process(operator, batch)

    monkeypatch.setattr(GroupsOperator, "process", fed)
    table = table_of(3_000, "newest first")
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES)
    spec = spec.aggregate(s=fw.Sum("v"), hi=fw.Max("x"), **({} if exact else {"x": fw.Sum("x")}))
    expected = sorted(map(repr, rows(spec.run(table))))
    held.clear()
    assert sorted(map(repr, rows(spec.run(table, threads=2)))) == expected
    assert len(held) == 20
    assert (max(held) < 400) == exact  # of some 2,000 groups
