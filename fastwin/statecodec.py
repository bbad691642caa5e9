"""State chunks: snapshots and deltas as bytes that know whose they are and whether they are whole.

A chunk is a header, ``magic(4) version(u16) kind(u8) flags(u8) fingerprint(16) crc32(u32) length(u64)``,
little-endian, and a body of ``length`` bytes: ``u32`` length of a JSON text, the text, and one LZ4-compressed
Arrow IPC stream for each table that the text names. Flag 1: behind them comes one pickle stream of Python user state.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa

from fastwin.errors import StateError

__all__ = ["FORMAT_VERSION", "Chunk", "decode", "encode"]

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"FWST"
_HEADER: Final = struct.Struct("<4sHBB16sIQ")
_KINDS: Final = ("snapshot", "delta")
_PICKLED: Final = 1
# Without threads: chunks are small, and handing one to Arrow's thread pool costs more than packing it.
_WRITE: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True)
class Chunk:
    """A decoded chunk: small values in ``meta``, rows in ``tables``, user state in ``objects`` (still pickled)."""

    kind: Literal["snapshot", "delta"]
    meta: dict[str, Any]
    tables: dict[str, pa.Table] = field(default_factory=dict)
    objects: bytes | None = None


def encode(chunk: Chunk, fingerprint: bytes) -> bytes:
    """Returns the bytes of a chunk. fingerprint: 16 bytes that tell the spec."""
    streams = []
    for table in chunk.tables.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
            writer.write_table(table)
        streams.append(sink.getvalue())
    named = list(zip(chunk.tables, (len(stream) for stream in streams), strict=True))
    text = json.dumps({"meta": chunk.meta, "tables": named}, separators=(",", ":")).encode()
    body = b"".join([struct.pack("<I", len(text)), text, *streams, chunk.objects or b""])
    kind, flags = _KINDS.index(chunk.kind), _PICKLED if chunk.objects is not None else 0
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, kind, flags, fingerprint, zlib.crc32(body), len(body)) + body


def decode(blob: bytes, fingerprint: bytes, spec_text: str = "this spec") -> Chunk:
    """Returns the chunk that encode() had been given.

    Raises StateError if the bytes are no chunk, not whole, corrupt, of another format version, or
    of another spec (another fingerprint).
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise StateError(f"state: a chunk is bytes, got {type(blob).__name__}")
    if len(blob) < _HEADER.size or bytes(blob[:4]) != _MAGIC:
        raise StateError(f"state: {len(blob)} bytes that are no fastwin state")
    _, version, kind, flags, owner, crc, length = _HEADER.unpack_from(blob)
    if version != FORMAT_VERSION:
        raise StateError(f"state: format version {version}, but this fastwin reads version {FORMAT_VERSION}")
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
    except (KeyError, TypeError, ValueError, OSError, struct.error, pa.ArrowException) as problem:
        raise StateError(f"state: the body makes no sense: {problem}") from problem


def _parse(kind: Any, body: memoryview, pickled: bool) -> Chunk:
    (text_length,) = struct.unpack_from("<I", body)
    at = 4 + text_length
    text = json.loads(bytes(body[4:at]))
    tables = {}
    for name, size in text["tables"]:
        table = pa.ipc.open_stream(pa.py_buffer(body[at : at + size]), options=_READ).read_all()
        table.validate(full=True)
        tables[name] = table.combine_chunks()
        at += size
    if bool(body[at:]) != pickled:
        raise ValueError(f"{len(body) - at} bytes of user state, announced {'some' if pickled else 'none'}")
    return Chunk(kind, text["meta"], tables, bytes(body[at:]) if pickled else None)
