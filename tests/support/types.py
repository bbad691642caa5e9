"""A column of every Arrow type, with values and a null in it."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["ALL_TYPES", "column"]

_VIEW = pa.string_view()
_FIELDS = [pa.field("a", pa.int64()), pa.field("b", pa.string())]
_NESTED = pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), pa.string()))
_RUNS = pa.run_end_encoded(pa.int32(), pa.int64())

ALL_TYPES: list[pa.DataType] = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), _VIEW, pa.binary(), pa.large_binary(),
    pa.binary_view(), pa.binary(3), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns"),
    pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns"), pa.month_day_nano_interval(),
    pa.decimal128(9, 2), pa.decimal256(40, 2),
    pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_view(pa.int64()),
    pa.large_list_view(pa.int64()), pa.struct(_FIELDS), pa.struct([]), pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint8(), pa.int64()), pa.dictionary(pa.int32(), _VIEW),
    pa.dictionary(pa.int32(), pa.bool_()), pa.dictionary(pa.int32(), pa.decimal128(9, 2)), pa.dictionary(pa.int64(), pa.null()),
    pa.dictionary(pa.int32(), pa.struct(_FIELDS)), pa.dictionary(pa.int32(), pa.list_(pa.int64())),
    pa.dictionary(pa.int8(), pa.timestamp("us")),
    pa.dictionary(pa.int8(), pa.bool8()), pa.dictionary(pa.int32(), pa.opaque(pa.int64(), "x", "y")),
    pa.list_(pa.dictionary(pa.int8(), pa.bool8())), pa.dense_union([pa.field("a", pa.dictionary(pa.int8(), pa.bool8()))]),
    *(pa.dictionary(pa.int8(), make()) for make in (getattr(pa, name, None) for name in ("uuid", "json_")) if make is not None),
    _NESTED, pa.dictionary(pa.int16(), _NESTED), pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), _VIEW)),
    pa.run_end_encoded(pa.int32(), _NESTED), pa.struct([("a", _NESTED)]),
    _RUNS, pa.run_end_encoded(pa.int16(), pa.string()), pa.run_end_encoded(pa.int64(), _VIEW),
    pa.run_end_encoded(pa.int32(), pa.list_(pa.int64())), pa.run_end_encoded(pa.int32(), pa.timestamp("ms")),
    pa.dense_union(_FIELDS), pa.sparse_union(_FIELDS),
    pa.list_(_VIEW), pa.large_list(_VIEW), pa.list_(_VIEW, 2), pa.struct([("a", _VIEW)]), pa.map_(_VIEW, _VIEW),
    pa.list_(pa.list_view(_VIEW)), pa.list_(pa.struct([("a", pa.list_(_VIEW))])),
    pa.list_(pa.dictionary(pa.int8(), pa.string())), pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))]),
    pa.list_(_RUNS), pa.struct([("a", _RUNS)]), pa.list_(pa.dense_union(_FIELDS)), pa.list_(pa.null()),
    pa.list_(pa.month_day_nano_interval()),
    pa.bool8(), pa.opaque(pa.int64(), "x", "y"), pa.list_(pa.bool8()), pa.struct([("a", pa.bool8())]),
    pa.fixed_shape_tensor(pa.int32(), [2]),
    *(make() for make in (getattr(pa, name, None) for name in ("uuid", "json_")) if make is not None),
    *(make(5, 2) for make in (getattr(pa, name, None) for name in ("decimal32", "decimal64")) if make is not None),
]  # fmt: skip


def column(kind: pa.DataType) -> pa.Array:
    """Three values of a type, the last one null where the type has one."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, column(kind.storage_type))
    if types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], kind.run_end_type), column(kind.value_type)[1:])
    if types.is_union(kind):
        members, names = [column(field.type) for field in kind], [field.name for field in kind]
        ids = pa.array([0, 1, 0], pa.int8())
        if kind.mode == "dense":
            return pa.UnionArray.from_dense(ids, pa.array([0, 1, 2], pa.int32()), members, names)
        return pa.UnionArray.from_sparse(ids, members, names)
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(pa.array([1, 0, None], kind.index_type), column(kind.value_type))
    if types.is_struct(kind) and kind.num_fields:
        return pa.StructArray.from_arrays([column(field.type) for field in kind], fields=list(kind))
    if types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array([0, 1, 3, 3], pa.int32()), column(kind.value_type), type=kind)
    values = [_value(kind), _value(kind), None]
    try:
        return pa.array(values, kind)
    except pa.ArrowNotImplementedError:
        return pa.array(values).cast(kind)


def _value(kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        return [_value(kind.value_type)]
    if types.is_fixed_size_list(kind):
        return [_value(kind.value_type)] * kind.list_size
    if types.is_struct(kind):
        return {field.name: _value(field.type) for field in kind}
    if types.is_map(kind):
        return [(_value(kind.key_type), _value(kind.item_type))]
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return b"x" * kind.byte_width
    plain = [
        (types.is_null, None), (types.is_boolean, True), (types.is_integer, 1), (types.is_float16, np.float16(1.5)),
        (types.is_floating, 1.5), (types.is_decimal, Decimal("1.25")), (types.is_date, dt.date(2020, 1, 1)),
        (types.is_time, dt.time(1)), (types.is_timestamp, dt.datetime(2020, 1, 1)), (types.is_duration, dt.timedelta(1)),
        (types.is_interval, pa.MonthDayNano([1, 2, 3])), (types.is_binary, b"longer than twelve bytes"),
        (types.is_large_binary, b"longer than twelve bytes"), (types.is_binary_view, b"longer than twelve bytes"),
    ]  # fmt: skip
    return next((value for test, value in plain if test(kind)), "longer than twelve bytes")
