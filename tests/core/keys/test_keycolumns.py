import numpy as np
import pytest

from fastwin.core.keys.keycolumns import first_seen, group_rows, hash_int64, hash_text
from tests.support.kernels import times


def test_hash_never_changes() -> None:
    """Checkpoints and the routing of key groups rest upon these values."""
    assert hash_int64(times(0, 1, -1)).tolist() == [16294208416658607535, 10451216379200822465, 16490336266968443936]
    data = np.frombuffer(b"abcdefghi", np.uint8)
    hashes = hash_text(np.array([0, 0, 1, 9], np.int32), data)
    assert hashes.tolist() == [16294208416658607535, 1246298476426086058, 12203522585841511346]


def test_null_hashes_to_zero() -> None:
    assert hash_int64(times(5), np.zeros(1, np.uint8)).tolist() == [0]
    assert hash_text(np.array([0, 1], np.int64), np.zeros(1, np.uint8), np.zeros(1, np.uint8)).tolist() == [0]


def test_rows_are_grouped() -> None:
    order, bounds = group_rows(np.array([5, 2, 3, 8], np.uint64), 3)
    assert order.tolist() == [2, 0, 1, 3]
    assert bounds.tolist() == [0, 1, 1, 4]


@pytest.mark.parametrize("size", [1, 3, 200])
def test_codes_in_order_of_their_first_appearance(size: int) -> None:
    codes = np.random.default_rng(size).integers(0, size, 150).astype(np.int32)
    ranks, used = first_seen(codes, size)
    assert used.tolist() == list(dict.fromkeys(codes.tolist()))
    assert used[ranks].tolist() == codes.tolist()


@pytest.mark.parametrize(("codes", "size"), [([0, 3], 3), ([0, -1], 3), ([0, 0], 0)])
def test_codes_outside_the_dictionary(codes: list[int], size: int) -> None:
    at = 1 if size else 0
    with pytest.raises(ValueError, match=rf"codes\[{at}\] is {codes[at]}, outside a dictionary of {size} values"):
        first_seen(np.array(codes, np.int32), size)
