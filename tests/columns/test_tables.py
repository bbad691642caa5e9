"""What is taken as a table, and what of a frame tells no types."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns.schemas import conform
from fastwin.columns.tables import as_table, has_small_chunks
from fastwin.errors import SpecError

TABLE = pa.table({"k": ["a", None], "t": pa.array([0, 1_500], pa.timestamp("ms")), "v": [1.5, None]})


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_pandas(),
        TABLE.to_pandas().set_index(pd.Index([7, 9])),
        pl.from_arrow(TABLE),
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        pa.concat_tables([TABLE[:1], TABLE[:0], TABLE[1:]]),
    ],
    ids=["table", "record batch", "pandas", "pandas with an index", "polars", "reader", "chunks"],
)
def test_what_is_a_table(data: object) -> None:
    table = as_table(data)
    assert isinstance(table, pa.Table)
    assert table.column_names == ["k", "t", "v"]
    assert conform(table, TABLE.schema).to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize(
    "data",
    [None, 5, "k", [1], {"k": [1]}, np.zeros(3), pa.array([1]), pa.chunked_array([[1]]), pd.Series([1], name="k"), pl.Series([1]), pl.LazyFrame({"k": [1]})],
    ids=lambda data: type(data).__module__.split(".")[0] + "." + type(data).__name__,
)  # fmt: skip
def test_what_is_no_table(data: object) -> None:
    with pytest.raises(SpecError, match=f"^table: .*{type(data).__name__}"):
        as_table(data)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({"k": ["a", 1]}), pd.DataFrame({"k": [object()]}), pd.DataFrame([[1, 2]], columns=["k", "k"])],
)
def test_frames_that_arrow_cannot_read(frame: pd.DataFrame) -> None:
    with pytest.raises(SpecError, match=r"^table: this DataFrame cannot be read as Arrow: .*k"):
        as_table(frame)


BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
MOMENTS = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"])


@pytest.mark.parametrize(
    "empty",
    [
        pl.DataFrame({"k": [], "t": [], "v": []}),
        pl.DataFrame(schema=["k", "t", "v"]),
        pl.DataFrame({"t": [], "k": [], "v": []}, schema={"t": pl.Datetime, "k": None, "v": None}),
        pd.DataFrame({"k": [], "t": [], "v": []}),
        pd.DataFrame(columns=["k", "t", "v"]),
        pa.table({"k": pa.nulls(0), "t": pa.nulls(0), "v": pa.nulls(0)}),
        pa.table({"k": pa.array([], pa.string()), "t": pa.array([], pa.int64()), "v": pa.nulls(0)}),
        pa.record_batch({"k": pa.nulls(0), "t": pa.nulls(0), "v": pa.nulls(0)}),
    ],
    ids=[
        "polars",
        "polars names",
        "polars some types",
        "pandas",
        "pandas names",
        "table",
        "one column",
        "record batch",
    ],
)
def test_an_empty_frame_without_types_waits_for_types(empty: object) -> None:
    stream = BASE.side_output_late_data().aggregate(n=fw.Count(), hi=fw.Max("v")).open()
    first = stream.process(empty)
    assert first.main.num_rows == 0
    stream.process(pa.table({"k": ["a"], "t": [5], "v": [1.5]}))
    assert stream.advance_watermark(50).main.to_pylist()[0]["hi"] == 1.5
    assert BASE.aggregate(n=fw.Count()).run(empty).main.num_rows == 0


def test_an_empty_frame_still_needs_the_columns() -> None:
    for empty in (pl.DataFrame({"k": []}), pd.DataFrame({"k": []}), pa.table({"k": pa.nulls(0)})):
        with pytest.raises(SpecError, match="column 't' is missing"):
            BASE.aggregate(n=fw.Count()).open().process(empty)


NO_TYPE = {
    "objects": pl.DataFrame({"k": [], "t": []}, schema={"k": pl.Object, "t": pl.Int64}),
    "lists of nulls": pa.table({"k": pa.array([], pa.list_(pa.null())), "t": pa.array([], pa.int64())}),
    "polars lists of nulls": pl.DataFrame({"k": [], "t": []}, schema={"k": pl.List(pl.Null), "t": pl.Int64}),
}


@pytest.mark.parametrize("name", NO_TYPE)
def test_an_empty_key_of_no_type_waits_for_one(name: str) -> None:
    stream = BASE.aggregate(n=fw.Count()).open()
    assert stream.process(NO_TYPE[name]).main.num_rows == 0
    stream.process(pa.table({"k": ["a"], "t": pa.array([1], pa.int64())}))
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["k"].to_pylist() == ["a"]


def test_python_objects_are_refused_and_not_their_addresses_taken() -> None:
    frame = pl.DataFrame({"k": [{1}], "t": [1]}, schema={"k": pl.Object, "t": pl.Int64})
    with pytest.raises(SpecError, match="column 'k' is of Python objects"):
        BASE.aggregate(n=fw.Count()).run(frame)


def test_an_empty_table_with_types_binds_them() -> None:
    stream = BASE.aggregate(n=fw.Count()).open()
    stream.process(pa.table({"k": pa.array([], pa.string()), "t": pa.array([], pa.int64())}))
    assert stream.snapshot()


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"k": ["a", "a", "b"]}, index=pd.Index(MOMENTS, name="t")),
        pd.DataFrame({"t": MOMENTS}, index=pd.Index(["a", "a", "b"], name="k")),
        pd.DataFrame({"v": [1, 2, 3]}, index=pd.MultiIndex.from_arrays([["a", "a", "b"], MOMENTS], names=["k", "t"])),
        pd.DataFrame({"k": ["a", "a", "b"], "t": MOMENTS}, index=pd.Index([7, 8, 9], name="t")),
        pd.DataFrame({"k": ["a", "a", "b"]}, index=pd.Index(MOMENTS, name="t")).sort_index(),
    ],
    ids=["time", "key", "both", "a column goes first", "sorted"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_index_that_is_asked_for_is_a_column(frame: pd.DataFrame, threads: int) -> None:
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of("1 day")).aggregate(n=fw.Count())
    before = frame.copy()
    found = spec.run(frame, threads=threads).main
    assert sorted(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True)) == [("a", 1), ("a", 1), ("b", 1)]
    stream = spec.open()
    stream.process(frame)
    assert stream.metrics.open_windows == 3
    assert frame.equals(before)
    assert frame.index.names == before.index.names


def test_an_index_that_nobody_asks_for_is_no_column() -> None:
    frame = pd.DataFrame({"k": ["a"], "t": [dt.datetime(2024, 1, 1)]}, index=pd.Index([7], name="place"))
    assert as_table(frame, {"k", "t"}.__contains__).column_names == ["k", "t"]
    with pytest.raises(SpecError, match="there is no column 'ts'"):
        fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(5)).aggregate(n=fw.Count()).run(frame)


MIXED = pd.DataFrame({"t": [1, 2], "v": [1, 2], "a b": [3, 4], "notes": [1, "a"]})
OBJECTS = pl.DataFrame(
    {"t": [1, 2], "v": [1, 2], "a b": [3, 4], "notes": [{1}, {2}]}, schema_overrides={"notes": pl.Object}
)
ALL = fw.key_by().event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))


@pytest.mark.parametrize("frame", [MIXED, OBJECTS], ids=["pandas", "polars"])
@pytest.mark.parametrize("threads", [1, 2])
def test_columns_that_are_not_read_may_be_of_anything(frame: object, threads: int) -> None:
    spec = ALL.aggregate(total=fw.Sum("v"), n=fw.Count(where=pc.field("a b") > 3))
    assert spec.run(frame, threads=threads).main.select(["total", "n"]).to_pylist() == [{"total": 3, "n": 1}]
    stream = spec.open()
    for _ in range(2):
        stream.process(frame)
    assert stream.advance_watermark(10).main["total"].to_pylist() == [6]
    assert spec.timeline(frame) is not None
    assert ALL.aggregate(n=fw.Count()).run(frame).timeline(rows=frame) is not None


@pytest.mark.parametrize(
    "spec",
    [
        ALL.side_output_late_data().aggregate(total=fw.Sum("v")),
        ALL.bad_rows("divert").aggregate(total=fw.Sum("v")),
        ALL.deduplicate(),
        ALL.aggregate(total=fw.Sum("notes")),
    ],
    ids=["late rows", "bad rows", "rows", "named"],
)
@pytest.mark.parametrize("frame", [MIXED, OBJECTS], ids=["pandas", "polars"])
def test_columns_that_are_read_must_be_of_a_type(spec: fw.WindowSpec, frame: object) -> None:
    with pytest.raises(SpecError, match="notes"):
        spec.run(frame)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars has no integers of 128 bits")
@pytest.mark.parametrize("threads", [1, 2])
def test_integers_of_128_bits_are_left_out_or_named(threads: int) -> None:
    wide = {"i": pl.Int128, "lists": pl.List(pl.Int128)}
    frame = pl.DataFrame({"i": [1, 2], "t": [1, 2], "lists": [[1], [2]], "v": [3, 4]}, schema_overrides=wide)
    spec = ALL.aggregate(total=fw.Sum("v"))
    assert spec.run(frame, threads=threads).main["total"].to_pylist() == [7]
    assert spec.timeline(frame) is not None
    assert as_table(frame.clear()).schema == pa.schema(
        [("i", pa.null()), ("t", pa.int64()), ("lists", pa.null()), ("v", pa.int64())]
    )
    for all_read in (spec.side_output_late_data(), ALL.deduplicate()):
        with pytest.raises(
            SpecError, match=r"column 'i' is Int128, which Arrow has no type for; cast it, or leave it out$"
        ):
            all_read.run(frame, threads=threads)
    with pytest.raises(SpecError, match=r"column 'lists' is List\(Int128\), which Arrow has no type for"):
        ALL.aggregate(last=fw.Last("lists")).run(frame, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_column_that_is_not_read_may_be_there_twice(threads: int) -> None:
    frame = pd.DataFrame([[1, "a", 5, {1}, 3], [2, "b", 6, {2}, 4]], columns=["t", "z", "v", "z", 7])
    spec = ALL.aggregate(total=fw.Sum("v"))
    assert spec.run(frame, threads=threads).main["total"].to_pylist() == [11]
    assert spec.run(frame.iloc[:0], threads=threads).main.num_rows == 0
    assert as_table(frame, None, {"t", "v"}.__contains__).column_names == ["t", "z", "v", "z", "7"]
    for refused in (ALL.aggregate(last=fw.Last("z")), spec.bad_rows("divert")):
        with pytest.raises(SpecError, match="'z'"):
            refused.run(frame, threads=threads)


def test_a_column_that_is_missing_is_told_with_all_that_there_are() -> None:
    for operand in ("w", pc.field("w") + 1):
        with pytest.raises(SpecError, match=r"no column 'w'; the input has t, v, a b, notes$"):
            ALL.aggregate(total=fw.Sum(operand)).run(MIXED)
    stream = ALL.aggregate(total=fw.Sum("v")).open()
    stream.process(MIXED)
    with pytest.raises(SpecError, match=r"column 'v' is missing; the input has t, a b, notes$"):
        stream.process(MIXED.drop(columns="v"))


def test_only_what_is_read_is_converted() -> None:
    table = as_table(MIXED, None, {"t", "v"}.__contains__)
    assert table.schema == pa.schema([("t", pa.int64()), ("v", pa.int64()), ("a b", pa.null()), ("notes", pa.null())])
    numbered = MIXED.rename(columns={"a b": 7, "v": 8})
    assert as_table(numbered, None, {"t"}.__contains__).schema.field("7").type == pa.int64()
    clock = fw.key_by().processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = clock.open()
    for _ in range(2):
        stream.process(MIXED[["t", "v"]])
    assert stream.advance_processing_time(10).main["n"].to_pylist() == [4]


def test_chunks_of_any_column_are_small() -> None:
    numbers = np.arange(100_000)
    large, small = pa.chunked_array([numbers]), pa.chunked_array(np.split(numbers, 1_000))
    assert has_small_chunks(pa.table({"a": large, "b": small}))
    assert has_small_chunks(pa.table({"a": small, "b": large}))


def test_an_integer_beyond_64_bits_in_a_frame_is_a_spec_error() -> None:
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(s=fw.Sum("v"))
    with pytest.raises(SpecError, match=r"table: column 'v': .*too (large|big)"):
        spec.run(pd.DataFrame({"k": [1, 2], "t": [1, 2], "v": [5, 2**70]}))
