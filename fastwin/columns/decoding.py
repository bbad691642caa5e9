"""Decodes what Arrow cannot cut into rows, put together or save on the way in, and dictionaries on the way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import roomy_text, runs, text_values, validity

__all__ = [
    "converted",
    "decoded",
    "decoded_type",
    "encoded",
    "from_objects",
    "is_readable",
    "parts",
    "readable_type",
    "rebuilt",
    "roomy_type",
    "take_column",
    "take_rows",
    "taken",
    "taken_type",
    "within_reach",
    "without_run_ends",
]

# That offsets of 32 bits reach.
_MOST_BYTES = 2**31 - 1


def rebuilt(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Returns a list, struct or map with the types within it changed; others as they are."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(change(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(change(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(change(kind.value_type)), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(change(field.type)) for field in kind])
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(change(kind.item_type))
        return pa.map_(kind.key_field.with_type(change(kind.key_type)), item, kind.keys_sorted)
    return kind


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type without views, at any depth: Arrow can neither take nor filter views."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    return rebuilt(kind, _without_views)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _wide(kind: pa.DataType) -> pa.DataType:
    """The type with offsets of 64 bits for one of views."""
    return pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()


def _has_views(kind: pa.DataType) -> bool:
    """Whether a type is a dictionary of views."""
    return bool(pa.types.is_dictionary(kind)) and _is_view(kind.value_type)


def _sizes(array: pa.Array) -> NDArray[np.int32]:
    """Returns how many bytes each of some text or views has, or more: what lies under nulls counts as it is."""
    if not _is_view(array.type):
        return np.diff(text_values(array)[0])
    views = array.buffers()[1]
    if views is None or not len(array):
        return np.zeros(0, np.int32)
    return np.maximum(np.frombuffer(views, np.int32)[4 * array.offset : 4 * (array.offset + len(array)) : 4], 0)


def _viewed_bytes(array: pa.Array) -> int:
    """Returns how many bytes views have, or more: what lies under nulls counts as it is."""
    return int(_sizes(array).sum(dtype=np.int64))


def _bytes_at(words: pa.Array, n: int, asked: Callable[[], pa.Array]) -> int:
    """Returns how many bytes text or views have at n indices, or more; 0 for other types. asked: makes the indices."""
    if not (_is_view(words.type) or words.type in (pa.string(), pa.binary())):
        return 0
    if len(words) <= n and (most := n * int(_sizes(words).max(initial=0))) <= _MOST_BYTES:
        return most
    indices = asked()
    if _is_view(words.type):
        return _viewed_bytes(_views_at(words, indices))
    ends = text_values(words)[0]
    if (most := n * int(ends[-1] - ends[0])) <= _MOST_BYTES:
        return most
    begins, ends = (pa.array(some).take(indices) for some in (ends[:-1], ends[1:]))
    return pc.sum(pc.subtract(ends, begins)).as_py() or 0


def _bytes_decoded(array: pa.Array) -> int:
    """Returns how many bytes text has, or more, once views, a dictionary or run ends are decoded; 0 for others."""
    if pa.types.is_dictionary(array.type):
        return _bytes_at(array.dictionary, len(array), lambda: array.indices)
    if pa.types.is_run_end_encoded(array.type):
        return _bytes_at(array.values, len(array), lambda: pa.array(runs(array)))
    return _viewed_bytes(array) if _is_view(array.type) else 0


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without views and dictionaries, at any depth."""
    kind = _without_views(kind)
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else rebuilt(kind, _plain)


def without_run_ends(kind: pa.DataType) -> pa.DataType:
    """Returns the type of the values of a run-end-encoded type; others as they are."""
    return without_run_ends(kind.value_type) if pa.types.is_run_end_encoded(kind) else kind


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which values of ``kind`` leave: dictionaries and views are decoded."""
    kind = _without_views(without_run_ends(kind))
    return decoded_type(kind.value_type) if pa.types.is_dictionary(kind) else kind


def parts(kind: pa.DataType) -> list[pa.DataType]:
    """Returns the types that a type is made of, one level down."""
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return [kind.value_type]
    return [kind.field(i).type for i in range(kind.num_fields)]


def is_readable(kind: pa.DataType) -> bool:
    """Whether Arrow reads a type as it was written: it loses dictionaries of dictionaries and of extension types."""
    if pa.types.is_dictionary(kind):
        value = kind.value_type
        if pa.types.is_dictionary(value) or isinstance(value, pa.BaseExtensionType):
            return False
    return all(map(is_readable, parts(kind)))


def readable_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that the state tells of: ``kind``, or as it is taken in where Arrow would not read it again."""
    return kind if is_readable(kind) else taken_type(kind)


def roomy_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that also takes what later batches bring: a dictionary of more values than its index counts."""
    if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
    return kind


def taken_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which a column of ``kind`` is taken in.

    Run ends, views and dictionaries within other types, and dictionaries that Arrow cannot put together are decoded. A
    dictionary has an index of at least 32 bits.
    """
    kind = without_run_ends(kind)
    if pa.types.is_dictionary(kind):
        return roomy_type(kind) if _unifies(kind.value_type) else taken_type(kind.value_type)
    return _plain(kind) if pa.types.is_nested(kind) else kind


