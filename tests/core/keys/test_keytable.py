import numpy as np
import pytest

from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
from tests.support.kernels import accumulators, ids, no_columns, times


def texts(*keys: bytes) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, keys)]).astype(np.int32), np.frombuffer(b"".join(keys), np.uint8)


def marks(*valid: int) -> np.ndarray:
    return np.array(valid, np.uint8)


def intern(table: KeyTable, names: np.ndarray) -> np.ndarray:
    """Returns the ids of numbers, as keys of the table's kind."""
    if not table.is_bytes:
        return table.intern_int64(names)
    found = [str(name).encode() for name in names.tolist()]
    offsets = np.cumsum([0, *map(len, found)]).astype(np.int64)
    return table.intern_bytes(offsets, np.frombuffer(b"".join(found), np.uint8))


def test_equal_keys_have_one_id() -> None:
    table = KeyTable("int64")
    assert table.intern_int64(times(7, -3, 7)).tolist() == [0, 1, 0]
    assert table.intern_int64(times(-3, 8)).tolist() == [1, 2]
    assert len(table) == table.live == 3
    assert table.ids().tolist() == [0, 1, 2]
    values, valid = table.take_int64(ids(2, 0))
    assert values.tolist() == [8, 7]
    assert valid is None


def test_bytes_keys_have_ids() -> None:
    table = KeyTable("bytes")
    assert table.is_bytes
    assert table.intern_bytes(*texts(b"", b"long enough to be two words", b"b", b"")).tolist() == [0, 1, 2, 0]
    offsets, data, valid = table.take_bytes(ids(2, 0, 1))
    assert offsets.tolist() == [0, 1, 1, 28]
    assert data.tobytes() == b"blong enough to be two words"
    assert valid is None


def test_wide_and_narrow_offsets_give_the_same_ids() -> None:
    table = KeyTable("bytes")
    offsets, data = texts(b"a", b"bc")
    assert table.intern_bytes(offsets, data).tolist() == table.intern_bytes(offsets.astype(np.int64), data).tolist()


def test_null_is_a_key_of_its_own() -> None:
    table = KeyTable("int64")
    assert table.intern_int64(times(0, 0, 5), marks(1, 0, 0)).tolist() == [0, 1, 1]
    values, valid = table.take_int64(ids(0, 1))
    assert values.tolist() == [0, 0]
    assert valid.tolist() == [True, False]
    assert table.take_int64(ids(0))[1] is None


def test_null_is_not_the_empty_text() -> None:
    table = KeyTable("bytes")
    offsets, data = texts(b"", b"")
    assert table.intern_bytes(offsets, data, marks(1, 0)).tolist() == [0, 1]
    offsets, data, valid = table.take_bytes(ids(1, 0))
    assert offsets.tolist() == [0, 0, 0]
    assert valid.tolist() == [False, True]


def test_id_is_used_again_after_its_last_row() -> None:
    table = KeyTable("int64")
    kept, gone = table.intern_int64(times(1, 2))
    table.retain_ids(ids(kept, gone, gone))
    table.sweep()
    table.release_ids(ids(gone))
    assert len(table) == 2
    table.release_ids(ids(gone))
    assert table.ids().tolist() == [kept]
    assert table.intern_int64(times(3)).tolist() == [gone]
    table._check()


def test_new_key_without_rows_is_forgotten_by_sweep() -> None:
    table = KeyTable("int64")
    table.intern_int64(times(1, 2))
    table.retain_ids(ids(1))
    table.sweep()
    assert table.ids().tolist() == [1]
    assert table.intern_int64(times(2)).tolist() == [1]


def test_new_key_outlives_its_rows_until_sweep() -> None:
    table = KeyTable("int64")
    table.intern_int64(times(1))
    table.retain_ids(ids(0))
    table.release_ids(ids(0))
    assert table.intern_int64(times(2, 1)).tolist() == [1, 0]
    table.sweep()
    assert len(table) == 0


def test_empty_table_gives_memory_back() -> None:
    for table in (KeyTable("int64"), KeyTable("bytes")):
        if table.is_bytes:
            table.intern_bytes(np.arange(70_001, dtype=np.int32) * 4, np.arange(70_000, dtype=np.int32).view(np.uint8))
        else:
            table.intern_int64(np.arange(70_000))
        assert len(table) == 70_000
        before = table.nbytes
        table.sweep()
        assert table.nbytes < before / 1000
        assert table.top == 0
        table._check()


def test_text_of_forgotten_keys_does_not_pile_up() -> None:
    table = KeyTable("bytes")
    for i in range(200):
        table.intern_bytes(*texts(str(i).encode() * 100))
        table.sweep()
        table._check()
    assert table.nbytes < 6000


def test_kind_is_int64_or_bytes() -> None:
    with pytest.raises(ValueError, match=r"kind: must be 'int64' or 'bytes', got 'text'"):
        KeyTable("text")


