"""Bad input, one line each: a clear error that names argument, value and limit, or a stated result."""

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw

T, S, E = fw.TumblingEventTimeWindows, fw.SlidingEventTimeWindows, fw.EventTimeSessionWindows
BASE = fw.key_by("k").event_time("t").window(T.of(10))
COUNT = BASE.aggregate(n=fw.Count())
YEAR_300000_MS = 9_404_726_400_000_000


def table(**columns: object) -> pa.Table:
    return pa.table({"k": ["a"], "t": [1], "v": [1], **columns})


def stamps(unit: str, *values: int | None) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit))


@dataclass(frozen=True)
class Bad:
    """says: what the message has to contain, all of it."""

    call: Callable[[], object]
    says: tuple[str, ...]
    error: type[fw.FastwinError] = fw.SpecError


SPECS = {
    "size 0": Bad(lambda: T.of(0), ("TumblingEventTimeWindows: size must be at least 1 ms", "size=0")),
    "size negative": Bad(lambda: T.of("-1 hour"), ("size must be at least 1 ms", "size=-3600000")),
    "sliding size 0": Bad(lambda: S.of(0, 5), ("SlidingEventTimeWindows: size", "size=0")),
    "slide 0": Bad(lambda: S.of(5, 0), ("SlidingEventTimeWindows: slide must be at least 1 ms", "slide=0")),
    "slide negative": Bad(lambda: S.of(5, "-3 s"), ("slide must be at least 1 ms", "slide=-3000")),
    "gap 0": Bad(lambda: E.with_gap(0), ("EventTimeSessionWindows: gap must be at least 1 ms", "gap=0")),
    "gap negative": Bad(lambda: E.with_gap(-1), ("gap must be at least 1 ms", "gap=-1")),
    "offset = size": Bad(lambda: T.of(10, 10), ("|offset| must be below size", "offset=10 size=10")),
    "offset = -size": Bad(lambda: T.of(10, -10), ("|offset| must be below size", "offset=-10 size=10")),
    "offset = slide": Bad(
        lambda: S.of("1 hour", "3 min", "3 min"),
        ("SlidingEventTimeWindows: |offset| must be below slide", "offset=180000 slide=180000"),
    ),
    "offset beyond slide": Bad(lambda: S.of(100, 10, -50), ("|offset| must be below slide", "offset=-50 slide=10")),
    "nonsense as a size": Bad(lambda: T.of("soon"), ("TumblingEventTimeWindows: size", "'soon' is no duration")),
    "months": Bad(lambda: T.of("1 month"), ("TumblingEventTimeWindows: size", "'1 month'", "no fixed length")),
    "years as a gap": Bad(
        lambda: E.with_gap("2 years"), ("EventTimeSessionWindows: gap", "'2 years'", "no fixed length")
    ),
    "huge size": Bad(
        lambda: T.of("99999999999 weeks"), ("TumblingEventTimeWindows: size: must be within 9007199254740992 ms",)
    ),
    "huge size, direct": Bad(lambda: T(2**62), ("size must be within 9007199254740992 ms", f"size={2**62}")),
    "finer than ms": Bad(lambda: T.of(dt.timedelta(microseconds=1)), ("size", "whole milliseconds", "microseconds=1")),
    "float size": Bad(lambda: T.of(1.5), ("size", "got 1.5")),
    "text, not by of()": Bad(lambda: T("1 hour"), ("size must be an int of milliseconds", "'1 hour'", ".of")),
    "float, not by with_gap()": Bad(lambda: E(1.5), ("gap must be an int of milliseconds", "1.5", ".with_gap")),
    "a window that is none": Bad(lambda: BASE.window("1 hour"), ("window: must be a window assigner", "'1 hour'")),
    "a class as window": Bad(lambda: BASE.window(T), ("window: must be a window assigner", "TumblingEventTimeWindows")),
    "assigner nobody knows": Bad(
        lambda: BASE.window(fw.WindowAssigner()), ("window: WindowAssigner has no assign_windows(self, element,",)
    ),
    "lateness negative": Bad(
        lambda: BASE.allowed_lateness("-1 s"), ("allowed_lateness: must not be negative", "-1000 ms")
    ),
    "lateness none": Bad(lambda: BASE.allowed_lateness(None), ("allowed_lateness", "got None")),
    "lateness nonsense": Bad(lambda: BASE.allowed_lateness("some"), ("allowed_lateness: 'some' is no duration",)),
    "coalesce": Bad(
        lambda: BASE.allowed_lateness(5, coalesce="yes"), ("coalesce must be None, True or False", "'yes'")
    ),
    "policy": Bad(lambda: BASE.bad_rows("ignore"), ("bad_rows: policy must be one of raise, divert, drop", "'ignore'")),
    "key list": Bad(lambda: fw.key_by(["a", "b"]), ("key_by: columns must be names", "['a', 'b']")),
    "key empty": Bad(lambda: fw.key_by(""), ("key_by: columns must be names", "''")),
    "key twice": Bad(lambda: fw.key_by("a", "b", "a"), ("key_by: a column is named twice", "['a', 'b', 'a']")),
    "key takes a result's name": Bad(
        lambda: fw.key_by("window_end"), ("key_by: 'window_end' is the name of a result column",)
    ),
    "key takes a pane column's name": Bad(
        lambda: fw.key_by("pane_timing").event_time("t").window(T.of(5)).with_pane_info().aggregate(n=fw.Count()),
        ("with_pane_info: adds the column 'pane_timing', which is a key; rename the key",),
    ),
    "key takes the name of changes": Bad(
        lambda: fw.key_by("change").event_time("t").window(T.of(5)).with_changelog(),
        ("with_changelog: adds the column 'change', which is a key; rename the key",),
    ),
    "event time no name": Bad(
        lambda: fw.key_by().event_time(5), ("event_time: column must be the name of a column", "5")
    ),
    "no aggregate": Bad(lambda: BASE.aggregate(), ("aggregate: at least one is needed",)),
    "aggregate as text": Bad(lambda: BASE.aggregate(n="count"), ("aggregate: n must be an aggregate", "'count'")),
    "aggregate class": Bad(lambda: BASE.aggregate(n=fw.Count), ("aggregate: n must be an aggregate", "Count")),
    "abstract aggregate": Bad(lambda: BASE.aggregate(n=fw.Aggregate("v")), ("aggregate: n must be an aggregate",)),
    "aggregate without name": Bad(
        lambda: BASE.aggregate(**{"": fw.Count()}), ("aggregate: the name of Count() is empty",)
    ),
    "aggregate takes a key's name": Bad(lambda: BASE.aggregate(k=fw.Count()), ("aggregate: the name 'k' is taken",)),
    "aggregate takes a bound's name": Bad(
        lambda: BASE.aggregate(window_start=fw.Count()), ("aggregate: the name 'window_start' is taken",)
    ),
    "64 aggregates": Bad(
        lambda: BASE.aggregate(**{f"a{i}": fw.Count() for i in range(64)}),
        ("aggregate: at most 63 in one spec, got 64",),
    ),
    "sum of nothing": Bad(lambda: fw.Sum(), ("Sum: column must be the name of a column", "None")),
    "sum of a number": Bad(lambda: fw.Sum(5), ("Sum: column must be the name of a column", "5")),
    "count of a list": Bad(lambda: fw.Count(["v"]), ("Count: column must be the name of a column", "['v']")),
    "on_overflow": Bad(
        lambda: fw.Sum("v", on_overflow="wrap"), ("Sum: on_overflow must be 'raise' or 'null'", "'wrap'")
    ),
    "nothing said": Bad(
        lambda: fw.key_by("k").run(table()), (".event_time(column)", ".window(assigner)", ".aggregate(name=...)")
    ),
    "no event time": Bad(
        lambda: fw.key_by("k").window(T.of(5)).aggregate(n=fw.Count()), ("incomplete without .event_time(column)",)
    ),
    "no aggregates, opened": Bad(lambda: BASE.open(), ("incomplete without .aggregate(name=...)",)),
}

