"""State chunks: snapshots and deltas as bytes that know whose they are and whether they are whole.

A chunk is a header, ``magic(4) version(u16) kind(u8) flags(u8) fingerprint(16) crc32(u32) length(u64)``,
little-endian, and a body of ``length`` bytes: ``u32`` length of a JSON text, the text, and one Zstandard-compressed
Arrow IPC stream for each table that the text names. Flag 1: behind them comes one pickle stream of Python user state.

The text has a note for each column ``x`` of whole numbers that is kept in fewer bytes: ``[type, size, least, first]``.
What is kept are distances from ``least``, of ``size`` bytes, of the values or, unless ``first`` is null, of the steps
from each value to the next, beginning with the value ``first``. Distances of 3, 5, 6 or 7 bytes are divided among the
columns ``x`` (the lowest 2 or 4 bytes), ``x/1`` and ``x/2``.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.errors import StateError

__all__ = ["FORMAT_VERSION", "Chunk", "decode", "encode", "narrowed", "owner", "read_meta", "widened"]

FORMAT_VERSION: Final = 4
_MAGIC: Final = b"FWST"
_HEADER: Final = struct.Struct("<4sHBB16sIQ")
_KINDS: Final = ("snapshot", "delta")
_PICKLED: Final = 1
# Without threads: chunks are small, and handing one to Arrow's thread pool costs more than packing it.
_WRITE: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)
_PIECES: Final = {1: (1,), 2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1)}
"""Into which unsigned numbers one of so many bytes is divided, lowest first."""


@dataclass(frozen=True)
class Chunk:
    """A decoded chunk: small values in ``meta``, rows in ``tables``, user state in ``objects`` (still pickled)."""

    kind: Literal["snapshot", "delta"]
    meta: dict[str, Any]
    tables: dict[str, pa.Table] = field(default_factory=dict)
    objects: bytes | None = None


def encode(chunk: Chunk, fingerprint: bytes) -> bytes:
    """Returns the bytes of a chunk. fingerprint: 16 bytes that tell the spec."""
    streams, notes = [], []
    for whole in chunk.tables.values():
        table, noted = narrowed(whole)
        notes.append(noted)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
            writer.write_table(table)
        streams.append(sink.getvalue())
    named = list(zip(chunk.tables, (len(stream) for stream in streams), notes, strict=True))
    text = json.dumps({"meta": chunk.meta, "tables": named}, separators=(",", ":")).encode()
    body = b"".join([struct.pack("<I", len(text)), text, *streams, chunk.objects or b""])
    kind, flags = _KINDS.index(chunk.kind), _PICKLED if chunk.objects is not None else 0
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, kind, flags, fingerprint, zlib.crc32(body), len(body)) + body


def narrowed(table: pa.Table) -> tuple[pa.Table, dict[str, list[Any]]]:
    """Returns a table whose columns of whole numbers take as few bytes as they can, and what ``widened`` needs."""
    columns: dict[str, Any] = {}
    notes = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.type in (pa.int64(), pa.int32()) and len(column) and not column.null_count
        found = _pieces(column.combine_chunks().to_numpy()) if whole else None
        if found is None:
            columns[name] = column
        else:
            pieces, notes[name] = found
            columns |= {_piece(name, i): pa.array(piece) for i, piece in enumerate(pieces)}
    return pa.table(columns), notes


def _pieces(values: NDArray[Any]) -> tuple[list[NDArray[Any]], list[Any]] | None:
    """Returns what a column is divided into, and its note; None if that takes no less than the column itself."""
    first = None
    size, least = _range(values)
    if size > 1 and len(values) > 1:
        steps = np.diff(values)  # may wrap around, and back again
        step_size, least_step = _range(steps)
        if step_size < size:
            first, size, least = int(values[0]), step_size, least_step
            values = np.concatenate([np.array([least], dtype=values.dtype), steps])
    if size >= values.dtype.itemsize:
        return None
    left = (values - values.dtype.type(least)).view(f"u{values.dtype.itemsize}")
    pieces = []
    for width in _PIECES[size]:
        pieces.append(left.astype(f"u{width}"))
        left = left >> np.array(8 * width, dtype=left.dtype) if width < left.dtype.itemsize else left
    return pieces, [str(values.dtype), size, least, first]


def _range(values: NDArray[Any]) -> tuple[int, int]:
    """Returns how many bytes the distance from the least value takes, at least one, and that value."""
    least = int(values.min())
    return max(1, -(-(int(values.max()) - least).bit_length() // 8)), least


def _piece(name: str, number: int) -> str:
    return f"{name}/{number}" if number else name


def widened(table: pa.Table, notes: dict[str, list[Any]]) -> pa.Table:
    """Returns the table that ``narrowed`` was given. Raises ValueError, and others, for notes of no such table."""
    for name, (kind, size, least, first) in notes.items():
        if kind not in ("int32", "int64") or type(least) is not int or type(first) not in (int, type(None)):
            raise ValueError(f"column {name}: a note of {kind}, {least}, {first}")
        dtype = np.dtype(kind)
        values = table[name].to_numpy().astype(f"u{dtype.itemsize}")
        shift = 0
        for number, width in enumerate(_PIECES[size][:-1]):
            shift += 8 * width
            piece = _piece(name, number + 1)
            values |= table[piece].to_numpy().astype(values.dtype) << np.array(shift, dtype=values.dtype)
            table = table.drop_columns([piece])
        numbers = values.view(dtype)
        numbers += dtype.type(least)
        if first is not None:
            numbers[0] = first
            numbers = np.cumsum(numbers, dtype=dtype)
        table = table.set_column(table.column_names.index(name), name, pa.array(numbers))
    return table


def read_meta(blob: bytes) -> dict[str, Any]:
    """Returns the small values of a chunk just made by encode(); nothing is checked."""
    (length,) = struct.unpack_from("<I", blob, _HEADER.size)
    start = _HEADER.size + 4
    return json.loads(bytes(blob[start : start + length]))["meta"]


def decode(blob: bytes, fingerprint: bytes, spec_text: str = "this spec") -> Chunk:
    """Returns the chunk that encode() had been given.

    Raises StateError if the bytes are no chunk, not whole, corrupt, of another format version, or
    of another spec (another fingerprint).
    """
    kind, flags, owner, crc, length = _read_header(blob)
    if kind >= len(_KINDS) or flags not in (0, _PICKLED):
        raise StateError(f"state: unknown kind {kind} or flags {flags}")
    body = memoryview(blob)[_HEADER.size :]
    if len(body) != length:
        raise StateError(f"state: {len(body)} bytes where the header announces {length}: cut off")
    if zlib.crc32(body) != crc:
        raise StateError("state: the checksum does not fit: the bytes are corrupt")
    if owner != fingerprint:
        raise StateError(
            f"state: written by another spec (fingerprint {owner.hex()}) than {spec_text} ({fingerprint.hex()})"
        )
    try:
        return _parse(_KINDS[kind], body, flags == _PICKLED)
    except Exception as problem:  # whatever the bytes may be
        raise StateError(f"state: the body makes no sense: {problem}") from problem


def owner(blob: bytes) -> bytes:
    """Returns the fingerprint of the spec that wrote a chunk; raises StateError for no chunk of this version."""
    return _read_header(blob)[2]


def _read_header(blob: bytes) -> tuple[int, int, bytes, int, int]:
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise StateError(f"state: a chunk is bytes, got {type(blob).__name__}")
    if len(blob) < _HEADER.size or bytes(blob[:4]) != _MAGIC:
        raise StateError(f"state: {len(blob)} bytes that are no fastwin state")
    _, version, *rest = _HEADER.unpack_from(blob)
    if version != FORMAT_VERSION:
        raise StateError(f"state: format version {version}, but this fastwin reads version {FORMAT_VERSION}")
    kind, flags, fingerprint, crc, length = rest
    return kind, flags, fingerprint, crc, length


def _parse(kind: Any, body: memoryview, pickled: bool) -> Chunk:
    (text_length,) = struct.unpack_from("<I", body)
    at = 4 + text_length
    text = json.loads(bytes(body[4:at]))
    tables = {}
    for name, size, notes in text["tables"]:
        table = pa.ipc.open_stream(pa.py_buffer(body[at : at + size]), options=_READ).read_all()
        table.validate(full=True)
        tables[name] = widened(table.combine_chunks(), notes)
        at += size
    if bool(body[at:]) != pickled:
        raise ValueError(f"{len(body) - at} bytes of user state, announced {'some' if pickled else 'none'}")
    return Chunk(kind, text["meta"], tables, bytes(body[at:]) if pickled else None)
