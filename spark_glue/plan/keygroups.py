"""Key groups: the fixed number of parts into which a query's keys are divided, and the ids that Spark groups by.

Spark sends an int ``id`` to partition ``pmod(murmur3(id), partitions)``, which spreads small consecutive ints unevenly.
For a single int that hash is a bijection of the 32-bit words. So key group ``i`` takes as its id the one int whose
hash *is* ``i``, and then sits on partition ``i mod P`` for every number ``P`` of partitions.
"""

from operator import index

import numpy as np
from numpy.typing import NDArray

from fastwin.errors import SpecError

__all__ = ["KEY_GROUPS", "MAX_KEY_GROUPS", "RECORD_ID", "check_key_groups", "ids", "murmur3_int", "number_of"]

KEY_GROUPS = 64
"""How many a query has that says nothing."""
MAX_KEY_GROUPS = 32_768
"""The most key groups a query may have (Flink's limit for its maximum parallelism)."""

_SEED = 42  # Spark's, for hash partitioning
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_N = 0xE6546B64
_BITS = 0xFFFFFFFF

Words = NDArray[np.uint64]  # 32-bit words, held in 64 bits so that products do not overflow before they are cut


def _inverse(odd: int) -> int:
    return pow(odd, -1, 1 << 32)


def _rotate(words: Words, left: int) -> Words:
    return ((words << np.uint64(left)) | (words >> np.uint64(32 - left))) & np.uint64(_BITS)


def _times(words: Words, factor: int) -> Words:
    return (words * np.uint64(factor)) & np.uint64(_BITS)


def murmur3_int(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns Spark's ``hash`` of int values (MurmurHash3 x86 32-bit of four bytes, seed 42).

    >>> murmur3_int(np.array([0, 1], np.int32)).tolist()
    [933211791, -559580957]
    """
    words = values.astype(np.int32).view(np.uint32).astype(np.uint64)
    words = _times(_rotate(_times(words, _C1), 15), _C2)
    words = (_times(_rotate(words ^ np.uint64(_SEED), 13), 5) + np.uint64(_N)) & np.uint64(_BITS)
    words ^= np.uint64(4)  # the length
    words = _times(words ^ (words >> np.uint64(16)), _F1)
    words = _times(words ^ (words >> np.uint64(13)), _F2)
    words ^= words >> np.uint64(16)
    return words.astype(np.uint32).view(np.int32)


def _unhash(hashes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns the ints with these hashes: the steps of ``murmur3_int`` undone, last one first."""
    words = hashes.astype(np.int32).view(np.uint32).astype(np.uint64)
    words ^= words >> np.uint64(16)
    words = _times(words, _inverse(_F2))
    words ^= (words >> np.uint64(13)) ^ (words >> np.uint64(26))
    words = _times(words, _inverse(_F1))
    words ^= words >> np.uint64(16)
    words ^= np.uint64(4)
    words = _times((words - np.uint64(_N)) & np.uint64(_BITS), _inverse(5))
    words = _rotate(words, 32 - 13) ^ np.uint64(_SEED)
    words = _times(_rotate(_times(words, _inverse(_C2)), 32 - 15), _inverse(_C1))
    return words.astype(np.uint32).view(np.int32)


def ids(key_groups: int) -> NDArray[np.int32]:
    """Returns the id of each key group, int32[key_groups]. Independent of how many groups or partitions there are."""
    return _unhash(np.arange(key_groups, dtype=np.int32))


def number_of(group_id: int) -> int:
    """Returns the number of the key group with this id.

    >>> [number_of(id) for id in ids(3)]
    [0, 1, 2]
    """
    return int(murmur3_int(np.array([group_id], np.int32))[0])


RECORD_ID = int(_unhash(np.array([MAX_KEY_GROUPS], np.int32))[0])
"""The id of the group that holds no events but the query's own record; it is no key group of any query."""


def check_key_groups(value: object) -> int:
    """Returns ``value`` as a number of key groups; raises SpecError unless it is an int from 1 to MAX_KEY_GROUPS."""
    if isinstance(value, bool):
        raise SpecError(f"key_groups: must be an int from 1 to {MAX_KEY_GROUPS}, got {value!r}")
    try:
        count = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise SpecError(f"key_groups: must be an int from 1 to {MAX_KEY_GROUPS}, got {value!r}") from None
    if not 1 <= count <= MAX_KEY_GROUPS:
        raise SpecError(f"key_groups: must be from 1 to {MAX_KEY_GROUPS}, got {count}")
    return count
