"""Deduplicate and top: what comes out of small tables, which operator runs, and what is refused."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
import fastwin.testing
from fastwin.errors import SpecError, StateError
from fastwin.run.planner import plan

START = fw.key_by("k").event_time("ts")
BASE = START.window(fw.TumblingEventTimeWindows.of(10))
TABLE = pa.table(
    {
        "k": ["a", "a", "b", "a"],
        "ts": pa.array([1, 4, 3, 12], pa.timestamp("ms")),
        "v": pa.array([1.0, float("nan"), None, 2.0]),
        "more": [{"x": [1]}, {"x": []}, None, {"x": [2, 3]}],
        "text": pa.array(["p", "q", None, "p"]).dictionary_encode(),
    }
)


SMALL = [pa.array(np.array([1, 3, -2, 0], np.float16))]
SMALL += [
    pa.array([Decimal(text) for text in ("1.5", "3.25", "-2", "0")], make(5, 2))
    for make in (getattr(pa, name, None) for name in ("decimal32", "decimal64"))
    if make is not None
]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_null_is_behind_nan_either_way(first):
    """Also in versions of Arrow that rank them alike."""
    values = [None, float("nan"), 1.0]
    values = values[first:] + values[:first]
    table = pa.table({"k": [1] * 3, "ts": [1, 2, 3], "by": values})
    for ascending, order in ((False, ["nan", "1.0", "None"]), (True, ["1.0", "nan", "None"])):
        for n in (1, 2, 3):
            found = BASE.top(n, by="by", ascending=ascending).run(table).main["by"].to_pylist()
            assert list(map(str, found)) == order[:n]


@pytest.mark.parametrize("values", SMALL, ids=lambda values: str(values.type))
@pytest.mark.parametrize("windows", [BASE, START.window(fw.EventTimeSessionWindows.with_gap(10))])
def test_small_floats_and_decimals_are_ranked(windows, values):
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    table = pa.table({"k": [1] * 5, "ts": [1, 2, 3, 4, 5], "by": values})
    for ascending, order in ((False, [1, 0, 3, 2, 4]), (True, [2, 3, 0, 1, 4])):
        found = windows.top(5, by="by", ascending=ascending).run(table).main["by"].combine_chunks()
        assert found.equals(values.take(pa.array(order)))


@pytest.mark.parametrize(
    ("spec", "operator"),
    [
        (BASE.deduplicate(), "firsts"),
        (START.deduplicate(within=10), "firsts"),
        (BASE.deduplicate("last"), "rows"),
        (BASE.top(1, by="v"), "rows"),
        (BASE.trigger(fw.CountTrigger.of(1)).top(1, by="v"), "general"),
        (BASE.with_pane_info().deduplicate("last"), "general"),
    ],
)
def test_all_columns_come_back(spec, operator):
    assert plan(spec, TABLE.schema).operator == operator
    assert f"operator: {operator}" in spec.explain()
    main = spec.run(TABLE).main
    assert [name for name in main.column_names if name != "rank" and "pane" not in name] == [
        "k", "window_start", "window_end", "ts", "v", "more", "text",
    ]  # fmt: skip
    assert main["text"].type == pa.string()
    assert main["more"].type == TABLE["more"].type
    by_time = {row["ts"]: row["more"] for row in TABLE.to_pylist()}
    assert all(row["more"] == by_time[row["ts"]] for row in main.to_pylist())


def test_many_threads_and_pieces_give_the_same():
    n = 300_000
    table = pa.table({"k": [i % 7 for i in range(n)], "ts": [i // 3 for i in range(n)], "v": list(range(n))})
    for spec in (BASE.deduplicate(), BASE.deduplicate("last"), BASE.top(2, by="v")):
        one, two = (spec.run(table, threads=threads).main.sort_by([(c, "ascending") for c in ("k", "ts", "v")])
                    for threads in (1, 2))  # fmt: skip
        assert one.equals(two)
        assert one.num_rows == 7 * (n // 30) * (2 if "rank" in one.column_names else 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("within", [None, 10_000])
def test_rows_without_order_are_in_order_of_time_in_a_large_run(within, threads):
    n = 600_000
    times = np.full(n, 1_000)
    times[-1] = 0
    table = pa.table({"k": np.zeros(n, np.int64), "ts": times, "i": np.arange(n)})
    start = (START.window(fw.TumblingEventTimeWindows.of(2_000)) if within is None else START).allowed_lateness(
        "0 s", coalesce=True
    )
    spec = start.deduplicate(within=within)
    assert spec.open().process(table).main["i"].to_pylist() == [n - 1]
    assert spec.run(table, threads=threads).main["i"].to_pylist() == [n - 1]


def test_first_rows_are_handed_out_at_once():
    stream = BASE.deduplicate().open()
    assert stream.process(TABLE).main["ts"].cast(pa.int64()).to_pylist() == [1, 3, 12]
    assert stream.process(TABLE).main.num_rows == 0
    assert stream.advance_watermark(9).main.num_rows == 0
    assert stream.metrics.state_rows == 1


def test_restored_first_rows_tell_their_calendar_windows():
    spec = START.window(fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin")).deduplicate("first")
    table = pa.table({"k": ["a", "b", "a"], "ts": pa.array([2**40, 2**40 + 1, 2**41], pa.timestamp("ms"))})
    stream, again = (spec.open(schema=table.schema) for _ in range(2))
    stream.process(table)
    again.restore([stream.snapshot()])
    told, wanted = (
        one.inspect().sort_by([("k", "ascending"), ("window_start", "ascending")]) for one in (again, stream)
    )
    assert told.equals(wanted)
    assert told.num_rows == 3


def test_state_of_top_is_bounded():
    stream = START.window(fw.TumblingEventTimeWindows.of(1_000)).top(2, by="v").open()
    for i in range(20):
        stream.process(pa.table({"k": ["a"] * 1_000, "ts": [1] * 1_000, "v": [float(i)] * 1_000}))
    assert stream.metrics.state_rows < 10_000
    stream.snapshot()
    assert stream.metrics.state_rows == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BASE.deduplicate("any"), "deduplicate: keep must be 'first' or 'last', got 'any'"),
        (lambda: START.deduplicate("last", within=10), "within= goes with keep='first' only"),
        (lambda: BASE.deduplicate(within=10), "within= takes the place of windows"),
        (lambda: START.deduplicate(within=0), "within must be at least 1 ms, got within=0"),
        (lambda: START.deduplicate(), "incomplete without .window(assigner), or within="),
        (lambda: START.trigger(fw.NeverTrigger()).deduplicate(within=9), "no trigger, evictor or pane info"),
        (lambda: START.window(fw.EventTimeSessionWindows.with_gap(9)).deduplicate(), "hands rows out at once"),
        (lambda: BASE.trigger(fw.CountTrigger.of(2)).deduplicate(), "without trigger, evictor and pane info"),
        (lambda: fw.testing.WindowHarness(BASE.deduplicate(), TABLE.schema), "does not run on the general operator"),
        (lambda: BASE.deduplicate().panes(), "panes: deduplicate goes with no panes"),
        (lambda: BASE.deduplicate("last").panes(), "panes: deduplicate goes with no panes"),
        (lambda: BASE.top(1, by="v").panes(), "panes: top goes with no panes"),
        (lambda: BASE.reduce(max).panes(), "panes: reduce goes with no panes"),
        (lambda: BASE.trigger(fw.CountTrigger.of(2)).top(1, by="v").panes(), "panes: CountTrigger goes with no panes"),
        (lambda: BASE.top(0, by="v"), "top: n must be an int of at least 1, got 0"),
        (lambda: BASE.top(1, by=""), "top: by must be the name of a column, got ''"),
        (lambda: BASE.top(1, by="v", ascending=1), "top: ascending must be True or False, got 1"),
        (lambda: BASE.top(1, by="w").run(TABLE), "top: by: there is no column 'w'"),
        (lambda: BASE.top(1, by="k").run(TABLE), "top: by: 'k' is a key column"),
        (lambda: BASE.top(1, by="more").run(TABLE), "which has no order"),
        (lambda: BASE.top(1, by="v").run(TABLE.append_column("rank", TABLE["v"])), "adds the column 'rank'"),
        (lambda: BASE.deduplicate().run(TABLE.append_column("window_end", TABLE["v"])), "'window_end'"),
    ],
)
def test_what_does_not_go_is_refused(make, said):
    with pytest.raises(SpecError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("n", [3, 20])
def test_bytes_of_one_size_are_ranked_as_bytes_are(general, n):
    bytes_of = [b"\xff\x01", None, b"ab", b"aa", b"\x00\xff", b"ab", None]
    rows = pa.table({"k": ["a"] * 7, "ts": range(7), "v": pa.array(bytes_of, pa.binary()), "row": range(7)})
    sized = rows.set_column(2, "v", rows["v"].cast(pa.binary(2)))
    for ascending in (True, False):
        found = []
        for table in (rows, sized):
            spec = BASE.with_pane_info() if general else BASE
            stream = spec.top(n, by="v", ascending=ascending).open()
            stream.process(table[4:])
            stream.process(table[:4])
            found.append(stream.advance_watermark(fw.MAX_TIMESTAMP).main.select(["rank", "v", "row"]).to_pylist())
        assert found[0] == found[1]
        assert found[0][0]["v"] == (b"\x00\xff" if ascending else b"\xff\x01")


def test_state_of_other_columns_is_refused():
    spec = BASE.top(1, by="v")
    stream = spec.open()
    stream.process(TABLE)
    other = spec.open(schema=TABLE.drop_columns(["more"]).schema)
    with pytest.raises(StateError, match="windows held rows of"):
        other.restore(stream.snapshot())


@pytest.mark.parametrize("coalesce", [True, False])
def test_a_row_of_windows_that_have_passed_goes_before_rows_behind_it(coalesce: bool) -> None:
    """It is in windows that have fired and in some that have not: among these it is still the first of two that tie."""
    windows = fw.CumulativeEventTimeWindows.of(120, 30)
    spec = fw.key_by("k").event_time("ts").window(windows).allowed_lateness(60, coalesce=coalesce).top(1, by="v")
    stream = spec.open()
    stream.process(pa.table({"k": [0], "ts": [35], "id": [0], "v": [0]}))
    stream.advance_watermark(31)
    again = stream.process(pa.table({"k": [1, 1], "ts": [11, 39], "id": [1, 2], "v": [5, 5]})).main
    results = pa.concat_tables([again, stream.advance_watermark(1_000).main])
    assert set(results.filter(pc.equal(results["k"], 1))["id"].to_pylist()) == {1}


@pytest.mark.parametrize(
    ("column", "asked"),
    [
        ("window_start", lambda spec: spec),
        ("window_time", lambda spec: spec.with_window_time()),
        ("pane_index", lambda spec: spec.with_pane_info()),
        ("pane_timing", lambda spec: spec.with_pane_info()),
        ("pane_is_last", lambda spec: spec.with_pane_info()),
    ],
)
@pytest.mark.parametrize(
    "ending", [lambda s: s.top(1, by="v"), lambda s: s.deduplicate("last"), lambda s: s.reduce(lambda a, b: a)]
)
def test_a_column_that_the_result_adds_is_refused_in_rows_of_the_input(column, asked, ending) -> None:
    windows = fw.TumblingEventTimeWindows.of(10)
    spec = ending(asked(fw.key_by("k").event_time("ts").window(windows)))
    with pytest.raises(fw.SpecError, match=f"adds the column '{column}', which the input has"):
        fw.plan(spec, pa.schema([(name, pa.int64()) for name in ("k", "ts", "v", column)]))


@pytest.mark.parametrize(
    "spec",
    [
        BASE.top(1, by="v"),
        BASE.deduplicate("last"),
        BASE.aggregate(v=fw.Max("v")),
        BASE.aggregate(v=fw.Collect("v")),
        BASE.trigger(fw.CountTrigger.of(9)).evictor(fw.CountEvictor.of(9)).aggregate(v=fw.Last("v")),
    ],
    ids=["top", "last", "aggregate", "list", "evictor"],
)
@pytest.mark.parametrize("batches", [1, 2, 5])
def test_a_caller_may_fill_its_memory_anew(spec, batches):
    keys, times, values = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4)
    stream = spec.open()
    given = []
    for number in range(batches):
        keys[:], times[:], values[:] = np.arange(4) + 4 * number, np.arange(4) + number, np.arange(4) + 10 * number
        table = pa.table({"k": keys, "ts": times, "v": values})
        given.append(pa.table({name: table[name].to_pylist() for name in table.column_names}))
        stream.process(table)
        keys[:], times[:], values[:] = -1, -1, -1
    expected = spec.open()
    for table in given:
        expected.process(table)
    assert stream.snapshot() == expected.snapshot()
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main == expected.advance_watermark(fw.MAX_TIMESTAMP).main


@pytest.mark.parametrize("ending", ["join", "co_group"])
def test_a_caller_of_a_join_may_fill_its_memory_anew(ending):
    def told(key, window, left, right):
        return [(row.v,) for row in left for _ in right]

    inputs = START, START, fw.TumblingEventTimeWindows.of(10)
    join = fw.window_join(*inputs) if ending == "join" else fw.co_group(*inputs, told, output="v bigint")
    stream = join.open()
    numbers = np.arange(4)
    columns = {"k": numbers, "ts": numbers}
    stream.process(pa.table(columns | {"v": numbers}), pa.table(columns | {"w": numbers}))
    numbers[:] = -1
    assert sorted(stream.advance_watermark(fw.MAX_TIMESTAMP).main["v"].to_pylist()) == [0, 1, 2, 3]