def _unifies(kind: pa.DataType) -> bool:
    """Whether dictionaries of values of a type can be made one dictionary, and be made of values."""
    if pa.types.is_decimal(kind):
        return bool(kind.bit_width >= 128)
    if pa.types.is_float16(kind):  # Arrow takes the bits for integers
        return False
    tests = (pa.types.is_nested, pa.types.is_null, pa.types.is_dictionary, pa.types.is_run_end_encoded)
    return not any(test(kind) for test in tests) and not isinstance(kind, pa.BaseExtensionType)


def taken(array: pa.Array) -> pa.Array:
    """Returns an array as one of its ``taken_type``; a null in a dictionary is one of the indices then.

    Text of run ends has offsets of 64 bits where those of 32 do not reach it.
    """
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        return _taken_at(array.values, pa.array(runs(array)))
    if pa.types.is_dictionary(kind):
        if not _unifies(kind.value_type):
            return _taken_at(array.dictionary, array.indices)
        if array.dictionary.null_count:
            array = _without_null_values(array)
    return converted(array, taken_type(array.type))


def _taken_at(values: pa.Array, indices: pa.Array) -> pa.Array:
    values = taken(values)
    if _bytes_at(values, len(indices), lambda: indices) > _MOST_BYTES:
        values = roomy_text(values)
    return taken(take_column(values, indices))


def _without_null_values(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same values with a dictionary that holds no null: Arrow cannot put others together."""
    known = validity(array.dictionary)
    assert known is not None
    indices = array.indices.cast(pa.int64())
    marks = validity(indices)
    places = indices.fill_null(0).to_numpy()
    valid = known[places] != 0 if marks is None else (known[places] != 0) & (marks != 0)
    moved = pa.array((np.cumsum(known) - 1)[places], pa.int64(), mask=~valid)
    values = take_column(array.dictionary, pa.array(np.flatnonzero(known)))
    return pa.DictionaryArray.from_arrays(moved.cast(array.indices.type), values, ordered=array.type.ordered)


def converted(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns an array cast to ``kind``. Raises ArrowInvalid where that loses something.

    Arrow's own cast of lists of nulls, even to the same type, gives them too few values: reading these may end the
    process. It has none of a dictionary of views or lists to what is no dictionary.
    """
    if array.type == kind:
        return array
    decodes = _is_odd_dictionary(array.type) and not pa.types.is_dictionary(kind)
    by_parts = _are_alike(array.type, kind) and _is_odd(array.type)
    if not decodes and not by_parts:
        return array.cast(kind)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([converted(chunk, kind) for chunk in array.chunks], kind)
    if by_parts:
        return _by_parts(array, kind)
    values = decoded(array) if _has_views(array.type) else take_column(array.dictionary, array.indices)
    return converted(values, kind)


def _is_odd_dictionary(kind: pa.DataType) -> bool:
    return _has_views(kind) or (pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type))


