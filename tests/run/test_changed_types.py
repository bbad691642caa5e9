"""A column whose type changes between batches: scaled where it means the same, else refused; nothing becomes another."""

import datetime as dt

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

WINDOWS = {
    "aligned": fw.TumblingEventTimeWindows.of("1 hour"),
    "sessions": fw.EventTimeSessionWindows.with_gap("1 hour"),
}
MS = 1_704_067_200_000  # 2024-01-01
STAMP = dt.datetime(2024, 1, 1)
DAY = STAMP.date()


def table(k: object = 1, t: object = MS, v: object = 1, **kinds: pa.DataType) -> pa.Table:
    """One row. kinds: of the columns, where Python's value does not tell."""
    values = {"k": k, "t": t, "v": v}
    return pa.table({name: pa.array([value], kinds.get(f"{name}_is")) for name, value in values.items()})


def stream_of(first: pa.Table, how: str, windows: str = "aligned") -> fw.Stream:
    """A stream that has taken a table, or only knows of it from a schema or from its state."""
    spec = fw.key_by("k").event_time("t").window(WINDOWS[windows]).aggregate(n=fw.Count(), last=fw.Last("v"))
    stream = spec.open(schema=first.schema)
    stream.process(first)
    if how == "schema":
        return spec.open(schema=first.schema)
    if how == "restored":
        again = spec.open()
        again.restore([stream.snapshot()])
        return again
    return stream


F32, US = pa.float32(), pa.timestamp("us")
ANOTHER = {
    "t: timestamp, then int64": (table(t=STAMP), table(t=MS)),
    "t: int64, then timestamp": (table(t=MS), table(t=STAMP)),
    "t: timestamp, then date": (table(t=STAMP), table(t=DAY)),
    "k: bool, then int": (table(k=True), table(k=2)),
    "k: int, then bool": (table(k=2), table(k=True)),
    "k: date, then timestamp": (table(k=DAY), table(k=STAMP)),
    "k: timestamp, then date": (table(k=STAMP), table(k=DAY)),
    "k: float32, then float64": (table(k=0.5, k_is=F32), table(k=0.1)),
    "k: timestamp, then int": (table(k=STAMP), table(k=5)),
    "v: float32, then float64": (table(v=0.5, v_is=F32), table(v=1e300)),
    "v: bool, then int": (table(v=True), table(v=2)),
    "v: int, then bool": (table(v=2), table(v=True)),
    "v: duration, then int": (table(v=dt.timedelta(1)), table(v=5)),
    "v: timestamp, then int": (table(v=STAMP), table(v=5)),
}


@pytest.mark.parametrize("how", ["process", "schema", "restored"])
@pytest.mark.parametrize("name", ANOTHER)
def test_another_meaning_is_refused(name: str, how: str) -> None:
    before, after = ANOTHER[name]
    column = name[0]
    was, now = before.schema.field(column).type, after.schema.field(column).type
    for windows in WINDOWS:
        stream = stream_of(before, how, windows)
        with pytest.raises(fw.SpecError) as caught:
            stream.process(after)
        assert f"column '{column}' was {was}, and is {now} now" in str(caught.value)
        stream.process(before)  # it can be used on
        (row,) = stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
        assert row["n"] == (1 if how == "schema" else 2)


SAME = {
    "t: finer": (table(t=STAMP, t_is=pa.timestamp("us")), table(t=STAMP, t_is=pa.timestamp("ns"))),
    "t: coarser": (table(t=STAMP, t_is=pa.timestamp("us")), table(t=STAMP, t_is=pa.timestamp("s"))),
    "t: to ms": (table(t=STAMP, t_is=pa.timestamp("ms")), table(t=STAMP, t_is=pa.timestamp("us"))),
    "t: another zone": (table(t=STAMP, t_is=pa.timestamp("us", "UTC")), table(t=STAMP, t_is=pa.timestamp("us", "Asia/Tokyo"))),
    "t: int32": (table(t=5), table(t=5, t_is=pa.int32())),
    "k: int32": (table(k=5), table(k=5, k_is=pa.int32())),
    "k: int32, then int64": (table(k=5, k_is=pa.int32()), table(k=5)),
    "k: float32": (table(k=0.5), table(k=0.5, k_is=F32)),
    "k: large text": (table(k="a"), table(k="a", k_is=pa.large_string())),
    "k: a view": (table(k="a"), table(k="a", k_is=pa.string_view())),
    "k: a dictionary": (table(k="a"), table(k="a", k_is=pa.dictionary(pa.int8(), pa.string()))),
    "k: from a dictionary": (table(k="a", k_is=pa.dictionary(pa.int8(), pa.string())), table(k="a")),
    "k: a date of ms": (table(k=DAY), table(k=DAY, k_is=pa.date64())),
    "v: an int among floats": (table(v=0.5), table(v=2)),
    "v: nothing but nulls": (table(v=0.5), table(v=None)),
}  # fmt: skip


