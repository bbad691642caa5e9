"""Values that Python has no object for, or none that is the same, come out of the general operator as they went in."""

import datetime
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import BadRowError, UserFunctionError

KEYED = fw.key_by("k").event_time("ts")
TUMBLING = KEYED.window(fw.TumblingEventTimeWindows.of("12 hours"))
SESSIONS = KEYED.window(fw.EventTimeSessionWindows.with_gap("1 hour"))
FIRST, ROWS = 1_600_000_000_000_000_001, 100
BERLIN = pa.timestamp("ms", "Europe/Berlin")
# The hour that Berlin has twice: 02:30 before the clocks are set back, and 02:10 behind it.
TWICE = [1_729_989_000_000, 1_729_991_400_000]
NOT_TEXT = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
BEYOND = {
    "timestamp": (pa.array([10**12], pa.timestamp("s")), "1000000000000 of timestamp[s]: it has the years 1 to 9999"),
    "zone": (pa.array([-(10**18)], pa.timestamp("ms", "UTC")), "the years 1 to 9999"),
    "date": (pa.array([2**30], pa.date32()), "1073741824 of date32[day]: it has the years 1 to 9999"),
    "duration": (
        pa.array([2**62], pa.duration("s")),
        "4611686018427387904 of duration[s]: it has up to 999999999 days",
    ),
    "least duration": (
        pa.array([-(2**63)], pa.int64()).cast(pa.duration("us")),
        "-9223372036854775808 of duration[us]",
    ),
    "text": (NOT_TEXT, r"the text b'\xff': text must be UTF-8"),
    "list": (pa.array([[10**12]], pa.list_(pa.timestamp("s"))), "a value of list<item: timestamp[s]>: "),
}


class Count(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (len(elements),)


class ToTheSide(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        for row in elements:
            context.output("rows", row)


class Read(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (len([row.x for row in elements]) + len(elements.to_list("x")),)


def fine(rows: int = ROWS) -> pa.Table:
    """Rows of one key whose nanoseconds fall from row to row; few keep values of their own, many their places."""
    counts = FIRST + np.arange(rows)[::-1]
    columns = {
        "k": np.zeros(rows, np.int64),
        "ts": pa.array(counts, pa.timestamp("ns")),
        "n": np.arange(rows),
        "zoned": pa.array(counts, pa.timestamp("ns", "Europe/Berlin")),
        "took": pa.array(counts, pa.duration("ns")),
        "clock": pa.array(counts % 10**9, pa.time64("ns")),
        "none": pa.array([None, *counts[1:].tolist()], pa.timestamp("ns")),
    }
    return pa.table(columns)


def saved(spec: Any, table: pa.Table, cut: int, restore: bool) -> pa.Table:
    """Returns the results of a table that comes in two calls, if wanted through a state that is restored."""
    stream = spec.open(schema=table.schema)
    chunks = []
    for part in (table[:cut], table[cut:]):
        stream.process(part)
        chunks.append(stream.delta() if chunks else stream.snapshot())
        if restore:
            stream = spec.open(schema=table.schema)
            stream.restore(chunks)
    return stream.advance_watermark(fw.MAX_TIMESTAMP).main


@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING], ids=["sessions", "tumbling"])
@pytest.mark.parametrize("rows", [2, 200])
def test_times_of_an_hour_that_is_there_twice_are_in_order(windows, rows):
    half = rows // 2
    times = [TWICE[0]] * half + [TWICE[1]] * half
    table = pa.table({"k": [1] * rows, "ts": pa.array(times, BERLIN), "at": pa.array(times, BERLIN), "i": range(rows)})
    assert windows.deduplicate("last").run(table).main["i"].to_pylist() == [rows - 1]
    assert windows.top(1, by="at").run(table).main["i"].to_pylist() == [half]
    assert windows.top(1, by="at", ascending=True).run(table).main["i"].to_pylist() == [0]
    evicted = windows.evictor(fw.CountEvictor.of(rows)).aggregate(
        low=fw.Min("at"), high=fw.Max("at"), first=fw.ArgMin("i", "at"), last=fw.ArgMax("i", "at")
    )
    found = evicted.run(table).main
    assert found.select(["low", "high"]).cast(pa.schema([("low", pa.int64()), ("high", pa.int64())])).to_pylist() == [
        {"low": TWICE[0], "high": TWICE[1]}
    ]
    assert found["first"].to_pylist()[0] < half <= found["last"].to_pylist()[0]


@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize("cut", [1, 2, 70])
@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING], ids=["sessions", "tumbling"])
def test_nanoseconds_are_kept_and_compared(windows, cut, restore):
    table = fine()
    rest = [name for name in table.column_names if name not in ("k", "n")]
    last = saved(windows.deduplicate("last"), table, cut, restore)
    assert last.select(rest) == table[:1].select(rest)
    for by in ("ts", "zoned", "took", "clock"):
        top = saved(windows.top(2, by=by), table, cut, restore)
        assert top["n"].to_pylist() == [0, 1]
        assert top.select(rest) == table[:2].select(rest)
        low = saved(windows.top(2, by=by, ascending=True), table, cut, restore)
        assert low.select(rest) == table[::-1][:2].select(rest)
    assert saved(windows.top(ROWS, by="none"), table, cut, restore)["n"].to_pylist() == [*range(1, ROWS), 0]


