import numpy as np
import pytest

from fastwin.core.keys.keycolumns import decode_rows, encode_rows
from tests.support.kernels import times


def text(*keys: bytes) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, keys)]).astype(np.int32), np.frombuffer(b"".join(keys), np.uint8)


def test_fixed_columns_take_nine_bytes() -> None:
    offsets, data = encode_rows([(times(1, 2), None), (times(-1, 5), np.array([1, 0], np.uint8))], 2)
    assert offsets.tolist() == [0, 18, 36]
    assert data.tobytes() == b"\1" + (1).to_bytes(8, "little") + b"\1" + b"\xff" * 8 + b"\1\2" + bytes(7) + bytes(9)


def test_texts_take_five_bytes_and_their_own() -> None:
    offsets, data = encode_rows([(*text(b"ab", b""), None)], 2)
    assert offsets.tolist() == [0, 7, 12]
    assert data.tobytes() == b"\1\2\0\0\0ab" + b"\1\0\0\0\0"


def test_what_lies_under_a_null_does_not_matter() -> None:
    null = np.zeros(1, np.uint8)
    one = encode_rows([(times(7), null), (*text(b"abc"), null)], 1)[1]
    other = encode_rows([(times(8), null), (*text(b""), null)], 1)[1]
    assert one.tobytes() == other.tobytes() == bytes(9 + 5)


def test_no_rows_and_no_columns() -> None:
    assert [part.tolist() for part in encode_rows([(times(), None)], 0)] == [[0], []]
    assert [part.tolist() for part in encode_rows([], 2)] == [[0, 0, 0], []]
    assert decode_rows(times(0, 0, 0), np.zeros(0, np.uint8), []) == []


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([(times(1), None)], "key columns: needs 2 values, one for each row, got 1"),
        ([(times(1, 2), np.ones(1, np.uint8))], "key columns: valid: needs 2 values, one for each row, got 1"),
        ([(*text(b"a"), None)], "key columns: needs 2 values, one for each row, got 1"),
        ([(*text(b"a", b"b"), np.ones(3, np.uint8))], "key columns: valid: needs 2 values, one for each row, got 3"),
        ([(np.array([0, 1, 3], np.int32), np.zeros(2, np.uint8), None)], r"must lie within 2 bytes, got \[0, 3\]"),
        ([(times(0, 2, 1), np.zeros(2, np.uint8), None)], "offsets: must ascend"),
    ],
)
def test_columns_are_checked(columns: list, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        encode_rows(columns, 2)


@pytest.mark.parametrize(
    ("row", "fixed", "says"),
    [
        (b"\1\0\0", [True], "key row 0: ends within a column"),
        (b"\1\0\0", [False], "key row 0: ends within a column"),
        (b"\1\3\0\0\0ab", [False], "key row 0: a value of 3 bytes goes beyond its end"),
        (b"\1\xff\xff\xff\xffab", [False], "key row 0: a value of -1 bytes goes beyond its end"),
        (b"\1\1\0\0\0ab", [False], "key row 0: goes on for 1 bytes behind its last column"),
        (bytes(9), [True, True], "key row 0: ends within a column"),
    ],
)
def test_rows_of_other_columns_are_refused(row: bytes, fixed: list[bool], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode_rows(times(0, len(row)), np.frombuffer(row, np.uint8), fixed)


def test_rows_outside_the_data_are_refused() -> None:
    with pytest.raises(ValueError, match=r"offsets: must lie within 9 bytes, got \[0, 18\]"):
        decode_rows(times(0, 9, 18), np.zeros(9, np.uint8), [True])
