"""Whole numbers out of their bytes, over more numbers than are put together at a time."""

import numpy as np
import pyarrow as pa
import pytest

from fastwin.core.memory.widening import widen
from fastwin.state.narrow import narrowed, widened

N = 5_000


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("bits", [7, 15, 23, 31, 40, 48, 55])
@pytest.mark.parametrize("steps", [False, True])
def test_many_numbers_come_back_as_they_were(kind: type, bits: int, steps: bool) -> None:
    random = np.random.default_rng(bits)
    values = random.integers(-(2**bits), 2**bits, N).astype(kind)
    values = np.cumsum(values, dtype=kind) if steps else values
    table = pa.table({"n": values})
    assert widened(*narrowed(table)).equals(table)


@pytest.mark.parametrize(("pieces", "size"), [([], 8), ([np.zeros(2, "u2"), np.zeros(3, "u1")], 4)])
def test_pieces_of_no_number(pieces: list[np.ndarray], size: int) -> None:
    with pytest.raises(ValueError, match=r"size: must be|pieces: must be"):
        widen(pieces, size, 0, None)


def test_pieces_that_hold_more_than_a_number() -> None:
    with pytest.raises(ValueError, match="4 bytes in all"):
        widen([np.zeros(2, "u4"), np.zeros(2, "u1")], 4, 0, None)
