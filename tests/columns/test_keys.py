"""Key columns of every type to ids and back."""

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns.keys import DictionaryKeys, KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.errors import SpecError
from tests.support.columns import KEY_TYPES, VARIANTS, column_of, readable


def codec_of(*kinds: pa.DataType) -> KeyCodec:
    return KeyCodec(tuple(pa.field(f"k{i}", kind) for i, kind in enumerate(kinds)))


def interned(codec: KeyCodec, columns: list[pa.Array]) -> tuple[KeyTable, np.ndarray]:
    table = codec.new_table()
    return table, codec.intern(table, codec.encode(columns, len(columns[0])))


def check(codec: KeyCodec, columns: list[pa.Array]) -> None:
    """Ids are the same exactly where all key columns are, and decode to what went in."""
    rows = list(zip(*([readable(value) for value in column.to_pylist()] for column in columns), strict=True))
    table, ids = interned(codec, columns)
    distinct = dict.fromkeys(rows)
    assert len(table) == len(distinct)
    assert len(set(zip(rows, ids.tolist(), strict=True))) == len(distinct)
    decoded = codec.decode(table, ids)
    for column, field in zip(decoded, codec.out_fields, strict=True):
        column.validate(full=True)
        assert column.type == field.type
    assert [tuple(map(readable, row)) for row in zip(*(column.to_pylist() for column in decoded), strict=True)] == rows


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("kind", "values"), [case[1:] for case in KEY_TYPES], ids=[case[0] for case in KEY_TYPES])
def test_one_column(kind: pa.DataType, values: list, variant: str) -> None:
    check(codec_of(kind), [VARIANTS[variant](column_of(kind, values))])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("kind", "values"), [case[1:] for case in KEY_TYPES], ids=[case[0] for case in KEY_TYPES])
def test_beside_another_column(kind: pa.DataType, values: list, variant: str) -> None:
    column = VARIANTS[variant](column_of(kind, values))
    other = pa.array([None if i % 3 == 0 else "xy"[i % 2] for i in range(len(column))], pa.string())
    check(codec_of(kind, pa.string()), [column, other])
    check(codec_of(pa.string(), kind), [other, column])


def test_all_types_at_once() -> None:
    cases = [(kind, values) for _, kind, values in KEY_TYPES]
    n = 12
    columns = [
        column_of(kind, [values[(i + shift) % len(values)] for i in range(n)])
        for shift, (kind, values) in enumerate(cases)
    ]
    check(codec_of(*(kind for kind, _ in cases)), columns)


def test_columns_do_not_run_into_each_other() -> None:
    rows = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), (None, "abc"), ("abc", None), ("", None), (None, "")]
    check(codec_of(pa.string(), pa.string()), [pa.array(column, pa.string()) for column in zip(*rows, strict=True)])


def test_null_is_not_zero_nor_empty() -> None:
    check(codec_of(pa.int64()), [pa.array([0, None, 0, None])])
    check(codec_of(pa.int64(), pa.bool_()), [pa.array([0, None, 0, None]), pa.array([False, False, None, None])])
    check(codec_of(pa.binary(2)), [pa.array([b"\0\0", None], pa.binary(2))])


def test_without_columns_all_rows_share_a_key() -> None:
    codec = codec_of()
    table = codec.new_table()
    assert set(codec.intern(table, codec.encode([], 5)).tolist()) == {0}
    assert codec.decode(table, np.array([0, 0], dtype=np.int32)) == []
    assert len(codec.hash(codec.encode([], 5))) == 5