@pytest.mark.parametrize("how", ["process", "schema", "restored"])
@pytest.mark.parametrize("name", SAME)
def test_the_same_meaning_is_taken(name: str, how: str) -> None:
    before, after = SAME[name]
    for windows in WINDOWS:
        stream = stream_of(before, how, windows)
        stream.process(after)
        (row,) = stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
        assert row["n"] == (1 if how == "schema" else 2)
        values = [after["v"][0].as_py(), None if how == "schema" else before["v"][0].as_py()]
        assert row["last"] == next((value for value in values if value is not None), None)


def test_an_int_that_does_not_fit_is_named() -> None:
    stream = stream_of(table(k=5, k_is=pa.int8()), "process")
    with pytest.raises(fw.SpecError, match=r"column 'k' was int8, and is int64 now: .*300"):
        stream.process(table(k=300))


class TestHarness:
    """The harness takes Python objects, which Arrow would make almost anything of."""

    SPEC = fw.key_by("k").event_time("t").window(WINDOWS["aligned"]).aggregate(n=fw.Count(), last=fw.Last("v"))

    @pytest.mark.parametrize(
        ("first", "then"),
        [
            ({"t": STAMP}, {"t": MS}),
            ({"t": MS}, {"t": STAMP}),
            ({"k": 1}, {"k": True}),
            ({"k": DAY}, {"k": STAMP}),
            ({"v": 1.5}, {"v": True}),
            ({"v": STAMP}, {"v": 5}),
            ({"v": "a"}, {"v": b"a"}),
        ],
        ids=str,
    )
    def test_another_meaning_is_refused(self, first: dict, then: dict) -> None:
        element = {"k": 1, "t": MS, "v": 1}
        harness = WindowHarness(self.SPEC)
        harness.push(element | first)
        (column,) = then
        with pytest.raises(fw.SpecError, match=rf"push: column '{column}' is .*, and .* is .*"):
            harness.push(element | then)
        harness.push(element | first)
        assert harness.open_windows == 1

    def test_numbers_are_numbers(self) -> None:
        schema = pa.schema([("k", pa.int32()), ("t", pa.int64()), ("v", pa.float32())])
        harness = WindowHarness(self.SPEC, schema)
        harness.push({"k": 1, "t": MS, "v": 0.1})
        harness.push({"k": 1.0, "t": MS, "v": 2})
        harness.push({"k": None, "t": MS, "v": None})
        assert harness.open_windows == 2


def test_late_rows_of_decoded_columns() -> None:
    """The first late row of a column with runs, or of lists of views, was the end of the stream."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["x"]))
    views = pa.array([["a", None], None], pa.list_(pa.string())).cast(pa.list_(pa.string_view()))
    rows = pa.table({"k": [1, 1], "t": [0, 1], "v": [1, 1], "runs": runs, "views": views})
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).side_output_late_data()
    stream = spec.aggregate(n=fw.Count()).open()
    stream.process(rows)
    stream.advance_watermark(100)
    late = stream.process(rows).late
    assert late.schema.field("runs").type == pa.string()
    assert late.schema.field("views").type == pa.list_(pa.string())
    assert late.select(["runs", "views"]).to_pylist() == rows.select(["runs", "views"]).to_pylist()
    assert stream.process(rows[:0]).late.schema == late.schema


def test_dictionaries_with_nulls_in_small_chunks() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    two = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([None, "b"]))
    column = pa.chunked_array([one, two], kind)
    rows = pa.table({"k": column, "t": [0] * 4, "v": column})
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).side_output_late_data()
    found = spec.aggregate(n=fw.Count(), c=fw.Count("v"), hi=fw.Max("v")).run(rows).main
    told = {row["k"]: (row["n"], row["c"], row["hi"]) for row in found.to_pylist()}
    assert told == {"a": (1, 1, "a"), "b": (1, 1, "b"), None: (2, 0, None)}