COLUMNS = {
    "unknown key": Bad(lambda: COUNT.run(pa.table({"x": [1], "t": [1]})), ("key_by: there is no column 'k'", "x, t")),
    "unknown event time": Bad(lambda: COUNT.run(pa.table({"k": [1]})), ("event_time: there is no column 't'", "the input has k")),
    "unknown value": Bad(lambda: BASE.aggregate(s=fw.Sum("w")).run(table()), ("aggregate s=Sum('w'): there is no column 'w'", "k, t, v")),
    "no columns": Bad(lambda: COUNT.run(pa.table({})), ("there is no column 'k'", "the input has none")),
    "key column twice": Bad(lambda: COUNT.run(pa.Table.from_arrays([pa.array([1])] * 3, ["k", "k", "t"])), ("key_by: the input has 2 columns named 'k'",)),
    "time column twice": Bad(lambda: COUNT.run(pa.Table.from_arrays([pa.array([1])] * 3, ["k", "t", "t"])), ("event_time: the input has 2 columns named 't'",)),
    "any column twice, handed out": Bad(lambda: BASE.side_output_late_data().aggregate(n=fw.Count()).run(pa.Table.from_arrays([pa.array([1])] * 4, ["k", "t", "x", "x"])), ("columns named twice: x",)),
    "pandas column twice": Bad(lambda: COUNT.run(pd.DataFrame([["a", 1, 2]], columns=["k", "t", "t"])), ("table: this DataFrame cannot be read as Arrow", "'t'")),
    "bad_reason is taken": Bad(lambda: BASE.bad_rows("divert").aggregate(n=fw.Count()).run(table(bad_reason=["x"])), ("bad_rows", "'bad_reason'")),
    "list as key": Bad(lambda: COUNT.run(table(k=[["a"]])), ("key_by: column 'k' is list<item: string>, which cannot be a key",)),
    "struct as key": Bad(lambda: COUNT.run(table(k=[{"a": 1}])), ("key_by: column 'k' is struct", "cannot be a key")),
    "sum of text": Bad(lambda: BASE.aggregate(s=fw.Sum("v")).run(table(v=["x"])), ("Sum('v'): takes an int", "column 'v' is string")),
    "mean of uint64": Bad(lambda: BASE.aggregate(s=fw.Mean("v")).run(table(v=pa.array([1], pa.uint64()))), ("uint64 excepted", "column 'v' is uint64")),
    "sum of dates": Bad(lambda: BASE.aggregate(s=fw.Sum("v")).run(table(v=pa.array([1], pa.date32()))), ("Sum('v')", "column 'v' is date32[day]")),
    "mean of timestamps": Bad(lambda: BASE.aggregate(s=fw.Mean("v")).run(table(v=stamps("s", 1))), ("Mean('v')", "column 'v' is timestamp[s]")),
    "min of lists": Bad(lambda: BASE.aggregate(s=fw.Min("v")).run(table(v=[["x"]])), ("Min('v'): takes a column of numbers", "column 'v' is list")),
    "time as text": Bad(lambda: COUNT.run(table(t=["2024-01-01"])), ("event_time: column 't' must be a timestamp or int64 milliseconds", "string")),
    "time as int32": Bad(lambda: COUNT.run(table(t=pa.array([1], pa.int32()))), ("event_time: column 't'", "int32")),
    "time as uint64": Bad(lambda: COUNT.run(table(t=pa.array([1], pa.uint64()))), ("event_time: column 't'", "uint64")),
    "time as float": Bad(lambda: COUNT.run(table(t=[1.0])), ("event_time: column 't'", "double")),
    "time as date": Bad(lambda: COUNT.run(table(t=pa.array([1], pa.date32()))), ("event_time: column 't'", "date32[day]")),
    "time as dictionary": Bad(lambda: COUNT.run(table(t=pa.array([1]).dictionary_encode())), ("event_time: column 't'", "dictionary")),
    "no table": Bad(lambda: COUNT.run([1]), ("table: must be a pyarrow Table or RecordBatch, a pandas or polars DataFrame", "list")),
    "a series": Bad(lambda: COUNT.run(pd.Series([1])), ("table: must be", "Series")),
    "mixed objects": Bad(lambda: COUNT.run(pd.DataFrame({"k": ["a", 1], "t": [1, 2]})), ("table: this DataFrame cannot be read as Arrow", "column k")),
    "no schema": Bad(lambda: fw.plan(COUNT, {"k": "string"}), ("schema: must be a pyarrow.Schema, got dict",)),
    "no schema, opened": Bad(lambda: COUNT.open(schema=[("k", pa.string())]), ("schema: must be a pyarrow.Schema, got list",)),
}  # fmt: skip

