"""spec.run on several threads: the rows of one."""

import threading
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.operators.aligned.calendarslicing import CalendarSlicing
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.batch import Batch
from fastwin.operators.protocol import Fed
from fastwin.run import threads as parallel
from fastwin.run.bounded import run
from fastwin.run.fresh import new_operator
from fastwin.run.planner import Plan, plan
from fastwin.run.sample import Part
from fastwin.windows.bounds import Bounds

WINDOWS = [
    fw.TumblingEventTimeWindows.of(100),
    fw.SlidingEventTimeWindows.of(300, 40),
    fw.CumulativeEventTimeWindows.of(400, 100),
    fw.EventTimeSessionWindows.with_gap(30),
]
KEYS = ["int", "text", "dictionary", "float"]


def table_of(rows: int) -> pa.Table:
    random = np.random.default_rng(8)
    keys = random.integers(0, 50, rows)
    texts = pa.array([f"key {key}" if key else None for key in keys.tolist()])
    return pa.table(
        {
            "int": pa.array(keys, mask=keys == 3),
            "text": texts,
            "dictionary": texts.dictionary_encode(),
            "float": pa.array(np.where(keys % 2, keys / 7, -0.0)),
            "t": np.sort(random.integers(0, 3_000, rows)),
            "v": pa.array(random.integers(-9, 9, rows), mask=keys == 5),
        }
    )


def spec_of(assigner: fw.WindowAssigner, *keys: str) -> fw.WindowSpec:
    spec = fw.key_by(*keys).event_time("t").window(assigner)
    return spec.aggregate(n=fw.Count(), s=fw.Sum("v"), lo=fw.Min("v"), m=fw.Mean("v"))


def rows_of(result: fw.Result) -> list:
    return sorted(map(repr, result.main.to_pylist()))


@pytest.fixture(autouse=True)
def few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_FEW_ROWS", 10)
    monkeypatch.setattr(parallel, "_PIECE_ROWS", 300)
    monkeypatch.setattr(parallel, "_KEYED_ROWS", 250)
    monkeypatch.setattr("fastwin.columns.tables._SMALL_BATCH", 1)


@pytest.fixture(params=[True, False], ids=["by pieces", "by keys"])
def divided(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: request.param)


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("assigner", WINDOWS, ids=str)
@pytest.mark.parametrize("keys", [*([key] for key in KEYS), ["text", "int"], []], ids=str)
def test_rows_are_those_of_one_thread(assigner: fw.WindowAssigner, keys: list[str]) -> None:
    spec, table = spec_of(assigner, *keys), table_of(2_000)
    chunked = pa.concat_tables([table.slice(0, 700), table.slice(700)])
    one = run(spec, table)
    for threads in (2, 3, 60):
        many = spec.run(chunked, threads=threads)
        assert many.main.schema == one.main.schema
        assert rows_of(many) == rows_of(one)
        assert many.late.num_rows == many.bad.num_rows == 0


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("assigner", WINDOWS, ids=str)
def test_all_outputs_are_there(assigner: fw.WindowAssigner) -> None:
    spec = spec_of(assigner, "int").side_output("x", "a bigint").side_output_late_data().with_window_time()
    one, many = (spec.run(table_of(1_000), threads=threads) for threads in (1, 2))
    assert many.side == one.side == {"x": pa.table({"a": pa.array([], pa.int64())})}
    assert (many.main.schema, many.late, many.bad, many.source) == (one.main.schema, one.late, one.bad, one.source)


