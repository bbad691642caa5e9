"""Columns of all types through a stream: as keys, as values, as columns of late and bad rows."""

import datetime as dt
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.decoding import roomy_type
from tests.support.columns import KEY_TYPES, VARIANTS, column_of, readable

BASE = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of(10))
NAN = float("nan")

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TIMES = [
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.duration("s"), pa.duration("ns"),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
]  # fmt: skip


def in_one_window(column: pa.Array | pa.ChunkedArray, **aggregates: fw.Aggregate) -> dict:
    """The result over all values of a column `v`."""
    result = (
        BASE.aggregate(**aggregates).run(pa.table({"t": pa.array(np.zeros(len(column), np.int64)), "v": column})).main
    )
    result.validate(full=True)
    assert result.num_rows == 1
    return {name: result[name] for name in aggregates}


ALL = {"n": fw.Count(), "c": fw.Count("v"), "s": fw.Sum("v"), "lo": fw.Min("v"), "hi": fw.Max("v"), "m": fw.Mean("v")}


@pytest.mark.parametrize("variant", ["plain", "sliced", "no nulls", "dictionary", "chunks"])
@pytest.mark.parametrize("kind", INTS, ids=str)
def test_ints(kind: pa.DataType, variant: str) -> None:
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    values = [
        None,
        3,
        2**bits - 1 if bits < 63 else 2**62,
        0,
        None,
        -1 if pa.types.is_signed_integer(kind) else 1,
        5,
        None,
        2,
        2,
    ]
    column = pa.array(values, kind)
    if variant == "dictionary":
        column = column.dictionary_encode()
    elif variant == "chunks":
        column = pa.chunked_array([column[:3], column[:0], column[3:]])
    else:
        column = VARIANTS[variant](column)
    left = [value for value in column.to_pylist() if value is not None]
    found = in_one_window(column, **ALL)
    assert found["lo"].type == found["hi"].type == kind
    assert found["s"].type == found["n"].type == pa.int64()
    wanted = (len(column), len(left), sum(left), min(left), max(left), float(Fraction(sum(left), len(left))))
    assert tuple(column[0].as_py() for column in found.values()) == pytest.approx(wanted, rel=1e-15)
    assert found["s"][0].as_py() == sum(left)


@pytest.mark.parametrize(
    ("kind", "variant"),
    [
        (kind, variant)
        for kind in FLOATS
        for variant in ("plain", "sliced", "no nulls", "dictionary", "chunks")
        if (kind, variant) != (pa.float16(), "dictionary")  # Arrow has none
    ],
    ids=str,
)
def test_floats(kind: pa.DataType, variant: str) -> None:
    column = pa.array(
        np.array([1.5, -0.25, 100, 3, 7, 0, 0.5, 8, 2, 2], dtype=f"f{kind.bit_width // 8}"), mask=np.arange(10) % 3 == 0
    )
    if variant == "dictionary":
        column = column.dictionary_encode()
    elif variant == "chunks":
        column = pa.chunked_array([column[:3], column[:0], column[3:]])
    elif variant == "no nulls":
        column = pa.array(np.array([1.5, -0.25], dtype=f"f{kind.bit_width // 8}"))
    else:
        column = VARIANTS[variant](column)
    left = [float(value) for value in column.to_pylist() if value is not None]
    found = in_one_window(column, **ALL)
    assert found["lo"].type == found["hi"].type == kind
    assert found["s"].type == found["m"].type == pa.float64()
    assert tuple(float(column[0].as_py()) for column in found.values()) == (
        len(column),
        len(left),
        sum(left),
        min(left),
        max(left),
        sum(left) / len(left),
    )


@pytest.mark.parametrize("kind", [*INTS, *FLOATS], ids=str)
def test_without_values_all_but_counts_are_null(kind: pa.DataType) -> None:
    found = in_one_window(pa.nulls(3, kind), **ALL)
    assert [column[0].as_py() for column in found.values()] == [3, 0, None, None, None, None]


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_nan_is_above_all_and_infects_sums(kind: pa.DataType) -> None:
    dtype = f"f{kind.bit_width // 8}"
    for values, wanted in [
        ([1.0, NAN, -1.0], (NAN, -1.0, NAN, NAN)),
        ([NAN, NAN], (NAN, NAN, NAN, NAN)),
        ([np.inf, 1.0], (np.inf, 1.0, np.inf, np.inf)),
        ([np.inf, -np.inf], (NAN, -np.inf, np.inf, NAN)),
        ([-np.inf, NAN, 0.0], (NAN, -np.inf, NAN, NAN)),
    ]:
        found = in_one_window(
            pa.array(np.array(values, dtype=dtype)), s=fw.Sum("v"), lo=fw.Min("v"), hi=fw.Max("v"), m=fw.Mean("v")
        )
        np.testing.assert_array_equal([float(column[0].as_py()) for column in found.values()], wanted)


