"""Names of the records in RocksDB.

``m``: the meta as JSON; ``k`` + key: the end of the key's last pane; ``p`` + key + NUL + level + start: a pane; ``t`` +
start of a block + key: the key has panes there; ``q`` + query: its last whole batch.
"""

import struct

__all__ = ["BIAS", "BLOCK", "KEY", "META", "PANE", "QUERY", "START", "block_key", "pane_key", "pane_prefix"]

META, KEY, PANE, BLOCK, QUERY = b"m", b"k", b"p", b"t", b"q"
START = struct.Struct(">Q")
BIAS = 1 << 63
"""Added to a time, so that the order of the bytes is the order of the times, also of those before 1970."""


def pane_prefix(key: str, level: int) -> bytes:
    """Returns how the names of a key's panes begin. level: 0 for panes, 1 for coarse ones."""
    return PANE + key.encode() + b"\0" + bytes([level])


def pane_key(key: str, level: int, start: int) -> bytes:
    """Returns the name of a pane. start: ms."""
    return pane_prefix(key, level) + START.pack(start + BIAS)


def block_key(start: int, key: str) -> bytes:
    """Returns the name of the note that a key has panes in a block. start: ms."""
    return BLOCK + START.pack(start + BIAS) + key.encode()
