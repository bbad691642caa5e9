"""Lists, structs and maps as bytes come back as they were, however deep, and wherever they are cut."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.columns.buffers import validity
from fastwin.columns.packed import can_pack, packed, unpacked

LEAVES = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    pa.large_binary(): st.binary(max_size=3),
    pa.timestamp("ns", "UTC"): st.integers(-(2**62), 2**62),
    pa.decimal256(60, 0): st.integers(-(10**59), 10**59),
    pa.null(): st.none(),
}


def _with_values(kind: pa.DataType) -> Any:
    """Values of a type, null among them."""
    if pa.types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: _with_values(field.type) for field in kind})
    elif pa.types.is_map(kind):
        found = st.lists(st.tuples(st.text(max_size=2), _with_values(kind.item_type)), max_size=3)
    elif pa.types.is_fixed_size_list(kind):
        found = st.lists(_with_values(kind.value_type), min_size=kind.list_size, max_size=kind.list_size)
    elif pa.types.is_nested(kind):
        found = st.lists(_with_values(kind.value_type), max_size=3)
    else:
        found = LEAVES[kind]
    return st.none() | found


def _around(inner: Any) -> Any:
    return st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.lists(inner, max_size=3).map(lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)])),
    )


kinds = _around(st.recursive(st.sampled_from(list(LEAVES)), _around, max_leaves=4))
arrays = kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(_with_values(kind), max_size=6)))


def _comes_back(array: pa.Array) -> None:
    assert can_pack(array.type)
    offsets, data = packed(array)
    valid = validity(array)
    back = unpacked(offsets, data, None if valid is None else valid.view(bool), array.type)
    back.validate(full=True)
    assert back.to_pylist() == array.to_pylist()
    assert back.equals(array)


@given(arrays, st.integers(0, 3))
def test_what_is_packed_comes_back(given_values: Any, cut: int) -> None:
    kind, values = given_values
    _comes_back(pa.array(values, kind).slice(cut))


NO_VALUES = [
    (pa.list_(pa.null()), [[], [None, None, None], None, [None, None]]),
    (pa.list_(pa.null(), 2), [[None, None], None, None, [None, None]]),
    (pa.map_(pa.string(), pa.list_(pa.null(), 2)), [[("a", [None, None]), ("b", None)], None, [("c", None)]]),
    (pa.list_(pa.list_(pa.list_(pa.null()), 1)), [[[[None] * 3]], [], None, [[[None]], None, [[None] * 3]]]),
    (pa.struct([("a", pa.list_(pa.null()))]), [{"a": [None] * 3}, {"a": [None]}, {"a": None}, None, {"a": [None]}]),
]


@pytest.mark.parametrize(("kind", "values"), NO_VALUES, ids=str)
def test_lists_of_nulls_alone(kind: pa.DataType, values: list[Any]) -> None:
    for cut in range(len(values)):
        _comes_back(pa.array(values, kind).slice(cut))


def test_what_lies_under_a_null_list() -> None:
    mask = pa.array([False, True, False])
    items = pa.array(["a", "b", "c", "d"])
    _comes_back(pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), items, mask=mask))
    _comes_back(pa.FixedSizeListArray.from_arrays(pa.array(range(6)), 2, mask=mask))
    _comes_back(pa.StructArray.from_arrays([pa.array(["a", "b", "c"])], ["x"], mask=mask).slice(1))


MIXED = pa.array(
    [
        {"t": "a text", "l": [[1, None], None, [2, 3, 4]]},
        None,
        {"t": None, "l": []},
        {"t": "x" * 50, "l": None},
        {"t": "", "l": [[], [5] * 9]},
    ],
    pa.struct([("t", pa.string()), ("l", pa.list_(pa.list_(pa.int16())))]),
)


@pytest.mark.parametrize("piece", [0, 1, 7, 60])
def test_bytes_are_the_same_however_many_are_copied_at_a_time(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, data = packed(MIXED)
    monkeypatch.setattr("fastwin.columns.packed._PIECE_BYTES", piece)
    found = packed(MIXED)
    assert np.array_equal(found[0], offsets)
    assert np.array_equal(found[1], data)
    _comes_back(MIXED)


@pytest.mark.parametrize("texts", [1, 8_000])
@pytest.mark.parametrize(
    "around",
    [
        lambda texts: pa.StructArray.from_arrays([texts], ["text"]),
        lambda texts: pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts),
        lambda texts: pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), texts),
    ],
    ids=["structs", "one list", "lists"],
)
def test_packing_takes_a_few_times_the_memory(texts: int, around: Callable) -> None:
    size = 8_000_000
    array = around(pa.array(["x" * (size // texts)] * texts))
    tracemalloc.start()
    try:
        offsets, data = packed(array)
        assert tracemalloc.get_traced_memory()[1] < 4 * size
        tracemalloc.reset_peak()
        back = unpacked(offsets, data, None, array.type)
        assert tracemalloc.get_traced_memory()[1] < 4 * size
    finally:
        tracemalloc.stop()
    assert back.equals(array)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.string(),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
        pa.struct([("a", pa.string_view())]),
        pa.list_view(pa.int64()),
        pa.large_list_view(pa.int64()),
        pa.list_(pa.list_view(pa.int64())),
        pa.dense_union([pa.field("a", pa.int64())]),
    ],
    ids=str,
)
def test_what_cannot_be_packed(kind: pa.DataType) -> None:
    assert not can_pack(kind)
