"""Text with bytes that others refuse gets U+FFFD for them, wherever it lies; other text is not touched."""

import pyarrow as pa
import pytest

from fastwin.columns.validtext import valid_text, without_nul

BYTES = [b"\xff", b"a", None, b"b\xc3("]
MENDED = ["\ufffd", "a", None, "b\ufffd("]


def text(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


ODD = text(BYTES)
NUMBERS = pa.array([1, 2, 3, 4])
LISTS = pa.ListArray.from_arrays(pa.array([0, 1, None, 4], pa.int32()), ODD)
STRUCTS = pa.StructArray.from_arrays([ODD, NUMBERS], ["v", "n"], mask=pa.array([False, True, False, False]))
ROWS = [{"v": "\ufffd", "n": 1}, None, {"v": None, "n": 3}, {"v": "b\ufffd(", "n": 4}]
KEYS = text([b"\xfe", b"k"])
MAPS = pa.MapArray.from_arrays(pa.array([0, 1, 1, 2], pa.int32()), KEYS, text([b"\xff", b"a"]))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ODD, MENDED),
        (pa.array(BYTES, pa.large_binary()).view(pa.large_string()), MENDED),
        (LISTS, [MENDED[:1], MENDED[1:], None]),
        (LISTS.cast(pa.large_list(pa.string())), [MENDED[:1], MENDED[1:], None]),
        (pa.FixedSizeListArray.from_arrays(ODD, 2), [MENDED[:2], MENDED[2:]]),
        (STRUCTS, ROWS),
        (pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), STRUCTS), [ROWS[:2], ROWS[2:]]),
        (MAPS, [[("\ufffd", "\ufffd")], [], [("k", "a")]]),
    ],
    ids=lambda one: str(getattr(one, "type", "")),
)
def test_other_bytes_are_replaced(given: pa.Array, expected: list) -> None:
    for cut in range(len(expected)):
        found = valid_text(given[cut:])
        found.validate(full=True)
        assert found.type == given.type and found.to_pylist() == expected[cut:]


@pytest.mark.parametrize(
    "given",
    [ODD[1:3], pa.array([["a"], None]), pa.array([{"v": "a"}, None]), NUMBERS, pa.array([b"\xff"]), pa.array([[1]])],
    ids=str,
)
def test_what_is_valid_stays_as_it_is(given: pa.Array) -> None:
    assert valid_text(given) is given


NULS = pa.array(["\0", "a", None, "b\0c\0"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (NULS, [*MENDED[:3], "b\ufffdc\ufffd"]),
        (NULS.cast(pa.large_string()), [*MENDED[:3], "b\ufffdc\ufffd"]),
        (pa.array([["\0"], None, ["a", "b"]]), [["\ufffd"], None, ["a", "b"]]),
        (pa.array([{"v": "\0", "n": 1}, None]), [{"v": "\ufffd", "n": 1}, None]),
        (pa.array([[("k", "\0")], []], pa.map_(pa.string(), pa.string())), [[("k", "\ufffd")], []]),
        (pa.array([[{"v": ["\0"]}], []]), [[{"v": ["\ufffd"]}], []]),
    ],
    ids=lambda one: str(getattr(one, "type", "")),
)
def test_nul_is_replaced(given: pa.Array, expected: list) -> None:
    for cut in range(len(expected)):
        found = without_nul(given[cut:])
        found.validate(full=True)
        assert found.type == given.type and found.to_pylist() == expected[cut:]


@pytest.mark.parametrize(
    "given",
    [NULS[1:3], pa.array([["a"], None]), pa.array([{"v": "a"}, None]), NUMBERS, pa.array([b"\0"]), pa.array([[1]])],
    ids=str,
)
def test_what_has_no_nul_stays_as_it_is(given: pa.Array) -> None:
    assert without_nul(given) is given