WATERMARKS = {
    **{f"watermark {value!r}": Bad(lambda value=value: COUNT.open().advance_watermark(value), ("watermark: must be an int of milliseconds", repr(value))) for value in (1.5, "5", None, True, np.float64(5), dt.timedelta(seconds=1))},
    "watermark beyond int64": Bad(lambda: COUNT.open().advance_watermark(2**63), ("watermark: must fit in int64", str(2**63))),
    "watermark below int64": Bad(lambda: COUNT.open().advance_watermark(-(2**63) - 1), ("watermark: must fit in int64",)),
    "delay nonsense": Bad(lambda: COUNT.open("soon"), ("watermark: 'soon' is no duration",)),
    "delay negative": Bad(lambda: COUNT.open("-5 s"), ("watermark: must not be negative", "-5000 ms")),
    "delay months": Bad(lambda: COUNT.open("1 month"), ("watermark: '1 month'", "no fixed length")),
    "delay True": Bad(lambda: COUNT.open(True), ("watermark", "True")),
    "skew negative": Bad(lambda: COUNT.open(max_future_skew=-1), ("max_future_skew: must not be negative", "-1 ms")),
    "skew nonsense": Bad(lambda: COUNT.open(max_future_skew="far"), ("max_future_skew: 'far' is no duration",)),
}  # fmt: skip

