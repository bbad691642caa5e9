"""Keys as text, for the names that a store gives its records: readable, reversible, without separators in them."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.decoding import decoded, decoded_type
from fastwin.errors import SpecError, StoreError

__all__ = [
    "MAX_KEY_BYTES",
    "check_key_types",
    "column_from_text",
    "converted_exactly",
    "is_taken",
    "key_from_text",
    "key_to_text",
    "keys_to_text",
    "shown_key",
    "text_of",
    "texts_of",
]

MAX_KEY_BYTES = 1_024
"""The longest key, as text in UTF-8."""

_SHOWN = 60
_NULL = "~"
# What separates parts of names in a store, hash tags of Redis Cluster, and what does not print.
_UNSAFE = re.compile(r"[\x00-\x20%{}:,~\x7f]")


def check_key_types(fields: Sequence[pa.Field]) -> None:
    """Raises SpecError for a key column that is no text, int, boolean or date."""
    for field in fields:
        kind = decoded_type(field.type)
        known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
        if not any(test(kind) for test in known) and not pa.types.is_date(kind):
            raise SpecError(f"store: key column {field.name!r} is {kind}; it must be text, an int, a boolean or a date")


def key_to_text(values: Sequence[Any]) -> str:
    """Returns the text of a key: its values with a comma between, null as ``~``, odd characters as ``%XX``.

    >>> key_to_text(["a b", 7, None])
    'a%20b,7,~'
    """
    text = _text(values)
    if not is_taken(text):
        raise StoreError(f"store: a key is longer than {MAX_KEY_BYTES} bytes, or not in UTF-8: {text[:_SHOWN]!r}...")
    return text


def is_taken(text: str) -> bool:
    """Returns whether stores take a key with this text: it is not too long, and UTF-8."""
    try:
        return len(text.encode()) <= MAX_KEY_BYTES
    except UnicodeEncodeError:
        return False


def shown_key(text: str) -> str:
    """Returns how a key's text begins, with bytes that are no UTF-8 as ``\\xff``."""
    return text[:_SHOWN].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _text(values: Sequence[Any]) -> str:
    return ",".join(map(_part, values))


def _part(value: Any) -> str:
    if value is None:
        return _NULL
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def key_from_text(text: str, fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    """Returns the values whose text ``key_to_text`` had given. Raises StoreError for any other text."""
    parts = text.split(",") if fields or text else []
    if len(parts) != len(fields):
        raise StoreError(f"store: {text!r} is no key of {', '.join(field.name for field in fields) or 'no columns'}")
    try:
        return tuple(_value(part, decoded_type(field.type)) for part, field in zip(parts, fields, strict=True))
    except (ValueError, pa.ArrowException):
        raise StoreError(f"store: {text!r} is no key of {', '.join(field.name for field in fields)}") from None


def _value(part: str, kind: pa.DataType) -> Any:
    if part == _NULL:
        return None
    text = unquote(part, errors="strict")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text
    return pa.scalar(text).cast(kind).as_py()


def keys_to_text(columns: Sequence[pa.Array | pa.ChunkedArray], n: int) -> list[str]:
    """Returns the texts of n keys, given as columns, also of those that no store takes: too long, or not in UTF-8.

    A byte that is no UTF-8 is a lone surrogate there, so keys that differ have texts that do.
    """
    if not columns:
        return [""] * n
    seen: dict[tuple, str] = {}
    texts = []
    for values in zip(*map(_values_of, columns), strict=True):
        text = seen.get(values)
        if text is None:
            text = seen[values] = _text(values)
        texts.append(text)
    return texts


def _values_of(column: pa.Array | pa.ChunkedArray) -> list:
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        raw = [one for chunk in chunks for one in decoded(chunk).cast(pa.large_binary()).to_pylist()]
        return [None if one is None else one.decode("utf-8", "surrogateescape") for one in raw]


def converted_exactly(column: Any, kind: pa.DataType) -> Any:
    """Returns a column, or a scalar, cast to a type. Raises ArrowException where a value would be another one: 5 as a
    boolean, a time as its date, "05" as an int."""
    found = column.cast(kind)
    if pa.types.is_null(column.type) or pa.types.is_decimal(column.type):  # which Arrow itself casts exactly, or not
        return found
    back = found.cast(column.type)
    same = pc.equal(back, column) if isinstance(column, pa.Scalar) else pc.all(pc.equal(back, column))
    if same.as_py() is False:
        raise pa.ArrowInvalid(f"some of its values, {column.type}, would be others as {kind}")
    return found


def _asked(value: Any, kind: pa.DataType) -> Any:
    """Returns a value as those of a key column are. Raises ArrowException for one that it cannot have."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None or type(value) is _own_type(kind):
        return value
    return converted_exactly(pa.scalar(value), kind).as_py()


def _own_type(kind: pa.DataType) -> type:
    """Returns the Python type of a key column's values."""
    if pa.types.is_boolean(kind):
        return bool
    return int if pa.types.is_integer(kind) else date if pa.types.is_date(kind) else str


def text_of(key: Any, fields: Sequence[pa.Field]) -> str:
    """Returns the text of a key: the value of the key column, or a tuple of several. Raises SpecError."""
    width = len(fields)
    values = key if isinstance(key, tuple | list) and (width != 1 or len(key) == 1) else (key,)
    try:
        text = _text([_asked(value, decoded_type(field.type)) for value, field in zip(values, fields, strict=True)])
        text.encode()
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        names, kinds = ", ".join(field.name for field in fields), ", ".join(str(field.type) for field in fields)
        raise SpecError(f"keys: {key!r} is no key of {names or 'no columns'} ({kinds})") from None
    if not is_taken(text):
        raise SpecError(
            f"keys: at most {MAX_KEY_BYTES} bytes in a key's text, got {len(text.encode())}: {text[:60]!r}..."
        )
    return text


def texts_of(keys: Sequence[Any], fields: Sequence[pa.Field]) -> list[str]:
    """Returns the texts of keys, each once. Raises SpecError."""
    if isinstance(keys, str | bytes):
        raise SpecError(f"keys: must be a list of keys, got {keys!r}")
    return list(dict.fromkeys(text_of(key, fields) for key in keys))


def column_from_text(texts: Sequence[str], fields: Sequence[pa.Field]) -> list[pa.Array]:
    """Returns the key columns of keys given as text."""
    known = {text: key_from_text(text, fields) for text in dict.fromkeys(texts)}
    rows = [known[text] for text in texts]
    return [pa.array([row[i] for row in rows], decoded_type(field.type)) for i, field in enumerate(fields)]
