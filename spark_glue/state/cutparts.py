"""Parts of state as rows of Spark's: long ones are cut, because many rows travel in one batch, and joined again."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from fastwin.errors import StateError

__all__ = ["PIECE_BYTES", "STATE", "Pieces", "cut"]

STATE = pa.schema(
    [
        ("part_of", pa.int32()),
        ("part", pa.binary()),
        ("piece", pa.int32()),
        ("pieces", pa.int32()),
        ("whole", pa.int64()),
    ]
)
"""State divided by keys: the number of a key group, and a chunk of it, see ``Replica.parts``, or a piece of that.

piece, pieces: which of how many it is, counted from 0. whole: a number that the pieces of a chunk have in common, below
2**48, because beside a null pandas makes a float64 of it. All three are null in what earlier versions have exported: it
is whole.
"""

PIECE_BYTES = 32 << 10
"""The 10,000 rows that Spark puts into a batch to Python are then 0.3 GB, and a column of it holds 2 GiB."""
_BATCH_ROWS = 1_024


def cut(parts: Iterable[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Yields parts, each with the number of its key group, as rows of STATE. O(bytes)."""
    rows: list[tuple[int, memoryview, int, int, int]] = []
    for group, part in parts:
        pieces = max(1, -(-len(part) // PIECE_BYTES))
        whole = int.from_bytes(blake2b(part, digest_size=6).digest())
        view = memoryview(part)
        for piece in range(pieces):
            rows.append((group, view[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES], piece, pieces, whole))
            if len(rows) == _BATCH_ROWS:
                yield _batch(rows)
                rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[int, memoryview, int, int, int]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, STATE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=STATE)


class Pieces:
    """Joins rows of STATE to parts again, in whatever order they come."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], dict[int, bytes]] = {}

    @property
    def waits(self) -> bool:
        """Whether there are parts of which some pieces have not come yet."""
        return bool(self._held)

    def joined(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[int, bytes]]:
        """Takes rows; returns the parts that are whole by now. Rows without a part count as none.

        rows: numbers may be floats, and nulls NaN, as pandas has them.
        """
        found = []
        for part_of, part, piece, pieces, whole in rows:
            if part is None:
                continue
            group, count = int(part_of), 1 if pieces is None or pieces != pieces else int(pieces)
            if count == 1:
                found.append((group, bytes(part)))
                continue
            held = self._held.setdefault((group, int(whole)), {})
            held[int(piece)] = bytes(part)
            if len(held) == count:
                del self._held[group, int(whole)]
                found.append((group, b"".join(held[number] for number in range(count))))
        return found

    def check_whole(self) -> None:
        """Raises StateError if pieces are missing, when no more are to come."""
        if self._held:
            groups = ", ".join(str(group) for group, _ in sorted(self._held))
            raise StateError(f"state: pieces of what key groups {groups} hold are missing")