def _is_odd(kind: pa.DataType) -> bool:
    """Whether Arrow itself casts a type, or one within it, to no other or to the wrong values."""
    return pa.types.is_null(kind) or _is_odd_dictionary(kind) or any(map(_is_odd, parts(kind)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are lists, both maps, or both structs with as many fields."""
    if pa.types.is_struct(one):
        return bool(pa.types.is_struct(other)) and one.num_fields == other.num_fields
    return (_is_list(one) and _is_list(other)) or bool(pa.types.is_map(one) and pa.types.is_map(other))


def _by_parts(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts what is in lists, maps or structs, and puts it together again. What lies under nulls is left out."""
    valid = array.is_valid().buffers()[1] if array.null_count else None
    if pa.types.is_struct(kind):
        fields = array.flatten() if array.null_count else [array.field(i) for i in range(kind.num_fields)]
        found = [_part(one, field.type) for one, field in zip(fields, kind, strict=True)]
        return pa.Array.from_buffers(kind, len(array), [valid], children=found)
    values, ends = _values_and_ends(array)
    if pa.types.is_fixed_size_list(kind):
        values = _spread(values, ends, array, kind.list_size)
        return pa.Array.from_buffers(kind, len(array), [valid], children=[_part(values, kind.value_type)])
    width = np.int64 if pa.types.is_large_list(kind) else np.int32
    if ends[-1] > np.iinfo(width).max:
        raise pa.ArrowInvalid(f"{ends[-1]} values are more than offsets of 32 bits reach")
    offsets = pa.py_buffer(ends.astype(width))
    return pa.Array.from_buffers(kind, len(array), [valid, offsets], children=[_part(values, kind.field(0).type)])


def _part(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(array), kind) if pa.types.is_null(array.type) else converted(array, kind)


def _values_and_ends(array: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Returns the values of lists or maps without those under nulls, and where each ends: int64[n + 1] from 0 on."""
    if pa.types.is_fixed_size_list(array.type):
        begins = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * array.type.list_size
    else:
        begins = array.offsets.to_numpy().astype(np.int64)
    sizes, marks = np.diff(begins), validity(array)
    if marks is not None and sizes[marks == 0].any():
        kept = np.repeat(marks != 0, sizes)
        sizes = np.where(marks != 0, sizes, 0)
        values = take_column(array.values, pa.array(begins[0] + np.flatnonzero(kept)))
    else:
        values = array.values[begins[0] : begins[-1]]
    return values, np.concatenate([[0], np.cumsum(sizes)])


def _spread(values: pa.Array, ends: NDArray[np.int64], array: pa.Array, size: int) -> pa.Array:
    """Returns the values of lists, ``size`` nulls for a null one. Raises ArrowInvalid for lists of other sizes."""
    marks = np.ones(len(array), np.bool_) if not array.null_count else validity(array) != 0
    if (np.diff(ends)[marks] != size).any():
        raise pa.ArrowInvalid(f"a list has not {size} values")
    there = np.repeat(marks, size)
    return values if there.all() else take_column(values, pa.array(np.cumsum(there) - 1, mask=~there))


def encoded(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns an array cast to ``kind``, also to a dictionary type. Raises ArrowInvalid where that loses something."""
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(array.type):
        array = converted(array, _without_views(kind.value_type)).dictionary_encode()
    return converted(array, kind)


def decoded(array: pa.Array) -> pa.Array:
    """Returns an array of dictionary or view type as one of its ``decoded_type``; others as they are.

    More text or bytes than offsets of 32 bits reach have some of 64. O(values), however many more a dictionary has.
    """
    if _has_views(array.type):
        words = array.dictionary
        if len(words) > len(array) or max(_viewed_bytes(words), _bytes_decoded(array)) > _MOST_BYTES:
            array = _views_at(words, array.indices)
    kind = _without_views(array.type)
    if _is_view(array.type) and _viewed_bytes(array) > _MOST_BYTES:
        kind = _wide(array.type)
    array = converted(array, kind)
    if not pa.types.is_dictionary(kind):
        return array
    if _bytes_decoded(array) > _MOST_BYTES:
        return roomy_text(array.dictionary).take(array.indices)
    return decoded(array.dictionary_decode())


def from_objects(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Returns an array of Python objects, as ``to_pylist`` gives them."""
    if isinstance(kind, pa.Bool8Type):
        storage = pa.array([None if value is None else int(value) for value in values], pa.int8())
        return pa.ExtensionArray.from_storage(kind, storage)
    return encoded(pa.array(values, decoded_type(kind)), kind)


def take_column(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Returns the values at the given indices; the type stays, also where Arrow itself cannot take it.

    O(values taken) for views, and for dictionaries of views, which stay as they are.
    """
    if _is_view(column.type):
        return _taken_views(column, indices)
    if _has_views(column.type):
        found = column.indices.take(indices)
        return pa.DictionaryArray.from_arrays(found, column.dictionary, ordered=column.type.ordered, safe=False)
    kind = _without_views(column.type)
    return converted(converted(column, kind).take(indices), column.type)


def _taken_views(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Takes from views, which Arrow cannot, with a copy of their text alone, of so much at a time as one buffer has."""
    found = _views_at(column, indices)
    pieces: list[pa.Array] = []
    at, ends = 0, _sizes(found).cumsum(dtype=np.int64)
    while at < len(found) or not pieces:
        before = int(ends[at - 1]) if at else 0
        stop = max(int(ends.searchsorted(before + _MOST_BYTES, side="right")), at + 1)
        pieces.append(found[at:stop].cast(_wide(column.type)).cast(column.type))
        at = stop
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _views_at(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Returns the views at the given indices, over the text of all."""
    if not len(column):  # so all indices are null
        return pa.nulls(len(indices), column.type)
    marks, views, *text = column.buffers()
    plain = pa.Array.from_buffers(pa.binary(16), len(column), [marks, views], -1, column.offset).take(indices)
    return pa.Array.from_buffers(column.type, len(plain), [*plain.buffers(), *text], -1, plain.offset)


def take_rows(rows: pa.RecordBatch, indices: NDArray[np.int64]) -> pa.RecordBatch:
    """Returns the rows at the given indices; the types stay."""
    wanted = pa.array(indices)
    return pa.RecordBatch.from_arrays([take_column(column, wanted) for column in rows.columns], schema=rows.schema)


def within_reach(rows: pa.RecordBatch) -> list[slice]:
    """Returns where to cut rows so that offsets of 32 bits reach all text of each column of views, dictionaries or run
    ends, once it is decoded, or one row's."""
    found, left = [], [(0, rows.num_rows)]
    while left:
        at, end = left.pop()
        if end - at > 1 and any(_bytes_decoded(column[at:end]) > _MOST_BYTES for column in rows.columns):
            middle = (at + end) // 2
            left += [(middle, end), (at, middle)]
        else:
            found.append(slice(at, end))
    return found
