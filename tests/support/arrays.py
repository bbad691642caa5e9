"""Arrays that no kernel may trip over: each of these is taken, or refused with an error that names the reason."""

from collections.abc import Callable

import numpy as np
import pytest

__all__ = ["refuses_what_is_no_array", "strided", "takes_read_only"]


def strided(array: np.ndarray) -> np.ndarray:
    """The same values with a gap after each."""
    return np.repeat(array, 2)[::2]


def takes_read_only(call: Callable, *arrays: np.ndarray) -> None:
    """The call gives the same for read-only arrays, as Arrow's are."""
    frozen = [array.copy() for array in arrays]
    for array in frozen:
        array.flags.writeable = False
    assert repr(call(*frozen)) == repr(call(*arrays))


def refuses_what_is_no_array(call: Callable, *arrays: np.ndarray) -> None:
    """None, arrays with gaps, of another type or shape are refused in each place."""
    for place, array in enumerate(arrays):
        other = np.int32 if array.dtype.itemsize == 8 else np.int64
        bad = {
            "None": None,
            "strided": strided(array),
            "backwards": array[::-1],
            "of another type": array.astype(other),
            "of bytes": array.view(np.uint8).astype("S1"),
            "two-dimensional": array.reshape(1, -1),
            "a scalar": array[0],
            "a list": array.tolist(),
            "big-endian": array.astype(array.dtype.newbyteorder(">")) if array.dtype.itemsize > 1 else None,
        }
        for what, value in bad.items():
            with pytest.raises((TypeError, ValueError)) as caught:
                call(*arrays[:place], value, *arrays[place + 1 :])
            assert str(caught.value), f"argument {place}, {what}: an error without a word"