@pytest.mark.parametrize("cut", [1, 70])
@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING], ids=["sessions", "tumbling"])
def test_times_in_dictionaries_are_compared_as_others(windows, cut):
    table = fine()
    for values in (table["zoned"], pa.array(sorted(TWICE * 50, reverse=True), BERLIN)):
        encoded = table.set_column(3, "zoned", values.dictionary_encode())
        assert saved(windows.top(1, by="zoned"), encoded, cut, False)["n"].to_pylist() == [0]
        assert saved(windows.top(1, by="zoned", ascending=True), encoded[::-1], cut, True)["n"].to_pylist() == [99]


@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize("cut", [1, 70])
def test_aggregates_of_what_evictors_leave_have_nanoseconds(cut, restore):
    table = fine()
    names = ["ts", "zoned", "took", "clock"]
    spec = TUMBLING.evictor(fw.CountEvictor.of(ROWS)).aggregate(
        **{f"low_{name}": fw.Min(name) for name in names},
        **{f"high_{name}": fw.Max(name) for name in names},
        gone=fw.Min("none"),
    )
    found = saved(spec, table, cut, restore)
    for name in names:
        assert found[f"low_{name}"].combine_chunks() == table[name][-1:].combine_chunks()
        assert found[f"high_{name}"].combine_chunks() == table[name][:1].combine_chunks()
    assert found["gone"].combine_chunks() == table["none"][-1:].combine_chunks()


