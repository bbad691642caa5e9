import numpy as np
import pytest

from fastwin.core.keys.keytable import KeyTable
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import ids, times


def marks(*valid: int) -> np.ndarray:
    return np.array(valid, np.uint8)


def test_empty_arrays_give_empty_arrays() -> None:
    ints, texts = KeyTable("int64"), KeyTable("bytes")
    for _ in range(2):
        assert ints.intern_int64(times()).tolist() == []
        assert ints.intern_int64(times(), marks()).tolist() == []
        assert texts.intern_bytes(ids(0), marks()).tolist() == []
        assert ints.take_int64(ids())[0].tolist() == []
        assert [part.tolist() for part in texts.take_bytes(ids())[:2]] == [[0], []]
        ints.retain_ids(ids())
        ints.release_ids(ids())
        ints.sweep()
        assert ints.ids().tolist() == []
        ints.intern_int64(times(1))
        texts.intern_bytes(ids(0, 1), marks(1))


def test_int64_extremes_are_keys() -> None:
    table = KeyTable("int64")
    keys = times(2**63 - 1, -(2**63), 0, -1)
    assert table.intern_int64(keys).tolist() == [0, 1, 2, 3]
    assert table.take_int64(ids(0, 1, 2, 3))[0].tolist() == keys.tolist()


def test_all_keys_null() -> None:
    table = KeyTable("int64")
    assert table.intern_int64(times(1, 2, 3), marks(0, 0, 0)).tolist() == [0, 0, 0]
    table.sweep()
    assert len(table) == 0
    table._check()


def test_texts_with_zeros_and_of_word_length_differ() -> None:
    table = KeyTable("bytes")
    keys = [b"", b"\0", b"\0\0", b"\0" * 8, b"\0" * 9, b"\0" * 16, b"a" * 8, b"a" * 9]
    offsets = np.cumsum([0, *map(len, keys)])
    assert table.intern_bytes(offsets, np.frombuffer(b"".join(keys), np.uint8)).tolist() == list(range(8))


def test_long_text_is_a_key() -> None:
    table = KeyTable("bytes")
    data = np.arange(1_000_000, dtype=np.int32).view(np.uint8)
    table.intern_bytes(ids(0, 10), data)
    assert table.intern_bytes(times(0, 4_000_000), data).tolist() == [1]
    assert table.take_bytes(ids(1))[1].tobytes() == data.tobytes()
    table.sweep()
    assert table.intern_bytes(ids(0, 10), data).tolist() == [0]


def test_read_only_arrays_are_taken() -> None:
    table, texts = KeyTable("int64"), KeyTable("bytes")
    takes_read_only(table.intern_int64, times(5, 6), marks(1, 0))
    takes_read_only(texts.intern_bytes, ids(0, 1, 2), marks(7, 8), marks(1, 0))
    takes_read_only(table.take_int64, ids(0, 1))
    takes_read_only(texts.take_bytes, ids(0, 1))


def test_other_things_than_arrays_are_refused() -> None:
    table, texts = KeyTable("int64"), KeyTable("bytes")
    refuses_what_is_no_array(table.intern_int64, times(5, 6))
    refuses_what_is_no_array(lambda data: texts.intern_bytes(ids(0, 1, 2), data), marks(7, 8))
    for call in (table.take_int64, texts.take_bytes, table.retain_ids, table.release_ids):
        refuses_what_is_no_array(call, ids(0, 1))
    for bad in (None, np.zeros(3), ids(0, 1, 2)[::2], [0, 1, 2], np.zeros((1, 3), np.int32)):
        with pytest.raises((TypeError, ValueError)):
            texts.intern_bytes(bad, marks(7, 8))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ([], "offsets: needs one more than there are values, got none"),
        ([0, 3], r"offsets: must lie within 2 bytes, got \[0, 3\]"),
        ([-1, 2], r"offsets: must lie within 2 bytes, got \[-1, 2\]"),
        ([0, 2, 1], "offsets: must ascend"),
        ([0, 2**31 - 1, 1], "offsets: must ascend"),
    ],
)
def test_offsets_that_lead_astray_are_refused(offsets: list[int], says: str, dtype: type) -> None:
    with pytest.raises(ValueError, match=says):
        KeyTable("bytes").intern_bytes(np.array(offsets, dtype), marks(1, 2))


def test_marks_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="valid: needs 2 values, one for each row, got 1"):
        KeyTable("int64").intern_int64(times(1, 2), marks(1))
    with pytest.raises(ValueError, match="valid: needs 1 values, one for each row, got 2"):
        KeyTable("bytes").intern_bytes(ids(0, 1), marks(1), marks(1, 1))