def test_bad_rows_are_told_by_their_place_in_the_input() -> None:
    table = table_of(1_000).set_column(4, "t", pa.array([None if i == 777 else i for i in range(1_000)], pa.int64()))
    spec = spec_of(WINDOWS[0], "int")
    with pytest.raises(fw.BadRowError, match="row 777"):
        spec.run(table, threads=4)
    diverted = spec.bad_rows("divert").run(table, threads=4)
    assert diverted.bad.num_rows == 1
    dropped = [spec.bad_rows("drop").run(table, threads=threads) for threads in (1, 4)]
    assert rows_of(diverted) == rows_of(dropped[0])
    assert [one.bad_dropped for one in dropped] == [1, 1]
    assert "bad_dropped: 1 rows" in repr(dropped[0])


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("assigner", [*WINDOWS, fw.SlidingEventTimeWindows.of(100, 1_000)], ids=str)
@pytest.mark.parametrize("bad", [slice(0, 700), slice(900, 2_000), slice(0, 2_000)], ids=["first", "last", "all"])
def test_pieces_of_bad_rows_only(assigner: fw.WindowAssigner, bad: slice) -> None:
    mask = np.zeros(2_000, np.bool_)
    mask[bad] = True
    table = table_of(2_000)
    table = table.set_column(4, "t", pa.array(table["t"].to_numpy(), mask=mask))
    spec = spec_of(assigner, "text").bad_rows("divert")
    one, many = run(spec, table), spec.run(table, threads=3)
    assert rows_of(many) == rows_of(one)
    assert many.bad.equals(one.bad)
    for threads in (1, 3):
        with pytest.raises(fw.BadRowError, match=f"row {bad.start} .*; {mask.sum()} of 2000 rows are bad"):
            spec.bad_rows("raise").run(table, threads=threads)


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")], ids=str)
@pytest.mark.parametrize("row", [0, 299, 300, 1_234, 1_999])
@pytest.mark.parametrize("time", [-(2**62), 9_000, 300_000_000_000_000, 2**62])
def test_a_time_beyond_the_limits_in_any_piece(kind: pa.DataType, row: int, time: int) -> None:
    table = table_of(2_000)
    times = table["t"].to_numpy() * (pa.scalar(1, pa.timestamp("ms")).cast(kind).value if kind != pa.int64() else 1)
    times[row] = time if kind != pa.timestamp("ns") else max(time, 0) % 2**61
    table = table.set_column(4, "t", pa.array(times, kind))
    spec = spec_of(WINDOWS[0], "float").bad_rows("divert")
    one, many = run(spec, table), spec.run(table, threads=3)
    order = [("window_start", "ascending"), ("float", "ascending")]
    assert many.main.sort_by(order).equals(one.main.sort_by(order))
    assert spec.run(table).main.equals(one.main)
    assert spec.run(table).bad.equals(one.bad)
    assert many.bad.equals(one.bad)
    if kind == pa.timestamp("ms"):
        assert one.bad.num_rows == (time != 9_000), "no year from 1 to 9999"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("row", [0, 1_234])
@pytest.mark.parametrize("time", [None, 2**60])
def test_an_expression_is_not_asked_of_a_bad_row(threads: int, row: int, time: int | None) -> None:
    table = table_of(2_000)
    times, divisors = table["t"].to_pylist(), np.ones(2_000, np.int64)
    times[row], divisors[row] = time, 0
    table = table.set_column(4, "t", pa.array(times, pa.timestamp("ms"))).append_column("d", pa.array(divisors))
    sums = fw.Sum(pc.divide(pc.field("v"), pc.field("d")))
    spec = fw.key_by("float").event_time("t").window(WINDOWS[0]).aggregate(s=sums)
    assert spec.bad_rows("drop").run(table, threads=threads).main.num_rows > 500
    assert spec.bad_rows("divert").run(table, threads=threads).bad.num_rows == 1
    with pytest.raises(fw.BadRowError, match=f"row {row} "):
        spec.run(table, threads=threads)


def test_windows_stay_open_on_one_thread_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    told, taken = parallel._run_at_once, []

    def tell(plan: Plan, table: pa.Table) -> fw.Result | None:
        taken.append(told(plan, table))
        return taken[-1]

    monkeypatch.setattr(parallel, "_run_at_once", tell)
    spec = spec_of(WINDOWS[0], "int")
    for keys, few in ((6, True), (7, False)):  # of 100 elements a window
        table = pa.table({"int": np.arange(2_000) % keys, "t": np.arange(2_000), "v": np.arange(2_000)})
        assert rows_of(spec.run(table)) == rows_of(run(spec, table))
        assert (taken.pop() is not None) == few
    dense = np.arange(2_000) % 3
    dense[:600] = np.arange(600)  # the middle, which the sample is of, is like none of the first
    table = pa.table({"int": dense, "t": np.arange(2_000), "v": dense})
    monkeypatch.setattr("fastwin.run.sample.SAMPLE_ROWS", 300)
    assert rows_of(spec.run(table)) == rows_of(run(spec, table))
    assert taken.pop() is None
    monkeypatch.setattr(parallel, "_OPEN_ROWS", 1_999)
    spec.run(table)
    assert not taken