def test_float_sums_carry_their_rounding_error() -> None:
    values = [1e16, 1.0, -1e16, 1.0] * 1_000
    assert in_one_window(pa.array(values), s=fw.Sum("v"))["s"][0].as_py() == 2_000.0
    tenths = in_one_window(pa.array([0.1] * 10), s=fw.Sum("v"), m=fw.Mean("v"))
    assert (tenths["s"][0].as_py(), tenths["m"][0].as_py()) == (1.0, 0.1)


def test_mean_of_large_ints_is_exact() -> None:
    assert in_one_window(pa.array([2**62, 2**62, 2**62 + 3]), m=fw.Mean("v"))["m"][0].as_py() == float(2**62 + 1)


@pytest.mark.parametrize("variant", ["plain", "sliced"])
@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_extremes_of_times_keep_the_type(kind: pa.DataType, variant: str) -> None:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    low, high = (0, 86_399) if pa.types.is_time(kind) else (-(2**30), 2**30)
    step = 86_400_000 if kind == pa.date64() else 1
    column = VARIANTS[variant](pa.array([None, 5 * step, high * step, None, low * step, 7 * step], width).cast(kind))
    found = in_one_window(column, lo=fw.Min("v"), hi=fw.Max("v"), c=fw.Count("v"))
    for name, wanted in (("lo", low), ("hi", high)):
        assert found[name].type == kind
        assert found[name].cast(width)[0].as_py() == wanted * step


def test_extremes_of_the_event_time_itself() -> None:
    stamps = [dt.datetime(2024, 1, 1, 0, 0, 0, 7), dt.datetime(2024, 1, 1, 0, 0, 0, 3)]
    result = (
        BASE.aggregate(first=fw.Min("t"), last=fw.Max("t"))
        .run(pa.table({"t": pa.array(stamps, pa.timestamp("us"))}))
        .main
    )
    assert (result["first"].to_pylist(), result["last"].to_pylist()) == ([stamps[1]], [stamps[0]])


@pytest.mark.parametrize(
    "column",
    [column_of(kind, values) for _, kind, values in KEY_TYPES]
    + [pa.array([[1], None, []]), pa.array([{"a": 1}, None])],
    ids=lambda column: str(column.type),
)
def test_values_of_any_type_are_counted(column: pa.Array) -> None:
    for kind in (column, VARIANTS["sliced"](column)):
        found = in_one_window(kind, n=fw.Count(), c=fw.Count("v"))
        nulls = sum(value is None for value in kind.to_pylist())
        assert (found["n"][0].as_py(), found["c"][0].as_py()) == (len(kind), len(kind) - nulls)


