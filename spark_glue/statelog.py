"""What a key group leaves in Spark's state store between two micro-batches."""

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessorHandle

from fastwin.errors import StateError

__all__ = ["CHUNK_BYTES", "Head", "Identity", "StateLog"]

CHUNK_BYTES = 4 << 20
"""No value in the state store is larger than this and a head's few fields."""

_MAGIC = b"FWSL"
_FORMAT = 1
_PREFIX = struct.Struct("<4sHI")  # magic, format, length of the fields that follow as JSON

_HEAD = T.StructType([T.StructField("head", T.BinaryType())])
_CHUNK_NO = T.StructType([T.StructField("chunk", T.LongType())])
_CHUNK = T.StructType([T.StructField("data", T.BinaryType())])


@dataclass(frozen=True)
class Identity:
    """What must be the same for the life of a checkpoint.

    fingerprint: of the spec, in hex. text: the spec in words, for errors. columns: names and types of the results.
    key_groups: how many there are.
    """

    fingerprint: str
    text: str
    columns: str
    key_groups: int

    def check(self, fields: dict[str, Any]) -> None:
        """Raises StateError if state with these fields was written by another query."""
        if fields["key_groups"] != self.key_groups:
            raise StateError(
                f"key_groups: the checkpoint was made with key_groups={fields['key_groups']}, this query has "
                f"key_groups={self.key_groups}; the number is fixed for the life of a checkpoint"
            )
        if fields["fingerprint"] != self.fingerprint:
            raise StateError(
                f"spec: the checkpoint was made with another one{fields.get('text', '')}; this query has "
                f"{self.text}; a changed spec needs a new checkpoint"
            )
        if fields.get("columns", self.columns) != self.columns:
            raise StateError(
                f"df: the checkpoint was made with results of {fields['columns']}, now they would be {self.columns}; "
                f"changed types of keys or values need a new checkpoint"
            )


@dataclass(frozen=True)
class Head:
    """The state of a key group: chunks to restore a stream from (none: no state), and its registered timer, ms."""

    chunks: tuple[bytes, ...] = ()
    timer: int | None = None


class StateLog:
    """The state of the current key group, as one snapshot. Made once per task, in the processor's ``init``.

    A short snapshot lies in the head itself, so that a key group costs one read and one write; a longer one lies in
    numbered chunks beside it.
    """

    def __init__(self, handle: StatefulProcessorHandle, identity: Identity) -> None:
        self._identity = identity
        self._head = handle.getValueState("head", _HEAD)
        self._chunks = handle.getMapState("chunks", _CHUNK_NO, _CHUNK)
        self._stored = 0  # chunks beside the head of the current key group

    def load(self) -> Head:
        """Returns what is stored for the current key group.

        Raises StateError if it was written by another spec, or with another number of key groups, or is damaged.
        """
        self._stored = 0
        value = self._head.get()
        if value is None:
            return Head()
        fields, inline = _unpack(bytes(value[0]))
        self._identity.check(fields)
        self._stored = int(fields["chunks"])
        data = inline + b"".join(self._chunk(number) for number in range(self._stored))
        sizes: list[int] = fields["sizes"]
        if sum(sizes) != len(data):
            raise StateError(f"state: {sum(sizes)} bytes were written, {len(data)} are there")
        return Head(tuple(_cut(data, sizes)), fields["timer"])

    def sign(self) -> None:
        """Checks the query's own record against this query, or writes it if there is none yet.

        The current group is the one that all of a query's tasks know (keygroups.LEDGER_ID). Because every batch with
        input comes here, a query that does not belong to its checkpoint fails before it changes any state.
        """
        value = self._head.get()
        if value is None:
            record = {"text": f" ({self._identity.text})", "columns": self._identity.columns}
            self._head.update((_pack(self._fields() | record, b""),))
        else:
            self._identity.check(_unpack(bytes(value[0]))[0])

    def save(self, chunks: Iterable[bytes], timer: int | None) -> int:
        """Stores the chunks and the timer of the current key group, loaded before; returns the bytes written."""
        chunks = list(chunks)
        data = b"".join(chunks)
        inline, numbered = (data, []) if len(data) <= CHUNK_BYTES else (b"", _split(data))
        sizes = [len(chunk) for chunk in chunks]
        head = _pack(self._fields() | {"timer": timer, "sizes": sizes, "chunks": len(numbered)}, inline)
        self._head.update((head,))
        for number, chunk in enumerate(numbered):
            self._chunks.updateValue((number,), (chunk,))
        for number in range(len(numbered), self._stored):
            self._chunks.removeKey((number,))
        self._stored = len(numbered)
        return len(head) + sum(map(len, numbered))

    def clear(self) -> None:
        """Removes every byte about the current key group, loaded before."""
        self._head.clear()
        for number in range(self._stored):
            self._chunks.removeKey((number,))
        self._stored = 0

    def _fields(self) -> dict[str, Any]:
        return {"key_groups": self._identity.key_groups, "fingerprint": self._identity.fingerprint}

    def _chunk(self, number: int) -> bytes:
        value = self._chunks.getValue((number,))
        if value is None:
            raise StateError(f"state: chunk {number} of {self._stored} is missing")
        return bytes(value[0])


def _pack(fields: dict[str, Any], inline: bytes) -> bytes:
    text = json.dumps(fields, separators=(",", ":")).encode()
    return _PREFIX.pack(_MAGIC, _FORMAT, len(text)) + text + inline


def _unpack(head: bytes) -> tuple[dict[str, Any], bytes]:
    if len(head) < _PREFIX.size:
        raise StateError(f"state: a head of {len(head)} bytes is no state of fastwin")
    magic, version, length = _PREFIX.unpack_from(head)
    if magic != _MAGIC:
        raise StateError(f"state: starts with {magic!r}, state of fastwin with {_MAGIC!r}")
    if version != _FORMAT:
        raise StateError(f"state: has format {version}, this version of fastwin reads format {_FORMAT}")
    start = _PREFIX.size + length
    try:
        return json.loads(head[_PREFIX.size : start]), head[start:]
    except ValueError as error:
        raise StateError(f"state: a head cannot be read: {error}") from error


def _split(data: bytes) -> list[bytes]:
    return [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]


def _cut(data: bytes, sizes: list[int]) -> Iterable[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
