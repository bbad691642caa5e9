"""The header of a join's state: how far each input is. It stands before each chunk of the stream that runs inside."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from fastwin.errors import StateError

__all__ = ["JoinHeader", "split_header"]

_MAGIC = b"fwjoin\x00\x02"
# What follows the first bytes, which tell the version, and comes before its checksum.
_TOLD = {b"fwjoin\x00\x01": struct.Struct("<qq"), _MAGIC: struct.Struct("<qqqq??")}
_CHECK = struct.Struct("<I")


class JoinHeader(NamedTuple):
    """What is known of both inputs. All times are ms, int64 min for none.

    watermarks: as they stand. newest: the newest event times; None: the first version of the header does not tell them.
    guessed: which of them are only guesses, made for such a header.
    """

    watermarks: tuple[int, ...]
    newest: tuple[int, ...] | None
    guessed: tuple[bool, ...] = (False, False)

    def before(self, chunk: bytes) -> bytes:
        """Returns a chunk behind this header."""
        assert self.newest is not None
        told = _TOLD[_MAGIC].pack(*self.watermarks, *self.newest, *self.guessed)
        return _MAGIC + told + _CHECK.pack(zlib.crc32(told)) + chunk


def split_header(chunk: bytes) -> tuple[JoinHeader, bytes]:
    """Returns the header of a chunk and what is behind it. Raises StateError where there is none, or a damaged one."""
    form, begin = _TOLD.get(chunk[: len(_MAGIC)]), len(_MAGIC)
    if form is None or len(chunk) < begin + form.size + _CHECK.size:
        raise StateError("restore: the chunk is none of a join")
    end = begin + form.size
    if zlib.crc32(chunk[begin:end]) != _CHECK.unpack_from(chunk, end)[0]:
        raise StateError("restore: the chunk is corrupt: its watermarks do not match their checksum")
    told, rest = form.unpack_from(chunk, begin), chunk[end + _CHECK.size :]
    if len(told) == 2:
        return JoinHeader(told, None), rest
    return JoinHeader(told[:2], told[2:4], told[4:]), rest