@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize("rows", [3, ROWS])
def test_rows_that_functions_hand_on_are_whole(rows, restore):
    table = fine(rows)
    wanted = table.select(["ts", "took"])
    output = pa.schema([wanted.schema.field(name) for name in wanted.column_names])

    class Picked(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            (row,) = elements
            assert row.high == table["zoned"][0].cast(pa.timestamp("us", "Europe/Berlin"), safe=False).as_py()
            yield row

    reduced = TUMBLING.reduce(lambda a, b: a, output=output)
    assert saved(reduced, table, 1, restore).select(["ts", "took"]) == wanted[:1]
    side = TUMBLING.side_output("rows", table.schema).process(ToTheSide(), output="n bigint")
    assert side.run(table).side["rows"] == table
    behind = TUMBLING.aggregate(high=fw.Max("zoned"), then=Picked(), output=pa.schema([("high", table["zoned"].type)]))
    assert saved(behind, table, 1, restore)["high"].combine_chunks() == table["zoned"][:1].combine_chunks()


def test_functions_see_times_without_parts_of_a_microsecond_and_copies_keep_them():
    seen: list[Any] = []

    class See(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            seen.append((elements[0], list(elements[0]), elements[0]._asdict(), elements.to_list("took")))
            yield elements[0]._replace(n=7), pickle.loads(pickle.dumps(elements))[0]._replace(n=8)

    table = fine(2)
    cut = table["ts"][0].cast(pa.timestamp("us"), safe=False).as_py()
    spec = TUMBLING.process(See(), output=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    with pytest.raises(UserFunctionError):  # rows are no ints
        spec.run(table)
    row, values, named, took = seen[0]
    assert row.ts == row["ts"] == row[1] == row[-6] == values[1] == named["ts"] == cut
    assert type(row.ts) is datetime.datetime
    assert took == [datetime.timedelta(microseconds=FIRST // 1_000)] * 2
    assert row[1:3] == (cut, 0)
    with pytest.raises(IndexError):
        row[7]


@pytest.mark.parametrize("rows", [2, 200])
@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize("kind", BEYOND)
def test_what_python_cannot_show_is_no_matter_where_nobody_reads_it(kind, restore, rows):
    beyond, _ = BEYOND[kind]
    x = pa.concat_arrays([beyond, pa.nulls(1, beyond.type)] * (rows // 2))
    table = pa.table({"k": [1] * rows, "ts": range(rows), "x": x, "v": range(rows)})
    assert saved(TUMBLING.process(Count(), output="n bigint"), table, rows // 2, restore)["n"].to_pylist() == [rows]
    evicted = TUMBLING.evictor(fw.CountEvictor.of(5)).aggregate(n=fw.Count(), known=fw.Count("x"))
    assert saved(evicted, table, rows // 2, restore).select(["n", "known"]).to_pylist() == [
        {"n": min(rows, 5), "known": min(rows // 2, 2)}
    ]
    for spec, places in ((SESSIONS.top(2, by="v"), [rows - 1, rows - 2]), (SESSIONS.deduplicate("last"), [rows - 1])):
        found = saved(spec, table, rows // 2, restore)
        assert found["v"].to_pylist() == places
        assert found["x"].combine_chunks().equals(x.take(pa.array(places)))


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize("kind", BEYOND)
def test_reading_what_python_cannot_show_names_column_value_and_limit(kind, rows):
    beyond, said = BEYOND[kind]
    table = pa.table({"k": [1] * rows, "ts": range(rows), "x": pa.concat_arrays([beyond] * rows)})
    for windows in (TUMBLING, TUMBLING.evictor(fw.CountEvictor.of(5))):
        with pytest.raises(UserFunctionError) as error:
            windows.process(Read(), output="n bigint").run(table)
        assert isinstance(error.value.__cause__, BadRowError)
        assert "column 'x': Python has no object for" in str(error.value)
        assert said in str(error.value)


@pytest.mark.parametrize("kind", [name for name in BEYOND if name != "list"])
@pytest.mark.parametrize("keys", [["x"], ["k", "x"]], ids=["one", "two"])
def test_a_key_that_python_cannot_show_is_named(keys, kind):
    beyond, said = BEYOND[kind]
    table = pa.table({"k": [1], "ts": [1], "x": beyond, "v": [0]})
    windows = fw.key_by(*keys).event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    counted = windows.trigger(fw.CountTrigger.of(1)).aggregate(n=fw.Count()).run(table).main
    assert counted["x"].combine_chunks().equals(beyond)
    with pytest.raises(BadRowError, match="column 'x': Python has no object for") as error:
        windows.process(Count(), output="n bigint").run(table)
    assert said in str(error.value)
    with pytest.raises(UserFunctionError, match=r"key .*: ZeroDivisionError"):
        windows.reduce(lambda a, b: 1 // 0, output="v bigint").run(pa.concat_tables([table, table]))
    joined = fw.co_group(
        fw.key_by("x").event_time("ts"),
        fw.key_by("x").event_time("ts"),
        fw.TumblingEventTimeWindows.of(10),
        lambda key, window, left, right: [(1,)],
        output="n bigint",
    )
    with pytest.raises(BadRowError, match="column 'x': Python has no object for"):
        joined.run(table, table)


def test_functions_see_keys_as_they_see_elements():
    class Told(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            assert [type(part) for part in key] == [datetime.datetime, datetime.timedelta]
            assert key == (elements[0].at, elements[0].took)
            yield (str(key),)

    table = pa.table(
        {
            "at": pa.array([FIRST, FIRST + 1], pa.timestamp("ns")),
            "took": pa.array([FIRST] * 2, pa.duration("ns")),
            "ts": [1, 2],
        }
    )
    windows = fw.key_by("at", "took").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    found = windows.process(Told(), output="said string").run(table).main
    assert found["at"].combine_chunks() == table["at"].combine_chunks()
    assert len(set(found["said"].to_pylist())) == 1
