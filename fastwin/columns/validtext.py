"""Text that others take: fastwin carries any bytes in a column of text, and what is outside takes UTF-8 alone."""

from collections.abc import Callable
from operator import is_

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.decoding import parts

__all__ = ["is_text", "valid_text", "without_nul"]


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text, with offsets of 32 or 64 bits."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def valid_text(array: pa.Array) -> pa.Array:
    """Returns an array with U+FFFD in place of bytes that are no UTF-8, also in text within lists, structs and maps.

    Where there are none, and for other types, it is the same object. Views and dictionaries are to be decoded before.
    """
    if is_text(array.type):
        return _valid(array)
    if not pa.types.is_nested(array.type) or not _has_text(array.type):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return _rebuilt(array, valid_text)
    return array


def without_nul(array: pa.Array) -> pa.Array:
    """Returns an array with U+FFFD in place of U+0000, also in text within lists, structs and maps.

    Where there is none, and for other types, it is the same object. All text must be valid.
    """
    if is_text(array.type):
        found = pc.any(pc.match_substring(array, "\0")).as_py()
        return pc.replace_substring(array, "\0", "\ufffd") if found else array
    if not pa.types.is_nested(array.type) or not _has_text(array.type):
        return array
    return _rebuilt(array, without_nul)


def _has_text(kind: pa.DataType) -> bool:
    return is_text(kind) or any(map(_has_text, parts(kind)))


def _valid(array: pa.Array) -> pa.Array:
    raw = array.cast(pa.large_binary())
    try:
        raw.cast(pa.large_string())  # which looks at all bytes
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode("utf-8", "replace") for one in raw.to_pylist()], array.type
        )
    return array


def _rebuilt(array: pa.Array, mended: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Returns a list, struct or map with other arrays in it; itself where these are the same objects."""
    kind = array.type
    if pa.types.is_struct(kind):
        given = [array.field(at) for at in range(kind.num_fields)]
    else:
        given = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
    parts_now = list(map(mended, given))
    if all(map(is_, given, parts_now)):
        return array
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(parts_now, fields=list(kind), mask=pc.is_null(array))
    if pa.types.is_map(kind):
        values = pa.StructArray.from_arrays(parts_now, fields=[kind.key_field, kind.item_field])
    else:
        (values,) = parts_now
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[values])