@pytest.mark.parametrize(
    "others",
    [
        [pa.array([1, None], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint64())],
        [pa.array(["ab", None], kind) for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))],
        [pa.array([b"ab", None], kind) for kind in (pa.large_binary(), pa.binary(2))],
    ],
    ids=["ints", "text", "bytes"],
)  # fmt: skip
def test_hash_does_not_depend_on_the_width(others: list[pa.Array]) -> None:
    plain = {"ints": pa.int64(), "text": pa.string(), "bytes": pa.binary()}
    first = others[0].to_pylist()[0]
    base = pa.array([first, None], plain["ints" if first == 1 else "text" if first == "ab" else "bytes"])
    wanted = KeyCodec.hash(codec_of(base.type).encode([base], 2))
    for other in others:
        assert KeyCodec.hash(codec_of(other.type).encode([other], 2)).tolist() == wanted.tolist()


def test_hash_treats_zeros_and_nans_alike() -> None:
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        column = pa.array(np.array([0.0, -0.0, np.nan, -np.nan], dtype=f"f{kind.bit_width // 8}"))
        zero, minus, nan, other = KeyCodec.hash(codec_of(kind).encode([column], 4)).tolist()
        assert zero == minus
        assert nan == other != zero


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()])
def test_a_dictionary_is_encoded_once(index: pa.DataType) -> None:
    """Also with a value that stands in it twice, one that nobody has, and null among them."""
    codes = pa.array([3, 0, 4, 3, 1, 0, 4], index)
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["b", "a", "nobody", None, "b"]))
    codec, plain = codec_of(column.type), codec_of(pa.string())
    keys, wanted = codec.encode([column], 7), plain.encode([column.dictionary_decode()], 7)
    assert isinstance(keys, DictionaryKeys)
    assert codec.hash(keys).tolist() == plain.hash(wanted).tolist()
    table, other = codec.new_table(), plain.new_table()
    assert codec.intern(table, keys).tolist() == plain.intern(other, wanted).tolist()
    assert len(table) == 3
    rows = np.array([5, 2, 2, 4])
    assert codec.hash(codec.select(keys, rows)).tolist() == plain.hash(plain.select(wanted, rows)).tolist()
    table, other = codec.new_table(), plain.new_table()
    assert (
        codec.intern(table, codec.select(keys, rows)).tolist()
        == plain.intern(other, plain.select(wanted, rows)).tolist()
    )
    assert len(codec.intern(table, codec.select(keys, rows[:0]))) == 0


def test_rows_without_a_code_and_large_dictionaries_are_decoded() -> None:
    large = pa.array(["a", "b", "a"]).dictionary_encode().slice(2)
    for column in (pa.array(["a", None]).dictionary_encode(), large):
        assert not isinstance(codec_of(column.type).encode([column], len(column)), DictionaryKeys)


@pytest.mark.parametrize("kinds", [(pa.string(),), (pa.int64(),), (pa.string(), pa.int64()), (pa.binary(3),), ()])
def test_select_gives_the_keys_of_some_rows(kinds: tuple) -> None:
    values = {
        pa.string(): ["a", None, "bb", "", "a"],
        pa.int64(): [1, None, 0, 5, 1],
        pa.binary(3): [b"abc", None, b"abd", b"\0\0\0", b"abc"],
    }
    columns = [pa.array([None, *values[kind]], kind)[1:] for kind in kinds]
    codec, rows = codec_of(*kinds), np.array([4, 1, 1, 2], dtype=np.int64)
    table = codec.new_table()
    keys = codec.encode(columns, 5)
    ids = codec.intern(table, keys)
    assert codec.intern(table, codec.select(keys, rows)).tolist() == ids[rows].tolist()
    assert len(codec.intern(table, codec.select(keys, rows[:0]))) == 0


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.map_(pa.string(), pa.int64()),
        pa.month_day_nano_interval(),
    ],
)
def test_other_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(SpecError, match=r"key_by: column 'k0' is .*, which cannot be a key"):
        codec_of(kind)


def test_key_beyond_two_gigabytes_of_offsets_is_large() -> None:
    codec = codec_of(pa.large_string())
    table, ids = interned(codec, [pa.array(["x"], pa.large_string())])
    assert codec.decode(table, ids)[0].type == pa.large_string()
