"""Tables run as groups give the rows of a stream, in the order of their windows; what is run so, and what is not."""

import weakref

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.aligned import scattered
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.aligned.shares import Shares
from fastwin.operators.aligned.slicing import SlidingSlicing
from fastwin.operators.batch import Batch
from fastwin.operators.protocol import Fed
from fastwin.run import bounded, divided, ranges, sample
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
    monkeypatch.setattr("fastwin.columns.tables._SMALL_BATCH", 1)
    monkeypatch.setattr(bounded, "_CACHED_ROWS", 170)
    table = table_of(1_500, order)
    for aggregates in (MANY, {name: MANY[name] for name in ("n", "s", "lo", "m")}):
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(MINUTES).aggregate(**aggregates)
        assert grouped(plan(spec, table.schema), table.to_batches()).operator == "groups"
        stream = spec.open()
        stream.process(table)
        expected = rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
        assert rows(bounded.run(spec, table)) == expected
        with monkeypatch.context() as patch:  # all windows stay open to the end
            patch.setattr(parallel, "_OPEN", 0)
            at_once = parallel._run_at_once(plan(spec, table.schema), table)
        assert rows(at_once) == rows(spec.run(table)) == expected
        for threads, few in ((2, False), (3, False), (3, True)):
            monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2, few=few: few)
            assert sorted(map(repr, rows(spec.run(table, threads=threads)))) == sorted(map(repr, expected))