CALENDAR = fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin")
MANY = {
    "n": fw.Count(), "s": fw.Sum("v"), "m": fw.Mean("v"), "x": fw.Min("float"), "first": fw.First("text"),
    "last": fw.Last("v"), "latest": fw.ArgMax("text", "v"), "all": fw.Collect("v"), "distinct": fw.CountDistinct("v"),
    "sketch": fw.HyperLogLog("v", output="sketch"), "half": fw.Quantile("v", 0.5), "top": fw.TopK("v", 3),
}  # fmt: skip


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("order", ["sorted", "random", "newest first"])
@pytest.mark.parametrize("assigner", [*WINDOWS[:3], fw.SlidingEventTimeWindows.of(100, 400), CALENDAR], ids=str)
def test_what_came_first_is_the_same(assigner: fw.WindowAssigner, order: str) -> None:
    """Each thread numbers what arrives from 0 on."""
    table = table_of(2_000)
    table = table.set_column(4, "t", pc.subtract(table["t"], pa.array(table["t"].to_numpy() % 20)))  # many at a time
    if assigner is CALENDAR:
        table = table.set_column(4, "t", pc.multiply(table["t"], pa.scalar(80_000_000)))
    places = {"sorted": np.arange(2_000), "newest first": np.arange(1_999, -1, -1)}
    table = table.take(places.get(order, np.random.default_rng(3).permutation(2_000)))
    spec = fw.key_by("text").event_time("t", unit="ms").window(assigner).aggregate(**MANY)
    assert rows_of(spec.run(table, threads=3)) == rows_of(spec.run(table))