@pytest.mark.parametrize(("kind", "values"), [case[1:] for case in KEY_TYPES], ids=[case[0] for case in KEY_TYPES])
def test_keys_through_a_stream(kind: pa.DataType, values: list) -> None:
    """In chunks, saved and restored, late, bad: a key comes out as it went in."""
    column = column_of(kind, values)
    column = pa.chunked_array([column, column[:0], column[1:]], kind)
    n = len(column)
    table = pa.table({"k": column, "t": pa.array(range(n)), "pair": pa.array(["x", None] * n)[:n]})
    for keys in (("k",), ("k", "pair"), ("pair", "k")):
        spec = fw.key_by(*keys).event_time("t").window(fw.TumblingEventTimeWindows.of(5))
        spec = spec.side_output_late_data().bad_rows("divert").aggregate(n=fw.Count(), c=fw.Count("k"))
        stream, restored = spec.open(), spec.open()
        stream.process(table[: n // 2])
        chunks = [stream.snapshot()]
        stream.process(table[n // 2 :])
        restored.restore([*chunks, stream.delta()])
        wanted: dict[tuple, list[int]] = {}
        for *key, value, time in zip(*(table[name].to_pylist() for name in (*keys, "k", "t")), strict=True):
            counts = wanted.setdefault((*map(readable, key), time // 5), [0, 0])
            counts[0] += 1
            counts[1] += value is not None
        for other in (stream, restored):
            result = other.advance_watermark(fw.MAX_TIMESTAMP).main
            result.validate(full=True)
            columns = [
                *(map(readable, result[name].to_pylist()) for name in keys),
                [start // 5 for start in result["window_start"].cast(pa.int64()).to_pylist()],
            ]
            got = dict(
                zip(
                    zip(*columns, strict=True),
                    zip(result["n"].to_pylist(), result["c"].to_pylist(), strict=True),
                    strict=True,
                )
            )
            assert got == {key: tuple(counts) for key, counts in wanted.items()}
            assert result.num_rows == len(wanted)
        stream._check_invariants()
        late = stream.process(table).late
        bad = stream.process(table.set_column(1, "t", pa.nulls(n, pa.int64()))).bad
        for handed_out in (late, bad):
            handed_out.validate(full=True)
            assert handed_out["k"].type == roomy_type(kind)
            assert list(map(readable, handed_out["k"].to_pylist())) == list(map(readable, table["k"].to_pylist()))


def test_null_in_the_dictionary_is_null() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), pa.array(["x", None]))
    result = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count(), c=fw.Count("k")).run(
        pa.table({"k": codes, "t": [1, 2, 3, 4]})
    )  # fmt: skip
    assert sorted(zip(*(result.main[name].to_pylist() for name in ("k", "n", "c")), strict=True), key=repr) == [
        ("x", 1, 1),
        (None, 3, 0),
    ]


def test_batches_with_dictionaries_of_their_own() -> None:
    first, second = (
        pa.table({"k": pa.array(values).dictionary_encode(), "t": [1, 2]}) for values in (["a", "b"], ["b", "c"])
    )
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = spec.open()
    stream.process(first)
    stream.process(second)
    apart = stream.advance_watermark(9).main
    for main in (apart, spec.run(pa.concat_tables([first, second])).main):
        assert sorted(zip(main["k"].to_pylist(), main["n"].to_pylist(), strict=True)) == [("a", 1), ("b", 2), ("c", 1)]


def test_categories_may_grow_beyond_their_index() -> None:
    few = pd.DataFrame({"k": pd.Categorical(["a", "b"]), "t": [1, 2]})
    many = pd.DataFrame({"k": pd.Categorical([f"x{i}" for i in range(300)]), "t": [3] * 300})
    codes = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{c}{i}" for i in range(100)]) for c in "xy"
    ]
    chunked = pa.table({"k": pa.chunked_array(codes), "t": [4] * 200})
    for late in (False, True):
        spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count("k"))
        stream = (spec.side_output_late_data() if late else spec).open()
        for batch in (few, many, chunked, chunked, few):
            stream.process(batch)
        counts = stream.advance_watermark(9).main.sort_by("k")
        assert counts.num_rows == 2 + 300 + 100
        assert dict(zip(*(counts[name].to_pylist() for name in ("k", "n")), strict=True)) | {
            "a": 2,
            "x1": 3,
            "x299": 1,
            "y7": 2,
        } == dict(zip(*(counts[name].to_pylist() for name in ("k", "n")), strict=True))
        stream._check_invariants()


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.string_view()], ids=str)
def test_plain_batches_after_one_of_dictionaries(kind: pa.DataType) -> None:
    first = pa.array(["1", "2"]).dictionary_encode()
    codes = pa.DictionaryArray.from_arrays(first.indices, first.dictionary.cast(kind))
    stream = (
        fw.key_by("k")
        .event_time("t")
        .window(fw.TumblingEventTimeWindows.of(10))
        .side_output_late_data()
        .aggregate(n=fw.Count())
        .open()
    )
    stream.process(pa.table({"k": codes, "t": [1, 1]}))
    stream.process(pa.table({"k": pa.array(["1", "3", None]).cast(kind), "t": [1, 1, 1]}))
    stream.process(pa.table({"k": pa.nulls(1), "t": [1]}))
    main = stream.advance_watermark(9).main
    assert sorted(zip(map(str, main["k"].to_pylist()), main["n"].to_pylist(), strict=True)) == [
        ("1", 2),
        ("2", 1),
        ("3", 1),
        ("None", 2),
    ]


def test_strided_and_read_only_numpy_below() -> None:
    block = np.arange(40, dtype=np.int64).reshape(20, 2)
    block.flags.writeable = False
    result = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(1_000)).aggregate(s=fw.Sum("t")).run(
        pa.table({"k": pa.array(block[:, 0] % 3), "t": pa.array(block[:, 1])})
    )  # fmt: skip
    assert sum(result.main["s"].to_pylist()) == int(block[:, 1].sum())
