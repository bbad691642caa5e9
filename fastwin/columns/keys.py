"""Key columns of any type to the two kinds of keys that KeyTable knows, int64 and bytes, and back."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import from_int64, from_text, int64_values, stored, text_values, validity
from fastwin.columns.decoding import decoded, decoded_type
from fastwin.core.keys.keycolumns import decode_rows, encode_rows, first_seen, hash_int64, hash_text
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.gather import take
from fastwin.errors import SpecError

__all__ = ["DictionaryKeys", "EncodedKeys", "KeyCodec", "encode_keys", "key_hash"]


@dataclass(frozen=True)
class DictionaryKeys:
    """Bytes keys that repeat: ``values`` are encoded once, in order of their first appearance; codes: int32[n]."""

    values: tuple
    codes: NDArray[np.int32]


EncodedKeys = tuple | DictionaryKeys | list[tuple]
"""``(values, valid)`` for int64 keys, ``(offsets, data, valid)`` for bytes keys, see KeyTable; or DictionaryKeys. For
the operator of groups, a list of each key column by itself."""


def _storage(kind: pa.DataType) -> str | None:
    """``"int64"`` or ``"bytes"`` for types that can be keys, else None."""
    if pa.types.is_dictionary(kind):
        return _storage(kind.value_type)
    fixed = (
        pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating, pa.types.is_date, pa.types.is_time,
        pa.types.is_timestamp, pa.types.is_duration, pa.types.is_null,
    )  # fmt: skip
    if any(test(kind) for test in fixed):
        return "int64"
    variable = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary,
        pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary, pa.types.is_decimal,
    )  # fmt: skip
    return "bytes" if any(test(kind) for test in variable) else None


@dataclass(frozen=True)
class KeyCodec:
    """Encodes the key columns of a batch, and decodes the keys of a KeyTable.

    fields: the key columns. One column is kept as it is, several are packed into bytes, none
        gives the one key that all elements share.
    """

    fields: tuple[pa.Field, ...]

    def __post_init__(self) -> None:
        for field in self.fields:
            if _storage(field.type) is None:
                raise SpecError(f"key_by: column {field.name!r} is {field.type}, which cannot be a key")

    @property
    def out_fields(self) -> list[pa.Field]:
        """The key columns of the result."""
        return [pa.field(field.name, decoded_type(field.type)) for field in self.fields]

    @property
    def _storages(self) -> list[str]:
        return [str(_storage(field.type)) for field in self.fields]

    @property
    def are_texts(self) -> list[bool]:
        """Whether each key column is stored as bytes, or as int64."""
        return [storage == "bytes" for storage in self._storages]

    def columns(self, columns: list[pa.Array]) -> list[tuple]:
        """Returns key columns as GroupTable takes them: each encoded by itself."""
        return [self._encode_column(column) for column in columns]

    def decode_columns(self, columns: list[tuple]) -> list[pa.Array]:
        """Returns key columns in the types of ``out_fields``: the way back for what ``columns`` gave."""
        return [self._decode_column(column, field.type) for column, field in zip(columns, self.out_fields, strict=True)]

    def new_table(self) -> KeyTable:
        """Returns an empty table for these keys."""
        if len(self.fields) > 1 or self._storages == ["bytes"]:
            return KeyTable("bytes")
        return KeyTable("int64")

    def encode(self, columns: list[pa.Array], n: int) -> EncodedKeys:
        """Encodes n rows; columns: one array for each field, of its type."""
        if not columns:
            return np.zeros(n, dtype=np.int64), None
        if len(columns) > 1:
            return (*encode_rows(self.columns(columns), n), None)
        if self._storages == ["bytes"] and pa.types.is_dictionary(columns[0].type):
            return self._encode_dictionary(columns[0])
        return self._encode_column(columns[0])

    def _encode_dictionary(self, column: pa.DictionaryArray) -> EncodedKeys:
        # A dictionary of more values than there are rows, as a slice may have, is not worth looking through.
        if column.indices.null_count or len(column.dictionary) > len(column):
            return self._encode_column(column)
        codes = stored(column.indices.cast(pa.int32()), np.int32)
        ranks, used = first_seen(codes, len(column.dictionary))
        return DictionaryKeys(self._encode_column(decoded(column.dictionary).take(pa.array(used))), ranks)

    def _encode_column(self, column: pa.Array) -> tuple:
        column = decoded(column)
        if _storage(column.type) == "int64":
            return int64_values(column), validity(column)
        return (*text_values(column), validity(column))

    @staticmethod
    def intern(table: KeyTable, keys: EncodedKeys) -> NDArray[np.int32]:
        """Returns the ids of encoded keys: int32[n]."""
        if isinstance(keys, DictionaryKeys):
            return KeyCodec.intern(table, keys.values)[keys.codes]
        return table.intern_bytes(*keys) if table.is_bytes else table.intern_int64(*keys)

    @staticmethod
    def encoded(table: KeyTable, ids: NDArray[np.int32]) -> tuple:
        """Returns the encoded keys of ids, one for each."""
        return table.take_bytes(ids) if table.is_bytes else table.take_int64(ids)

    @staticmethod
    def hash(keys: EncodedKeys) -> NDArray[np.uint64]:
        """Returns the stable hash of encoded keys: uint64[n]."""
        if isinstance(keys, DictionaryKeys):
            return KeyCodec.hash(keys.values)[keys.codes]
        return hash_int64(*keys) if len(keys) == 2 else hash_text(*keys)

    @staticmethod
    def groups(table: KeyTable, ids: NDArray[np.int32], count: int) -> NDArray[np.int32]:
        """Returns the key group of each key: its hash modulo ``count``, int32[n]."""
        return (KeyCodec.hash(KeyCodec.encoded(table, ids)) % np.uint64(count)).astype(np.int32)

    @staticmethod
    def select(keys: EncodedKeys, rows: NDArray[np.int64]) -> EncodedKeys:
        """Returns the encoded keys of some rows, given by their indices."""
        if isinstance(keys, DictionaryKeys):
            ranks, used = first_seen(keys.codes[rows], len(keys.values[0]) - 1)
            return DictionaryKeys(KeyCodec.select_column(keys.values, used.astype(np.int64)), ranks)
        if isinstance(keys, list):
            return [KeyCodec.select_column(column, rows) for column in keys]
        return KeyCodec.select_column(keys, rows)

    @staticmethod
    def select_column(column: tuple, rows: NDArray[np.int64]) -> tuple:
        """Returns some rows, given by their indices, of a column encoded as keys are, without a dictionary."""
        valid = None if column[-1] is None else column[-1][rows]
        if len(column) == 2:
            return take(column[0], rows), valid
        offsets, data, _ = column
        wanted = pa.Array.from_buffers(
            pa.large_binary() if offsets.dtype == np.int64 else pa.binary(),
            len(offsets) - 1,
            [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)],
        ).take(pa.array(rows))
        return (*text_values(wanted), valid)

    def decode(self, table: KeyTable, ids: NDArray[np.int32]) -> list[pa.Array]:
        """Returns the key columns of ids, one array a field, in the types of ``out_fields``."""
        if not self.fields:
            return []
        if len(self.fields) == 1:
            return self.decode_columns([self.encoded(table, ids)])
        offsets, data, _ = table.take_bytes(ids)
        return self.decode_columns(decode_rows(offsets, data, [not is_text for is_text in self.are_texts]))

    @staticmethod
    def _decode_column(column: tuple, kind: pa.DataType) -> pa.Array:
        valid = column[-1]
        if valid is not None and valid.all():
            valid = None
        if len(column) == 2:
            return from_int64(column[0], valid, kind)
        return from_text(column[0], column[1], valid, kind)


def encode_keys(rows: pa.RecordBatch, codec: KeyCodec) -> EncodedKeys:
    """Returns the encoded key columns of rows."""
    return codec.encode([rows.column(field.name) for field in codec.fields], rows.num_rows)


def key_hash(rows: pa.RecordBatch, keys: list[str] | tuple[str, ...]) -> NDArray[np.uint64]:
    """Returns the stable hash of the key columns: uint64[n]. It never changes within a version of the hash."""
    codec = KeyCodec(tuple(rows.schema.field(name) for name in keys))
    return KeyCodec.hash(encode_keys(rows, codec))