def test_a_slow_thread_takes_no_slices_from_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread looks for the bounds of a decade, until another one knows those of all times, and goes on last."""
    times = np.full(600, 1_000_000_000_000) + np.arange(600) * 86_400_000  # from 2001 on
    decades = 30 * 366 * 86_400_000
    times[100:107] += decades  # in the middle of a piece, so that only who looks at all of it sees them
    times[400:407] -= decades
    random = np.random.default_rng(8)
    table = pa.table({"int": np.arange(600) % 7, "t": times, "v": random.integers(-9, 9, 600)})
    spec = fw.key_by("int").event_time("t", unit="ms").window(CALENDAR).aggregate(n=fw.Count(), s=fw.Sum("v"))
    expected, latest = rows_of(spec.run(table)), times.max()
    look, cover, process = CALENDAR.__class__.bounds_with, CalendarSlicing.cover, GroupsOperator.process
    slow: list[threading.Thread] = []
    wide, narrow, fed = threading.Event(), threading.Event(), threading.Event()

    def slow_bounds(windows: fw.CalendarEventTimeWindows, known: Bounds, times: np.ndarray) -> Bounds:
        found = look(windows, known, times)
        if threading.current_thread() is not threading.main_thread() and not slow:
            slow.append(threading.current_thread())
            assert wide.wait(20)
        return found

    def slow_cover(slicing: CalendarSlicing, times: np.ndarray) -> None:
        cover(slicing, times)
        if slow and threading.current_thread() is not slow[0] and times.max() == latest:
            wide.set()
            assert narrow.wait(20)
        elif slow and threading.current_thread() is slow[0]:
            narrow.set()
            assert fed.wait(20)

    def told_process(operator: GroupsOperator, batch: Batch) -> Fed:
        try:
            return process(operator, batch)
        finally:
            if batch.times.max() == latest:
                fed.set()

    monkeypatch.setattr(GroupsOperator, "process", told_process)
    monkeypatch.setattr(CALENDAR.__class__, "bounds_with", slow_bounds)
    monkeypatch.setattr(CalendarSlicing, "cover", slow_cover)
    monkeypatch.setattr(parallel, "has_few_windows", lambda plan, part, least=2: False)
    assert rows_of(spec.run(table, threads=2)) == expected
    assert not slow  # all bounds are known before threads begin


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("gap", [3_000, 10**7], ids=["few windows", "more than 16 bits number"])
@pytest.mark.parametrize("assigner", [*WINDOWS[:3], fw.SlidingEventTimeWindows.of(300, 300)], ids=str)
def test_elements_that_jump_between_windows(
    assigner: fw.WindowAssigner, gap: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are put in order of their windows first, and are the rows of a stream all the same."""
    monkeypatch.setattr("fastwin.operators.aligned.scattered._SCATTERED", 5)
    monkeypatch.setattr("fastwin.run.bounded._CACHED_ROWS", 170)
    monkeypatch.setattr("fastwin.run.bounded.has_few_windows", lambda plan, part, least=2: False)
    random = np.random.default_rng(5)
    table = table_of(2_000)
    times = random.integers(-gap, gap, 2_000)
    table = table.set_column(4, "t", pa.array(times)).append_column("f", pa.array(random.normal(size=2_000)))
    spec = fw.key_by("int").event_time("t", unit="ms").window(assigner)
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("f"), x=fw.StdDev("f"), h=fw.Max("v"))
    stream = spec.open()
    stream.process(pa.concat_tables([table.slice(0, 900), table.slice(900)]))
    expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    found = spec.run(pa.concat_tables([table.slice(0, 900), table.slice(900)]), threads=threads).main
    if threads == 1:
        assert found["window_end"].to_pylist() == expected["window_end"].to_pylist()
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_that_would_be_too_large_in_one_piece_are_not_joined(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of more than 2 GiB does not fit in one array."""
    table = table_of(2_000)
    table = table.set_column(4, "t", pa.array(np.random.default_rng(5).integers(0, 10**6, 2_000)))
    spec = fw.key_by("int").event_time("t", unit="ms").window(WINDOWS[0]).aggregate(h=fw.HyperLogLog("text"))
    one = rows_of(spec.run(table))
    chunked = pa.concat_tables([table.slice(0, 700), table.slice(700)])

    def refuse(*_: object) -> None:
        raise AssertionError("joined")

    monkeypatch.setattr("fastwin.operators.aligned.scattered._SCATTERED", 5)
    monkeypatch.setattr("fastwin.run.bounded._WHOLE_BYTES", 500)
    monkeypatch.setattr("fastwin.run.bounded._joined", refuse)
    assert rows_of(spec.run(chunked, threads=threads)) == one


def test_elements_in_order_stay_as_they_come() -> None:
    times = np.arange(0, 10**6, 100)
    operator = new_operator(plan(spec_of(WINDOWS[0], "int"), table_of(1).schema))
    assert operator.order_of(times) is None
    assert operator.order_of(times.reshape(2, -1).T.ravel()) is not None


@pytest.mark.parametrize(("keys", "few"), [(3, True), (500, False)])
def test_few_windows_are_told_from_many(keys: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    told = parallel.has_few_windows

    def ask(plan: Plan, part: Part, least: int = 2) -> bool:
        asked.append(told(plan, part, least))
        return asked[-1]

    monkeypatch.setattr(parallel, "has_few_windows", ask)
    table = pa.table({"int": np.arange(2_000) % keys, "t": np.arange(2_000), "v": np.arange(2_000)})
    spec_of(WINDOWS[0], "int").run(table, threads=2)
    assert asked == [few]


@pytest.mark.parametrize("keys", [["int"], ["dictionary"]], ids=str)
def test_sessions_of_more_rows_than_are_run_at_once(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec, table = spec_of(WINDOWS[3], *keys), table_of(2_000)
    one = rows_of(spec.run(table))
    monkeypatch.setattr("fastwin.run.bounded._WHOLE_ROWS", 500)
    assert rows_of(spec.run(table, threads=3)) == one


@pytest.mark.parametrize("text_rows", [7, 2**18])
@pytest.mark.parametrize("part", [1, 40, 10**6])
@pytest.mark.parametrize("keys", [["int"], ["text", "int"]], ids=str)
def test_sessions_made_in_parts_are_those_of_a_stream(
    keys: list[str], part: int, text_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the results are stored as, and in the order of their ends."""
    monkeypatch.setattr("fastwin.operators.session.operator.PART_ELEMENTS", part)
    monkeypatch.setattr("fastwin.operators.session.placedresults._TEXT_ROWS", text_rows)
    table = table_of(1_500).append_column("d", pa.array(range(1_500)).cast(pa.decimal128(21, 2)))
    functions = {
        "n": fw.Count(), "s": fw.Sum("v"), "m": fw.Mean("v"), "d": fw.Sum("d"), "x": fw.Min("float"),
        "first": fw.First("text"), "last": fw.Last("v"),
        "sketch": fw.HyperLogLog("v", output="sketch"),
    }  # fmt: skip
    spec = fw.key_by(*keys).event_time("t").window(WINDOWS[3]).aggregate(**functions)
    stream = spec.open()
    stream.process(table)
    expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    order = [("window_end", "ascending"), ("window_start", "ascending"), *((key, "ascending") for key in keys)]
    for threads in (1, 2, 5):
        found = spec.run(table, threads=threads).main
        assert found["window_end"].to_pylist() == expected["window_end"].to_pylist()
        assert found.sort_by(order).equals(expected.sort_by(order))


def test_overflow_is_raised_from_a_thread() -> None:
    table = pa.table({"int": [1] * 20, "t": range(20), "v": [2**62] * 20})
    with pytest.raises(fw.AggregateOverflowError):
        spec_of(WINDOWS[0], "int").run(table, threads=2)
    with pytest.raises(fw.AggregateOverflowError):
        spec_of(WINDOWS[3], "int").run(table, threads=2)


def test_few_rows_and_the_general_operator_run_on_one() -> None:
    spec = spec_of(WINDOWS[0], "int")
    assert rows_of(spec.run(table_of(5), threads=4)) == rows_of(spec.run(table_of(5)))
    custom = spec.trigger(fw.CountTrigger.of(3))
    assert rows_of(custom.run(table_of(300), threads=4)) == rows_of(custom.run(table_of(300)))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, None])
