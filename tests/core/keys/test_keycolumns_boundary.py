import numpy as np
import pytest

from fastwin.core.keys.keycolumns import group_rows, hash_int64, hash_text
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import ids, times


def test_empty_arrays_give_empty_arrays() -> None:
    nothing = np.zeros(0, np.uint8)
    assert hash_int64(times()).tolist() == []
    assert hash_text(ids(0), nothing).tolist() == []
    assert hash_text(times(0), nothing, nothing).tolist() == []
    assert [part.tolist() for part in group_rows(np.zeros(0, np.uint64), 2)] == [[], [0, 0, 0]]


def test_extreme_hashes_are_grouped() -> None:
    hashes = np.array([2**64 - 1, 0, 2**63], np.uint64)
    assert group_rows(hashes, 1)[1].tolist() == [0, 3]
    assert group_rows(hashes, 2)[0].tolist() == [1, 2, 0]


def test_read_only_arrays_are_taken() -> None:
    takes_read_only(hash_int64, times(1, 2))
    takes_read_only(hash_text, ids(0, 1), np.zeros(1, np.uint8), np.ones(1, np.uint8))
    takes_read_only(lambda hashes: group_rows(hashes, 2), np.arange(4, dtype=np.uint64))


def test_other_things_than_arrays_are_refused() -> None:
    refuses_what_is_no_array(hash_int64, times(1, 2))
    refuses_what_is_no_array(lambda data: hash_text(ids(0, 1), data), np.zeros(2, np.uint8))
    refuses_what_is_no_array(lambda hashes: group_rows(hashes, 2), np.arange(4, dtype=np.uint64))


def test_lengths_and_offsets_are_checked() -> None:
    one = np.ones(1, np.uint8)
    with pytest.raises(ValueError, match="valid: needs 2 values, one for each row, got 1"):
        hash_int64(times(1, 2), one)
    with pytest.raises(ValueError, match="valid: needs 2 values, one for each row, got 1"):
        hash_text(ids(0, 0, 0), one, one)
    with pytest.raises(ValueError, match="offsets: needs one more than there are values, got none"):
        hash_text(ids(), one)
    with pytest.raises(ValueError, match=r"offsets: must lie within 1 bytes, got \[0, 2\]"):
        hash_text(ids(0, 2), one)
    with pytest.raises(ValueError, match="offsets: must ascend"):
        hash_text(times(1, 0), one)


@pytest.mark.parametrize("groups", [-1, 0])
def test_groups_are_positive(groups: int) -> None:
    with pytest.raises(ValueError, match=f"groups: at least 1, got {groups}"):
        group_rows(np.zeros(1, np.uint64), groups)


def test_groups_are_an_int32() -> None:
    with pytest.raises(OverflowError):
        group_rows(np.zeros(1, np.uint64), 2**31)
    with pytest.raises(TypeError):
        group_rows(np.zeros(1, np.uint64), None)
