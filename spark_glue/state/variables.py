"""The variables of a share in Spark's state store: what they are called and made of, for who writes and who reads them.

All of this is in checkpoints, and stays as it is. ``stages.smallstate`` makes fields of one value of them.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import types as T

__all__ = [
    "CHUNK",
    "CHUNKS",
    "CHUNK_KEY",
    "CHUNK_VALUE",
    "CLOCKS",
    "DATA",
    "HEAD",
    "HEAD_TYPE",
    "NEXT",
    "SEEN",
    "WAITING",
    "WAITING_TYPE",
    "WATERMARK",
    "clocks_type",
    "inputs_of",
]

HEAD: Final = "head"
"""A value: the head of the share, see ``state.log``. Its one field has the same name."""
HEAD_TYPE: Final = T.StructType([T.StructField(HEAD, T.BinaryType())])

CHUNKS: Final = "chunks"
"""A map: the bytes of each chunk by its number."""
CHUNK: Final = "chunk"
DATA: Final = "data"
CHUNK_KEY: Final = T.StructType([T.StructField(CHUNK, T.LongType())])
CHUNK_VALUE: Final = T.StructType([T.StructField(DATA, T.BinaryType())])

WAITING: Final = "waiting"
"""A value, of queries that wait for the clock: what the share waits for, see ``stages.sharetimers``."""
WAITING_TYPE: Final = T.StructType([T.StructField(name, T.LongType()) for name in ("event", "processing", "timer")])

CLOCKS: Final = "inputs"
"""A value, of shares that make their watermark themselves: what they know of the inputs, see ``stages.shareclocks``."""
SEEN: Final = "seen"
WATERMARK: Final = "watermark"
NEXT: Final = "next"
_OF_EACH = ("newest", "heard")
_OF_ALL = (SEEN, WATERMARK, NEXT)


def clocks_type(inputs: int) -> T.StructType:
    """Returns the type of CLOCKS: two times of each input, then those of all of them."""
    names = [f"{what}_{number}" for number in range(inputs) for what in _OF_EACH]
    return T.StructType([T.StructField(name, T.LongType()) for name in (*names, *_OF_ALL)])


def inputs_of(clocks: Sequence[int]) -> int:
    """Returns how many inputs a value of CLOCKS tells of."""
    return (len(clocks) - len(_OF_ALL)) // len(_OF_EACH)