def test_threads_are_at_least_one(threads: object) -> None:
    with pytest.raises(fw.SpecError, match="threads"):
        spec_of(WINDOWS[0], "int").run(table_of(5), threads=threads)


FRAMES = {
    "no types": lambda: pd.DataFrame({"int": [], "t": [], "v": []}),
    "made-up types": lambda: pd.DataFrame(np.empty((0, 3)), columns=["int", "t", "v"]),
    "types": lambda: table_of(0).to_pandas(),
    "rows": lambda: table_of(5).to_pandas(),
    "a reader that is read once": lambda: table_of(5).to_reader(),
    "an empty reader": lambda: table_of(0).to_reader(),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_few_rows_of_any_frame_are_what_they_are_on_one_thread(frame: Callable) -> None:
    one, many = (spec_of(WINDOWS[0], "int").run(frame(), threads=threads) for threads in (1, 2))
    assert many.main.equals(one.main)
    assert many.bad.schema == one.bad.schema
    assert many.late.schema == one.late.schema


def test_the_first_of_rows_without_order_is_the_earliest_one_also_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.run.bounded._WHOLE_BYTES", 500)
    table = table_of(2_000)
    table = table.set_column(table.column_names.index("t"), "t", pa.array(range(2_000, 0, -1)))
    spec = fw.key_by("int").event_time("t").window(WINDOWS[0]).allowed_lateness(0, coalesce=True).deduplicate()
    found = spec.run(table, threads=3)
    assert rows_of(found) == rows_of(spec.run(table))
    first = table.group_by(["int"]).aggregate([("t", "min")]).select(["int", "t_min"]).to_pydict().values()
    assert set(zip(*first, strict=True)) <= set(zip(*found.main.select(["int", "t"]).to_pydict().values(), strict=True))
