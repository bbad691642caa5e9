"""The stable hash against its definition written in Python, and grouping against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.keys.keycolumns import group_rows, hash_int64, hash_text
from tests.support.kernel_models import int64s

MASK = 2**64 - 1
STIR = 0x9FB21C651E98DF25


def mixed(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def hashed(text: bytes) -> int:
    h = len(text) * STIR & MASK
    for at in range(0, len(text), 8):
        h = (h ^ int.from_bytes(text[at : at + 8], "little")) * STIR & MASK
        h ^= h >> 29
    return mixed(h)


@given(st.lists(st.one_of(st.none(), int64s)))
def test_int64_hash_is_as_defined(keys: list[int | None]) -> None:
    values = np.array([5 if key is None else key for key in keys], np.int64)
    valid = np.array([key is not None for key in keys], np.uint8)
    assert hash_int64(values, valid).tolist() == [0 if key is None else mixed(key & MASK) for key in keys]
    assert hash_int64(values).tolist() == [mixed(value & MASK) for value in values.tolist()]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=20))), st.binary(max_size=9), st.booleans())
def test_text_hash_is_as_defined_wherever_the_text_lies(keys: list[bytes | None], lead: bytes, wide: bool) -> None:
    texts = [key or b"" for key in keys]
    offsets = np.cumsum([len(lead), *map(len, texts)]).astype(np.int64 if wide else np.int32)
    data = np.frombuffer(lead + b"".join(texts) + b"behind", np.uint8)
    valid = np.array([key is not None for key in keys], np.uint8)
    assert hash_text(offsets, data, valid).tolist() == [0 if key is None else hashed(key) for key in keys]
    assert hash_text(offsets, data).tolist() == [hashed(text) for text in texts]


@given(st.lists(st.integers(0, MASK)), st.integers(1, 70))
def test_rows_are_grouped_in_their_order(hashes: list[int], groups: int) -> None:
    order, bounds = group_rows(np.array(hashes, np.uint64), groups)
    assert order.tolist() == sorted(range(len(hashes)), key=lambda row: hashes[row] % groups)
    assert len(bounds) == groups + 1
    for group in range(groups):
        rows = order[bounds[group] : bounds[group + 1]].tolist()
        assert rows == [row for row, h in enumerate(hashes) if h % groups == group]
