"""Looks at the state of a stream without leaving a trace in its chain of chunks."""

import struct
import zlib

import fastwin as fw
from fastwin.state import chunks


def peek(stream: fw.Stream) -> bytes:
    """Returns all state of a stream that has just saved it; the next delta goes on from the chunk before."""
    chain = vars(stream._operator.chain)
    before = dict(chain)
    found = stream.snapshot()
    chain.update(before)
    return found


def with_checksum(blob: bytes) -> bytes:
    """Returns a chunk, whatever its bytes are, with the checksum and the length that they should have."""
    header = bytearray(blob[: chunks._HEADER.size])
    body = bytes(blob[chunks._HEADER.size :])
    struct.pack_into("<Q", header, 28, len(body))
    covered = header[:24] + header[28:] + body
    struct.pack_into("<I", header, 24, zlib.crc32(covered))
    return bytes(header) + body
