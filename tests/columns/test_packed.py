"""Lists, structs and maps as bytes come back as they were, however deep, and wherever they are cut."""

from typing import Any

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


@given(arrays, st.integers(0, 3))
def test_what_is_packed_comes_back(given_values: Any, cut: int) -> None:
    kind, values = given_values
    array = pa.array(values, kind).slice(cut)
    assert can_pack(kind)
    offsets, data = packed(array)
    valid = validity(array)
    back = unpacked(offsets, data, None if valid is None else valid.view(bool), kind)
    back.validate(full=True)
    assert back.equals(array)


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.string(), pa.list_(pa.dictionary(pa.int32(), pa.string())), pa.struct([("a", pa.string_view())])],
)
def test_what_cannot_be_packed(kind: pa.DataType) -> None:
    assert not can_pack(kind)