ROWS = {
    "null timestamp": Bad(lambda: COUNT.run(table(t=stamps("us", None))), ("event_time 't': null timestamp in row 0", "1 of 1 rows", "bad_rows('divert')"), fw.BadRowError),
    "column of nulls": Bad(lambda: COUNT.run(table(t=pa.nulls(1))), ("null timestamp in row 0",), fw.BadRowError),
    "year 300000 in ms": Bad(lambda: COUNT.run(table(t=stamps("ms", YEAR_300000_MS))), ("outside years 1 to 9999 in row 0", f"value {YEAR_300000_MS} ms"), fw.BadRowError),
    "year 300000 in s": Bad(lambda: COUNT.run(table(t=stamps("s", YEAR_300000_MS // 1_000))), ("outside years 1 to 9999", f"value {YEAR_300000_MS // 1_000} s"), fw.BadRowError),
    "s that overflow as ms": Bad(lambda: COUNT.run(table(t=stamps("s", 2**62))), ("outside years 1 to 9999", f"value {2**62} s"), fw.BadRowError),
    "int64 max": Bad(lambda: COUNT.run(table(t=[2**63 - 1])), (f"outside +-{2**61} ms in row 0", f"value {2**63 - 1}"), fw.BadRowError),
    "int64 min": Bad(lambda: COUNT.run(table(t=[-(2**63)])), (f"outside +-{2**61} ms in row 0",), fw.BadRowError),
    "sum beyond int64": Bad(lambda: BASE.aggregate(s=fw.Sum("v")).run(pa.table({"k": [1, 1], "t": [1, 2], "v": [2**62, 2**62]})), ("Sum('v'): the sum of a window is outside int64", "on_overflow='null'"), fw.AggregateOverflowError),
    "sum below int64": Bad(lambda: BASE.aggregate(s=fw.Sum("v")).run(pa.table({"k": [1, 1], "t": [1, 2], "v": [-(2**63), -1]})), ("outside int64",), fw.AggregateOverflowError),
}  # fmt: skip

CASES = {**SPECS, **COLUMNS, **WATERMARKS, **ROWS}


@pytest.mark.parametrize("name", CASES)
def test_message_names_argument_value_and_limit(name: str) -> None:
    case = CASES[name]
    with pytest.raises(case.error) as caught:
        case.call()
    assert type(caught.value) is case.error
    missing = [part for part in case.says if part not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
    assert len(str(caught.value)) < 500


BAD_TIMES = {
    "null": (stamps("us", None, 5_000), "null timestamp"),
    "year 300000 in ms": (stamps("ms", YEAR_300000_MS, 5), "timestamp outside years 1 to 9999"),
    "year 300000 in s": (stamps("s", YEAR_300000_MS // 1_000, 0), "timestamp outside years 1 to 9999"),
    "year 0 in us": (stamps("us", -62_135_596_800_000_001, 5_000), "timestamp outside years 1 to 9999"),
    "int64 max": (pa.array([2**63 - 1, 5]), f"timestamp outside +-{2**61} ms"),
    "nulls only": (pa.nulls(2), "null timestamp"),
}


@pytest.mark.parametrize("name", BAD_TIMES)
def test_bad_times_are_diverted_or_dropped_and_counted(name: str) -> None:
    times, reason = BAD_TIMES[name]
    data = pa.table({"k": ["bad", "good"], "t": times, "v": [1, 2]})
    bad = 2 if name == "nulls only" else 1
    for policy in ("divert", "drop"):
        spec = BASE.bad_rows(policy).aggregate(n=fw.Count())
        whole, stream = spec.run(data), spec.open()
        assert whole.main["k"].to_pylist() == ["good"][: 2 - bad]
        result = stream.process(data)
        assert whole.bad_dropped == result.bad_dropped == (bad if policy == "drop" else 0)
        assert stream.process(data.slice(0, 0)).bad_dropped == 0
        assert (stream.metrics.events, stream.metrics.bad) == (2, bad)
        assert result.bad["k"].to_pylist() == (["bad", "good"][:bad] if policy == "divert" else [])
        assert result.bad["bad_reason"].to_pylist() == ([reason] * bad if policy == "divert" else [])
        assert result.bad.column_names == ["k", "t", "v", "bad_reason"] or policy == "drop"


def test_slide_beyond_size_leaves_gaps() -> None:
    spec = fw.key_by("k").event_time("t").window(S.of(5, 10)).aggregate(n=fw.Count())
    stream = spec.open()
    stream.process(pa.table({"k": ["a"] * 4, "t": [4, 5, 9, 10]}))
    assert stream.metrics.unassigned == 2
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["window_start"].cast(pa.int64()).to_pylist() == [0, 10]


def test_name_of_an_input_column_is_free_for_an_aggregate() -> None:
    assert BASE.aggregate(v=fw.Sum("v"), t=fw.Max("t")).run(table()).main.column_names == [
        "k",
        "window_start",
        "window_end",
        "v",
        "t",
    ]


def test_column_of_the_input_may_be_called_window_start() -> None:
    result = BASE.side_output_late_data().aggregate(m=fw.Max("window_start")).run(table(window_start=[7]))
    assert result.main["m"].to_pylist() == [7]


@pytest.mark.parametrize(
    "assigner", [T.of(10), S.of(25, 10), E.with_gap(5)], ids=lambda assigner: type(assigner).__name__
)
def test_restore_of_anything_is_a_state_error(assigner: fw.WindowAssigner) -> None:
    """Garbage, truncated, bit-flipped in every region; never a crash, and the stream stays usable."""
    spec = (
        fw.key_by("k", "k2").event_time("t").window(assigner).allowed_lateness(7).aggregate(n=fw.Count(), s=fw.Sum("v"))
    )
    source = spec.open()
    data = pa.table(
        {
            "k": [f"{i % 9}" for i in range(120)],
            "k2": pa.array([None, 1.5] * 60),
            "t": [i * 2 for i in range(120)],
            "v": list(range(120)),
        }
    )
    source.process(data[:80])
    snapshot = source.snapshot()
    source.process(data[80:])
    delta = source.delta()
    wanted = source.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows
    dice = random.Random(11)
    stream = spec.open()
    stream.process(data[:0])
    regions = 40
    for whole, rest in ((snapshot, [delta]), (delta, [])):
        for region in range(regions):
            low, high = len(whole) * region // regions, len(whole) * (region + 1) // regions
            for kind in ("flip", "flip", "cut", "zero", "insert"):
                blob = bytearray(whole)
                at = dice.randrange(low, high)
                if kind == "flip":
                    blob[at] ^= 1 << dice.randrange(8)
                elif kind == "cut":
                    del blob[at:]
                elif kind == "zero":
                    blob[at : at + 9] = bytes(255 - byte for byte in blob[at : at + 9])
                else:
                    blob.insert(at, 0)
                chunks = [bytes(blob), *rest] if rest else [snapshot, bytes(blob)]
                with pytest.raises(fw.StateError, match=r"^state: "):
                    stream.restore(chunks)
    for garbage in (b"", b"FWST", dice.randbytes(36), dice.randbytes(5_000), snapshot * 2):
        with pytest.raises(fw.StateError):
            stream.restore([garbage])
    stream.restore([snapshot, delta])
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == wanted
