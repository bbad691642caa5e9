"""Numbers that do not lie at a multiple of their size are refused, and never read."""

from collections.abc import Callable

import numpy as np
import pytest

from fastwin.core.keys.keycolumns import encode_rows, first_seen, group_rows, hash_int64, hash_text
from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.gather import put, take
from tests.support.kernels import ids, times


def shifted(values: np.ndarray) -> np.ndarray:
    """The same values, one byte beyond where they should lie."""
    found = np.empty(values.nbytes + 1, np.uint8)[1:].view(values.dtype)
    found[:] = values
    assert not found.flags.aligned
    return found


TEXT = np.zeros(3, np.uint8)
CALLS = {
    "intern": lambda to: KeyTable("int64").intern_int64(to(times(1, 2))),
    "intern texts": lambda to: KeyTable("bytes").intern_bytes(to(ids(0, 1, 3)), TEXT),
    "hash": lambda to: hash_int64(to(times(1, 2))),
    "hash texts": lambda to: hash_text(to(times(0, 1, 3)), TEXT),
    "group": lambda to: group_rows(to(np.zeros(2, np.uint64)), 3),
    "codes": lambda to: first_seen(to(ids(0, 1)), 2),
    "encode": lambda to: encode_rows([(to(times(1, 2)), None)], 2),
    "order ids": lambda to: KeyOrder(to(ids(0, 1)), times(1, 2), 2),
    "order times": lambda to: KeyOrder(ids(0, 1), to(times(1, 2)), 2),
    "take": lambda to: take(to(times(1, 2)), times(0)),
    "take places": lambda to: take(times(1, 2), to(times(0))),
    "put": lambda to: put(to(times(1, 2)), times(0), times(5)),
    "put values": lambda to: put(times(1, 2), times(0), to(times(5))),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_unaligned_numbers_are_refused(call: Callable) -> None:
    call(lambda values: values)
    with pytest.raises(ValueError, match=r"must lie at a multiple of [48], pass an aligned copy"):
        call(shifted)


def test_empty_arrays_lie_anywhere() -> None:
    assert KeyTable("int64").intern_int64(shifted(times(1))[:0]).tolist() == []
    assert take(times(1), shifted(times(0))[:0]).tolist() == []