@pytest.mark.parametrize("section", [1 << 24, 400])
@pytest.mark.parametrize("keys", [["k"], ["f", "c"], ["c"]], ids=str)
def test_elements_are_divided_by_key_and_window(keys: list[str], section: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are in order; what comes first, and the last bits of a sum, are those of one thread."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    for name, value in (("_SHARE_ROWS", 60), ("_SECTION_ROWS", section)):
        monkeypatch.setattr(divided, name, value)
    monkeypatch.setattr(divided, "row_ranges", lambda *_: None)
    counts: list[int] = []
    fire_all = GroupsOperator.fire_all

    def fire(operator: GroupsOperator) -> list[pa.RecordBatch]:
        fired = fire_all(operator)
        ends = [end for part in fired for end in part.column("window_end").to_pylist()]
        assert ends == sorted(ends)
        counts.append(len(ends))
        return fired

    monkeypatch.setattr(GroupsOperator, "fire_all", fire)
    table = table_of(1_500, "random")
    table = table.set_column(5, "t", pa.array([None, *table["t"].to_pylist()[1:]], pa.int64()))
    sums = MANY | {"x": fw.Sum("x"), "one": fw.FirstArrived("x"), "word": fw.LastArrived("c")}
    for assigner in (fw.TumblingEventTimeWindows.of(10, offset=-3), MINUTES, fw.TumblingEventTimeWindows.of(2_000)):
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(assigner).bad_rows("drop").aggregate(**sums)
        expected = sorted(map(repr, rows(spec.run(table))))
        for threads in (2, 3, 40):
            counts.clear()
            found = rows(spec.run(table, threads=threads))
            assert sorted(map(repr, found)) == expected
            assert in_order(found, len(keys))
            assert sum(counts) == len(expected)
            assert len(counts) >= max(threads, 20)


def in_order(found: list[tuple], keys: int) -> bool:
    """Whether rows are in the order of their window ends."""
    ends = [row[keys + 1] for row in found]
    return ends == sorted(ends)


@pytest.mark.parametrize("late_ms", [0, 15, 300])
@pytest.mark.parametrize("days", [False, True])
def test_windows_of_one_piece_fire_there(days: bool, late_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that pieces share wait for the last of these, and all are in order."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300), ("_PIECES", 100)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: True)
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
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: True)
    table = pa.table({"k": [1] * 1_200, "t": np.arange(1_200)[::-1] * 10 * 86_400_000})
    days = fw.CalendarEventTimeWindows.of("1 day", time_zone="UTC")
    spec = fw.key_by("k").event_time("t", unit="ms").window(days).aggregate(n=fw.Count())
    assert spec.run(table, threads=2).main["n"].to_pylist() == [1] * 1_200


@pytest.mark.parametrize("days", [False, True])
def test_rows_in_order_of_time_are_taken_window_by_window(days: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So no operator ever holds groups of two windows, also where the next one begins with its first millisecond."""
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
    assert set(spec.run(table).main["n"].to_pylist()) == {28, 29}
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


@pytest.mark.parametrize("keys", [["k"], ["f", "c"], ["c"]], ids=str)
def test_windows_that_are_open_for_long_are_divided_on_one_thread(
    keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are in the order of their windows all the same, and those in order of time are not divided."""
    for name, value in (("_DIVIDED_ROWS", 10), ("_SHARE_ROWS", 60), ("_SECTION_ROWS", 700)):
        monkeypatch.setattr(divided, name, value)
    monkeypatch.setattr(sample, "SAMPLE_ROWS", 40)
    counts = divisions(monkeypatch)
    for order, times in (("random", 3), ("sorted", 0)):
        table = table_of(1_500, order)
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(MINUTES).aggregate(**MANY)
        expected = of_a_stream(spec, table)
        counts.clear()
        found = rows(spec.run(table))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        assert in_order(found, len(keys))
        assert len(counts) == times
        assert all(count > 4 for count in counts)


def divisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that is going to hold the number of shares of each division."""
    counts: list[int] = []
    batches = Shares.batches

    def told(shares: Shares) -> list[list[Batch]]:
        found = batches(shares)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Shares, "batches", told)
    return counts


def of_a_stream(spec: fw.WindowSpec, table: pa.Table) -> list[tuple]:
    stream = spec.open()
    stream.process(table)
    return rows(stream.advance_watermark(fw.MAX_TIMESTAMP))


@pytest.mark.parametrize(
    "order, most_groups, made",
    [("sorted", 30, 1), ("sorted", 60, 0), ("newest first", 130, 1), ("newest first", 190, 0)],
)
def test_windows_of_very_many_groups_are_divided_though_in_order(
    order: str, most_groups: int, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four windows of 40 keys has as many groups; where the newest come first, all are open at the end."""
    for name, value in (("_DIVIDED_ROWS", 10), ("_SHARE_ROWS", 60), ("_CACHED_GROUPS", most_groups)):
        monkeypatch.setattr(divided, name, value)
    monkeypatch.setattr(divided, "has_few_windows", lambda plan, part, least=2: False)
    counts, table = divisions(monkeypatch), table_of(1_500, order)
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(400)).aggregate(**MANY)
    found = rows(spec.run(table))
    assert found != []
    assert in_order(found, 1)
    assert sorted(map(repr, found)) == sorted(map(repr, of_a_stream(spec, table)))
    assert len(counts) == made


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("pieces", [300, 77])
@pytest.mark.parametrize("days", [False, True])
@pytest.mark.parametrize("runs", [1, 4])
def test_threads_take_the_windows_of_rows_in_order(
    threads: int, pieces: int, days: bool, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is divided, and windows that many pieces share are whole; also of several runs of ascending times."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", pieces)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    monkeypatch.setattr("fastwin.columns.tables._SMALL_BATCH", 1)
    for name, value in (("_RANGE_ROWS", 50), ("_PER_THREAD", 3)):
        monkeypatch.setattr(ranges, name, value)
    counts, fed = divisions(monkeypatch), []
    new_batches = ranges._batches
    monkeypatch.setattr(ranges, "_batches", lambda plan, parts: fed.append(len(parts)) or new_batches(plan, parts))
    table, assigner = table_of(1_500, "sorted"), fw.TumblingEventTimeWindows.of(70, offset=-3)
    table = pa.concat_tables([table.take(np.arange(run, 1_500, runs)) for run in range(runs)])
    if days:
        assigner = fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin")
        table = table.set_column(5, "t", pa.array(table["t"].to_numpy() * 1_000_000))
    sums = MANY | {"x": fw.Sum("x"), "one": fw.FirstArrived("x"), "word": fw.LastArrived("c")}
    spec = fw.key_by("c").event_time("t", unit="ms").window(assigner).aggregate(**sums)
    found = rows(spec.run(table, threads=threads))
    assert in_order(found, 1)
    assert sorted(map(repr, found)) == sorted(map(repr, of_a_stream(spec, table)))
    assert counts == []
    assert len(fed) >= 3 * threads
    assert max(fed) > 1


@pytest.mark.parametrize("order", ["random", "sorted", "newest first"])
@pytest.mark.parametrize("keys", [["k"], ["f", "c"], ["c"]], ids=str)
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_merge_what_many_rows_have_become(
    threads: int, keys: list[str], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One window of 40 keys: a 37th of the rows."""
    for name, value in (("_FEW_ROWS", 10), ("_PIECE_ROWS", 300)):
        monkeypatch.setattr(parallel, name, value)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    counts, absorbed = divisions(monkeypatch), []
    absorb = GroupsOperator.absorb

    def told(whole: GroupsOperator, other: GroupsOperator) -> list[pa.RecordBatch]:
        absorbed.append(other.counters.events)
        return absorb(whole, other)

    monkeypatch.setattr(GroupsOperator, "absorb", told)
    table = table_of(1_500, order)
    many = MANY | {"one": fw.FirstArrived("x"), "word": fw.LastArrived("c")}
    for size, merged in ((2_000, threads - 1), (100, 0)):  # the first one takes the others' rows
        assigner = fw.TumblingEventTimeWindows.of(size, offset=-300 % size)
        spec = fw.key_by(*keys).event_time("t", unit="ms").window(assigner)
        absorbed.clear()
        counts.clear()
        found = rows(spec.aggregate(**many).run(table, threads=threads))
        assert in_order(found, len(keys))
        assert sorted(map(repr, found)) == sorted(map(repr, of_a_stream(spec.aggregate(**many), table)))
        assert len(absorbed) == merged
        assert (counts == []) == (merged > 0 or order == "sorted")
        assert sum(absorbed) == (1_500 - 1_500 // threads if merged else 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_are_gone_when_they_have_been_divided(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_DIVIDED_ROWS", 10), ("_SHARE_ROWS", 60), ("_SECTION_ROWS", 700)):
        monkeypatch.setattr(divided, name, value)
    monkeypatch.setattr(divided, "row_ranges", lambda *_: None)
    monkeypatch.setattr(parallel, "_FEW_ROWS", 10)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    monkeypatch.setattr(sample, "SAMPLE_ROWS", 40)
    made, alive = [], []
    new_shares, batches = GroupsOperator.divided, Shares.batches

    def told(operator: GroupsOperator, some: list[Batch], *arguments: object) -> Shares:
        made.extend(map(weakref.ref, some))
        return new_shares(operator, some, *arguments)

    def count(shares: Shares) -> list[list[Batch]]:
        alive.append(sum(batch() is not None for batch in made))
        return batches(shares)

    monkeypatch.setattr(GroupsOperator, "divided", told)
    monkeypatch.setattr(Shares, "batches", count)
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(**MANY)
    spec.run(table_of(1_500, "random"), threads=threads)
    assert alive == [0, 0, 0]


def test_what_a_share_raises_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FEW_ROWS", "_SHARE_ROWS"):
        monkeypatch.setattr(parallel if name == "_FEW_ROWS" else divided, name, 1)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    table = pa.table({"k": np.arange(4_000) % 2_000, "t": np.arange(4_000) % 7, "v": np.full(4_000, 2**62)})
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(s=fw.Sum("v"))
    with pytest.raises(fw.AggregateOverflowError):
        spec.run(table, threads=3)


@pytest.mark.parametrize(
    "aggregate", [fw.LastArrived, fw.First, fw.Max, fw.CountDistinct], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("texts", [["", ""], ["", None]], ids=str)
def test_empty_texts_of_one_key_in_several_windows(texts: list, aggregate: type) -> None:
    """A column without a single byte is text all the same."""
    n = 2_000
    table = pa.table({"k": [1] * n, "t": np.arange(n) // 2 % 50, "v": pa.array(texts * (n // 2), pa.string())})
    table = table.append_column("x", pa.array(np.full(n, 2**40)))
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(x=fw.Max("x"), a=aggregate("v"))
    stream = spec.open()
    stream.process(table)
    assert rows(spec.run(table)) == rows(stream.advance_watermark(fw.MAX_TIMESTAMP))


def test_more_threads_than_there_are_shares() -> None:
    table = pa.table({"k": np.arange(120_000), "t": np.arange(120_000) % 7})
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(n=fw.Count())
    assert spec.run(table, threads=4_097).main.num_rows == 120_000
