"""State chunks: snapshots and deltas as bytes that know whose they are, where they belong, and whether they are whole.

A chunk is a header, ``magic(4) version(u16) kind(u8) flags(u8) fingerprint(16) crc32(u32) length(u64)``,
little-endian, and a body of ``length`` bytes: ``u32`` length of a JSON text, the text, and one Zstandard-compressed
Arrow IPC stream for each table that the text names. Flag 1: behind them comes one pickle stream of Python user state.
The checksum covers the header without itself, then the body. Whole numbers take fewer bytes, see ``state.narrow``.
Flag 2: the signature of all that comes at the very end, see ``state.signing``.

Format 4 is read as well. Its checksum covers the body alone, and its chunks have no place in a chain.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa

from fastwin.errors import StateError
from fastwin.state.narrow import NarrowTables, narrowed
from fastwin.state.signing import SIGNATURE_BYTES, check_signature, is_signing, signature

__all__ = ["FORMAT_VERSION", "Chunk", "Link", "decode", "encode", "id_of", "owner", "read_meta"]

FORMAT_VERSION: Final = 5
_WITHOUT_CHAIN: Final = 4
_MAGIC: Final = b"FWST"
_HEADER: Final = struct.Struct("<4sHBB16sIQ")
_CRC: Final = slice(24, 28)
_KINDS: Final = ("snapshot", "delta")
_PICKLED: Final = 1
_SIGNED: Final = 2
_MOST_TEXT: Final = 16 << 20  # bytes of the JSON text: no spec and no log comes near it
_TOGETHER: Final = 1 << 30  # bytes of a table whose columns are made one array each
# Without threads: chunks are small, and handing one to Arrow's thread pool costs more than packing it.
_WRITE: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)


class Link(NamedTuple):
    """The place of a chunk in its chain; ``state.chain`` says what follows from it.

    sequence: its number, from 1 on; 0: of format 4, which has no numbers. previous: the id of the chunk that it goes on
    from; "": of a stream without state. since: the chunks from this number on hold all state. ends: pairs of a number
    and the last end of a window in the chunks from there on, up to the one before this. round: the number of the chunk
    with which the round of repeating rows began, and how many key groups have been repeated; None: no round is on.
    origin: the id of the chunk that this one was made of, when it was written for another spec.
    """

    sequence: int
    previous: str = ""
    since: int = 0
    ends: tuple[tuple[int, int], ...] = ()
    round: tuple[int, int] | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Chunk:
    """A decoded chunk: small values in ``meta``, rows in ``tables``, user state in ``objects`` (still pickled).

    link: None for partial results, which belong to no chain. id: what the next chunk calls it; see ``id_of``.
    """

    kind: Literal["snapshot", "delta"]
    meta: dict[str, Any]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    objects: bytes | None = None
    link: Link | None = None
    id: str = field(default="", compare=False)


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
    fields = {"meta": chunk.meta, "tables": named} | ({} if chunk.link is None else {"chain": chunk.link})
    text = json.dumps(fields, separators=(",", ":")).encode()
    if len(text) > _MOST_TEXT:
        raise StateError(f"state: what describes it takes {len(text)} bytes, at most {_MOST_TEXT} are possible")
    body = b"".join([struct.pack("<I", len(text)), text, *streams, chunk.objects or b""])
    kind, flags = _KINDS.index(chunk.kind), _PICKLED if chunk.objects is not None else 0
    flags |= _SIGNED if is_signing() else 0
    header = bytearray(_HEADER.pack(_MAGIC, FORMAT_VERSION, kind, flags, fingerprint, 0, len(body)))
    header[_CRC] = struct.pack("<I", _checksum(header, body))
    blob = bytes(header) + body
    return blob + signature(blob)


def _checksum(header: bytes | memoryview | bytearray, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(header[_CRC.stop :], zlib.crc32(header[: _CRC.start])))


def id_of(blob: bytes) -> str:
    """Returns what tells a chunk from all others: 16 hexadecimal digits that follow from its bytes alone."""
    return hashlib.blake2b(blob, digest_size=8).hexdigest()


def read_meta(blob: bytes) -> dict[str, Any]:
    """Returns the small values of a chunk just made by encode(); nothing is checked."""
    (length,) = struct.unpack_from("<I", blob, _HEADER.size)
    start = _HEADER.size + 4
    return json.loads(bytes(blob[start : start + length]))["meta"]


def decode(blob: bytes, fingerprint: bytes, spec_text: str = "this spec", narrow: bool = False) -> Chunk:
    """Returns the chunk that encode() had been given. narrow: its tables are widened only when they are looked at.

    Raises StateError if the bytes are no chunk, not whole, corrupt, of another format version, not signed as the
    environment's key says, or of another spec (another fingerprint).
    """
    header = _read_header(blob)
    signed = len(blob) - (SIGNATURE_BYTES if header.flags & _SIGNED else 0)
    body = memoryview(blob)[_HEADER.size : signed]
    if len(body) != header.length:
        raise StateError(f"state: {len(body)} bytes where the header announces {header.length}: cut off")
    crc = zlib.crc32(body) if header.version == _WITHOUT_CHAIN else _checksum(blob[: _HEADER.size], body)
    if crc != header.crc:
        raise StateError("state: the checksum does not fit: the bytes are corrupt")
    if header.kind >= len(_KINDS) or header.flags & ~(_PICKLED | _SIGNED):
        raise StateError(f"state: unknown kind {header.kind} or flags {header.flags}")
    check_signature(memoryview(blob)[:signed], bytes(blob[signed:]))
    if header.owner != fingerprint:
        raise StateError(
            f"state: written by another spec (fingerprint {header.owner.hex()}) than {spec_text} ({fingerprint.hex()})"
        )
    try:
        return _parse(header, body, id_of(blob), narrow)
    except Exception as problem:  # whatever the bytes may be
        raise StateError(f"state: the body makes no sense: {problem}") from problem


def owner(blob: bytes) -> bytes:
    """Returns the fingerprint of the spec that wrote a chunk; raises StateError for no chunk of a known version."""
    return _read_header(blob).owner


class _Header(NamedTuple):
    version: int
    kind: int
    flags: int
    owner: bytes
    crc: int
    length: int


def _read_header(blob: bytes) -> _Header:
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise StateError(f"state: a chunk is bytes, got {type(blob).__name__}")
    if len(blob) < _HEADER.size or bytes(blob[:4]) != _MAGIC:
        raise StateError(f"state: {len(blob)} bytes that are no fastwin state")
    _, *fields = _HEADER.unpack_from(blob)
    header = _Header(*fields)
    if header.version not in (_WITHOUT_CHAIN, FORMAT_VERSION):
        raise StateError(
            f"state: format version {header.version}, but this fastwin reads versions {_WITHOUT_CHAIN} and "
            f"{FORMAT_VERSION}"
        )
    return header


def _parse(header: _Header, body: memoryview, own_id: str, narrow: bool) -> Chunk:
    (text_length,) = struct.unpack_from("<I", body)
    at = 4 + text_length
    if at > len(body) or text_length > _MOST_TEXT:
        raise ValueError(f"a text of {text_length} bytes in a body of {len(body)}")
    text = json.loads(bytes(body[4:at]))
    parts = {}
    for name, size, notes in text["tables"]:
        if not 0 <= size <= len(body) - at:
            raise ValueError(f"table {name} of {size} bytes, {len(body) - at} are left")
        table = pa.ipc.open_stream(pa.py_buffer(body[at : at + size]), options=_READ).read_all()
        _validate(table)
        # Larger text and lists may not fit the offsets of one array.
        parts[name] = table.combine_chunks() if table.nbytes <= _TOGETHER else table, notes
        at += size
    pickled = bool(header.flags & _PICKLED)
    if bool(body[at:]) != pickled:
        raise ValueError(f"{len(body) - at} bytes of user state, announced {'some' if pickled else 'none'}")
    link = Link(0) if header.version == _WITHOUT_CHAIN else _link(text.get("chain"))
    own_id = own_id if link is None or link.origin is None else link.origin
    kind: Any = _KINDS[header.kind]
    tables: Mapping[str, pa.Table] = NarrowTables(parts)
    tables = tables if narrow else dict(tables)
    return Chunk(kind, text["meta"], tables, bytes(body[at:]) if pickled else None, link, own_id)


def _validate(table: pa.Table) -> None:
    """Raises ArrowInvalid for columns that cannot be read. Text may be no UTF-8: it is as it came in."""
    for column in table.columns:
        for chunk in column.chunks:
            if pa.types.is_dictionary(chunk.type):
                chunk.indices.validate(full=True)
                chunk = pa.DictionaryArray.from_arrays(chunk.indices, _as_bytes(chunk.dictionary))
            _as_bytes(chunk).validate(full=True)


def _as_bytes(array: pa.Array) -> pa.Array:
    """Returns text as bytes, other arrays as they are; reads nothing."""
    if pa.types.is_string(array.type):
        return array.view(pa.binary())
    return array.view(pa.large_binary()) if pa.types.is_large_string(array.type) else array


def _link(values: Any) -> Link | None:
    if values is None:
        return None
    sequence, previous, since, ends, turn, origin = values
    pairs = tuple(_pair(pair) for pair in ends)
    found = Link(sequence, previous, since, pairs, None if turn is None else _pair(turn), origin)
    if type(sequence) is not int or type(since) is not int or not 0 <= since <= sequence:
        raise ValueError(f"number {sequence} of a chain, complete since {since}")
    if type(previous) is not str or not isinstance(origin, str | None):
        raise ValueError(f"a chain of {previous!r} and {origin!r}")
    return found


def _pair(values: Any) -> tuple[int, int]:
    first, second = values
    if type(first) is not int or type(second) is not int:
        raise ValueError(f"a pair of {first!r} and {second!r}")
    return first, second