def test_other_kind_of_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="holds bytes keys, got int64 keys"):
        KeyTable("bytes").intern_int64(times(1))
    with pytest.raises(ValueError, match="holds int64 keys, got bytes keys"):
        KeyTable("int64").intern_bytes(*texts(b"a"))
    with pytest.raises(ValueError, match="holds bytes keys, asked for int64 keys"):
        KeyTable("bytes").take_int64(ids())
    with pytest.raises(ValueError, match="holds int64 keys, asked for bytes keys"):
        KeyTable("int64").take_bytes(ids())


def test_id_never_handed_out_is_refused() -> None:
    table = KeyTable("int64")
    table.intern_int64(times(1))
    for call in (table.take_int64, table.retain_ids, table.release_ids):
        with pytest.raises(IndexError, match=r"ids: must be at least 0 and below 1, got 1"):
            call(ids(0, 1))
        with pytest.raises(IndexError, match=r"got -1"):
            call(ids(-1))


def test_id_not_in_use_is_neither_retained_nor_released() -> None:
    table = KeyTable("int64")
    table.intern_int64(times(1, 2))
    table.retain_ids(ids(1))
    with pytest.raises(IndexError, match="ids: 0 is not retained"):
        table.release_ids(ids(0))
    table.sweep()
    with pytest.raises(IndexError, match="ids: 0 is not in use"):
        table.retain_ids(ids(0))
    with pytest.raises(IndexError, match="ids: 0 is not retained"):
        table.release_ids(ids(0))
    table._check()


@pytest.mark.parametrize("kind", ["int64", "bytes"])
@pytest.mark.parametrize("left", [0, 1, 3, 60, 99, 390])
def test_many_keys_go_at_once(kind: str, left: int) -> None:
    """Keys of rows that are dropped together; a few, most or all of them."""
    panes = PaneTable(KeyTable(kind), accumulators())
    names = np.arange(400) * 7
    ids = intern(panes.keys, names)
    panes.add(ids, np.zeros(400, np.int64), no_columns(400))
    panes.add(ids[:left], np.ones(left, np.int64), no_columns(left))
    panes.keys.sweep()
    panes.drop_before(1)
    panes._check()
    assert len(panes.keys) == left
    again = intern(panes.keys, names)
    assert again[:left].tolist() == ids[:left].tolist()
    panes.keys.sweep()
    panes._check()
    assert len(panes.keys) == left


@pytest.mark.parametrize("kind", ["int64", "bytes"])
@pytest.mark.parametrize("far", ["first", "last"])
def test_after_a_peak_of_keys_small_windows_pass_few_ids(kind: str, far: str) -> None:
    """A key that is far ahead, the first or the last that came, keeps the table from being empty."""
    peak, rounds = 20_000, 300
    panes = PaneTable(KeyTable(kind), accumulators())
    starts = np.zeros(peak, np.int64)
    starts[0 if far == "first" else -1] = 10**9
    panes.add(intern(panes.keys, np.arange(peak)), starts, no_columns(peak))
    panes.keys.sweep()
    panes.drop_before(1)
    before = panes.keys.walked
    for now in range(1, rounds):
        panes.add(intern(panes.keys, np.array([peak + now])), times(now), no_columns(1))
        panes.keys.sweep()
        panes.drop_before(now + 1)
        assert len(panes.keys) == 1
    panes._check()
    assert panes.keys.walked - before <= peak, "each window passes all ids that were ever in use"
    assert panes.keys.top < (10 if far == "first" else peak + 1)
    names = np.arange(3 * peak, 5 * peak)
    assert len(set(intern(panes.keys, names).tolist())) == len(names)
    panes.keys._check()


@pytest.mark.parametrize("kind", ["int64", "bytes"])
def test_all_of_few_keys_go_after_many(kind: str) -> None:
    """The index and the arrays are large then, and are not emptied for each of them."""
    panes = PaneTable(KeyTable(kind), accumulators())
    for now, n in enumerate([5_000, 1, 2, 300, 1, 5_000, 3]):
        panes.add(intern(panes.keys, np.arange(n) + now), np.full(n, now), no_columns(n))
        panes.keys.sweep()
        panes.drop_before(now + 1)
        panes._check()
        assert len(panes.keys) == panes.keys.top == 0


def test_texts_of_few_keys_among_many_ids_are_moved_rarely() -> None:
    table, written = KeyTable("bytes"), 0
    ids = intern(table, np.arange(20_000))
    table.retain_ids(ids[-1:])
    table.sweep()
    before = table.walked
    for i in range(500):
        text = str(i).encode() * 300
        written += len(text)
        table.intern_bytes(*texts(text))
        table.sweep()
    table._check()
    assert table.walked > before
    assert table.walked - before <= 2 * written, f"{table.walked - before} ids were passed for {written} bytes"
