"""Buffers that begin at any address, as a message in the middle of a file has them: kernels read aligned copies.

And booleans, which are bits of a buffer.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns.buffers import int64_values, sortable, spread, stored, text_values
from fastwin.columns.decoding import decoded
from tests.support.columns import KEY_TYPES, column_of, readable


def moved(array: pa.Array) -> pa.Array:
    """The same values in buffers that each begin one byte after an address that suits."""
    if pa.types.is_dictionary(array.type):
        indices, values = moved(array.indices), moved(array.dictionary)
        return pa.DictionaryArray.from_arrays(indices, values)
    buffers = [None if buffer is None else pa.py_buffer(b"x" + buffer.to_pybytes())[1:] for buffer in array.buffers()]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


TYPES = [(name, kind, values) for name, kind, values in KEY_TYPES if not pa.types.is_null(kind)]


def validity_of(array: pa.Array) -> list[bool]:
    return array.is_valid().to_pylist()


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("name", "kind", "values"), TYPES, ids=[name for name, _, _ in TYPES])
def test_kernels_get_aligned_arrays(name: str, kind: pa.DataType, values: list, offset: int) -> None:
    array = column_of(kind, values)[offset:]
    odd = decoded(moved(array))
    assert repr(odd.to_pylist()) == repr(decoded(array).to_pylist())
    if (
        pa.types.is_fixed_size_binary(odd.type)
        or pa.types.is_decimal(odd.type)
        or "binary" in str(odd.type)
        or "string" in str(odd.type)
    ):
        parts = [(text_values(odd), text_values(decoded(array)))]
    else:
        parts = [((int64_values(odd),), (int64_values(decoded(array)),))]
    for found, wanted in parts:
        assert all(part.flags.aligned for part in found)
        assert found[0].tolist() == wanted[0].tolist() or pa.types.is_fixed_size_binary(odd.type)
    if pa.types.is_floating(odd.type):
        assert stored(odd, f"f{odd.type.bit_width // 8}").flags.aligned


@pytest.mark.parametrize(("name", "kind", "values"), TYPES, ids=[name for name, _, _ in TYPES])
def test_keys_values_and_times_may_begin_anywhere(name: str, kind: pa.DataType, values: list) -> None:
    array = column_of(kind, values)
    times = pa.array([5] * len(array), pa.int64()).cast(pa.timestamp("us"))
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
    spec = spec.aggregate(n=fw.Count("k"), first=fw.First("k"), high=fw.Max("k"), uv=fw.HyperLogLog("k"))
    apart = {"k": array, "t": times}
    whole = spec.run(pa.table(apart)).main.to_pylist()
    odd = spec.run(pa.table({column: moved(part) for column, part in apart.items()})).main.to_pylist()
    assert [{n: readable(v) for n, v in row.items()} for row in odd] == [
        {n: readable(v) for n, v in row.items()} for row in whole
    ]


def test_a_message_that_begins_at_an_odd_place() -> None:
    rows = pa.record_batch({"k": pa.array(range(1000)), "t": pa.array(range(1000)), "v": pa.array([0.5] * 1000)})
    blob = pa.py_buffer(b"x" + rows.serialize().to_pybytes())[1:]
    odd = pa.ipc.read_record_batch(blob, rows.schema)
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(s=fw.Sum("v"))
    assert spec.run(odd).main.equals(spec.run(rows).main)
    assert all(part.flags.aligned for part in (int64_values(odd["k"]), int64_values(odd["t"])))


def test_state_that_begins_at_an_odd_place() -> None:
    rows = pa.table({"k": pa.array(range(1000)), "t": pa.array(range(1000)), "v": pa.array(range(1000))})
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(s=fw.Sum("v"))
    stream, again = spec.open(), spec.open()
    stream.process(rows)
    again.restore([memoryview(b"x" + stream.snapshot())[1:]])
    assert again.advance_watermark(fw.MAX_TIMESTAMP).main.equals(stream.advance_watermark(fw.MAX_TIMESTAMP).main)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 13, 60])
def test_booleans_of_a_slice(offset: int, length: int) -> None:
    values = [i % 3 == 0 or i % 7 == 2 for i in range(100)]
    array = pa.array(values)[offset : offset + length]
    assert int64_values(array).tolist() == [int(value) for value in values[offset : offset + length]]


def test_a_slice_of_booleans_reads_its_own_bytes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    unpackbits = np.unpackbits

    def counted(bits: np.ndarray, **named: Any) -> np.ndarray:
        read.append(len(bits))
        return unpackbits(bits, **named)

    monkeypatch.setattr(np, "unpackbits", counted)
    array = pa.array([True, False] * 4_000)
    for at in range(0, 8_000, 80):
        assert int64_values(array[at : at + 80]).sum() == 40
    assert sum(read) <= 1_000 + 100


@pytest.mark.parametrize("offset", [0, 3])
def test_booleans_that_are_all_null(offset: int) -> None:
    nothing = pa.nulls(12, pa.bool_())[offset:]
    assert int64_values(nothing).tolist() == [0] * (12 - offset)
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count("v"))
    times = pa.array([5] * len(nothing), pa.int64())
    assert spec.run(pa.table({"k": nothing, "t": times, "v": nothing})).main["n"].to_pylist() == [0]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([-1, 5, -(2**63), 2**63 - 1, 0, 5]),
        pa.array([2**64 - 1, 0, 2**63, 2**63 - 1], pa.uint64()),
        pa.array([-7, 7, 0], pa.int8()),
        pa.array([200, 7, 0], pa.uint8()),
        pa.array([0.0, -0.0, -1.5, float("nan"), float("-inf"), float("inf"), 5e-324, -5e-324]),
        pa.array([1.5, -2.5, float("nan")], pa.float32()),
        pa.array(np.array([1.5, -2.5, np.nan], np.float16)),
        pa.array([True, False, True]),
        pa.array([3, -4, 0], pa.timestamp("us", "UTC")),
        pa.array([3, -4, 0], pa.date32()),
        pa.array([3, -4, 0], pa.duration("s")),
    ],
    ids=lambda array: str(array.type),
)
def test_numbers_in_the_order_of_values(array: pa.Array) -> None:
    numbers = sortable(array)
    assert numbers is not None
    array = array.cast(pa.float32()) if array.type == pa.float16() else array
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_pylist()
    assert np.unique(numbers, return_inverse=True)[1].tolist() == [rank - 1 for rank in ranks]


def test_text_and_decimals_have_no_numbers_of_their_order() -> None:
    assert sortable(pa.array(["a"])) is None
    assert sortable(pa.array([1], pa.decimal128(5, 2))) is None


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("filler", ["a value", "null"])
@pytest.mark.parametrize(("name", "kind", "values"), KEY_TYPES, ids=[name for name, _, _ in KEY_TYPES])
def test_values_among_others(name: str, kind: pa.DataType, values: list, filler: str, offset: int) -> None:
    column = decoded(column_of(kind, values))
    other = column[:1] if filler == "a value" else pa.nulls(1, column.type)
    column = column[offset:]
    places = np.arange(len(column), dtype=np.int64)[::-1] * 3 + 1
    n = 3 * len(column) + 1
    expected = other.to_pylist() * n
    for place, value in zip(places.tolist(), column.to_pylist(), strict=True):
        expected[place] = value
    found = spread(column, places, n, other)
    found.validate(full=True)
    assert found.type == column.type
    assert repr(found.to_pylist()) == repr(expected)
    assert found.null_count == expected.count(None)


def test_no_values_among_others_and_no_others() -> None:
    nothing, zero = pa.array([], pa.int32()), pa.array([0], pa.int32())
    assert spread(nothing, np.empty(0, np.int64), 2, zero).to_pylist() == [0, 0]
    assert spread(nothing, np.empty(0, np.int64), 0, zero).to_pylist() == []
    assert spread(pa.array([[1], None]), np.array([1, 0]), 2, pa.array([[]], pa.list_(pa.int64()))).to_pylist() == [
        None, [1]
    ]  # fmt: skip
