"""Chunks of state: whole, of this spec, or a StateError."""

import copy
import json
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.errors import StateError
from fastwin.state import chunks
from fastwin.state.narrow import NarrowTables, column_of, names_in, narrowed, widened
from tests.support.saved import with_checksum

MINE, OTHER = b"m" * 16, b"o" * 16
HEADER = chunks._HEADER.size


def chunk(kind: str = "snapshot") -> chunks.Chunk:
    tables = {
        "keys": pa.table({"k0": ["a", None, "é"]}),
        "rows": pa.table({"start": list(range(500)), "c3": [0.5] * 500}),
        "none": pa.table({"x": pa.array([], pa.int8())}),
    }
    return chunks.Chunk(kind, {"watermark": -(2**63), "layout": "string|int64"}, tables)


@pytest.mark.parametrize("kind", ["snapshot", "delta"])
def test_what_was_encoded_is_decoded(kind: str) -> None:
    for container in (bytes, bytearray, memoryview):
        found = chunks.decode(container(chunks.encode(chunk(kind), MINE)), MINE)
        assert found.kind == kind
        assert found.meta == chunk().meta
        assert found.tables == chunk().tables


def test_narrow_tables_are_those_that_were_encoded() -> None:
    found = chunks.decode(chunks.encode(chunk(), MINE), MINE, narrow=True).tables
    assert isinstance(found, NarrowTables)
    assert found == chunk().tables
    assert "rows" in found
    assert "other" not in found
    assert len(found) == len(chunk().tables)
    for tables in (found, chunk().tables):
        assert column_of(tables, "rows", "start").tolist() == list(range(500))
        assert column_of(tables, "rows", "c3").tolist() == [0.5] * 500
        assert {"start", "c3"} <= set(names_in(tables, "rows"))


def test_same_chunk_same_bytes() -> None:
    assert chunks.encode(chunk(), MINE) == chunks.encode(chunk(), MINE)


def test_empty_chunk() -> None:
    found = chunks.decode(chunks.encode(chunks.Chunk("delta", {}), MINE), MINE)
    assert (found.meta, found.tables) == ({}, {})


def test_repetition_is_compressed() -> None:
    assert len(chunks.encode(chunk(), MINE)) < 500 * 16


@st.composite
def whole_numbers(draw: st.DrawFn) -> pa.Array:
    """A column of int32 or int64, of values anywhere and of any span, or of such steps from one to the next."""
    bits = draw(st.sampled_from([32, 64]))
    kind = np.dtype(f"i{bits // 8}")
    base = draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    span = draw(st.sampled_from([1, 8, 9, 16, 17, 24, 25, 32, 33, 40, 41, 48, 49, 56, 57, 63, 64]))
    offsets = draw(st.lists(st.integers(0, 2**span - 1), max_size=30))
    values = np.array([(base + offset) % 2**bits for offset in offsets], dtype=f"u{bits // 8}").view(kind)
    return pa.array(np.cumsum(values, dtype=kind) if draw(st.booleans()) else values)


@given(whole_numbers())
def test_whole_numbers_come_back_as_they_were(column: pa.Array) -> None:
    table = pa.table({"n": column, "other": pa.array(["x"] * len(column))})
    small, notes = narrowed(table)
    assert small.nbytes <= table.nbytes
    found = widened(small, notes)
    assert found.equals(table)
    assert found.schema == table.schema


@pytest.mark.parametrize(
    ("values", "most"),
    [
        (np.full(1_000, 7), 1),
        (np.arange(1_000) * 86_400_000 + 1_700_000_000_000, 1),
        (np.arange(1_000) // 7, 1),
        (np.arange(1_000) * 7919 % 100_003, 3),
        (np.arange(1_000) * 7_919_000_017 % 2**40, 5),
        (np.arange(1_000) * 7_919_000_017_019 % 2**44, 6),
        (np.array([-(2**63), 2**63 - 1, 0] * 300), 8),
    ],
)
def test_whole_numbers_take_as_few_bytes_as_they_can(values: np.ndarray, most: int) -> None:
    small, _ = narrowed(pa.table({"n": values}))
    assert small.nbytes == most * len(values)


@pytest.mark.parametrize("length", [*range(HEADER + 8), 100, -1])
def test_cut_off(length: int) -> None:
    blob = chunks.encode(chunk(), MINE)
    with pytest.raises(StateError, match=r"no fastwin state|cut off"):
        chunks.decode(blob[:length], MINE)


def test_something_behind_it() -> None:
    with pytest.raises(StateError, match="where the header announces"):
        chunks.decode(chunks.encode(chunk(), MINE) + b"x", MINE)


@pytest.mark.parametrize("blob", [b"", b"FWST", b"PAR1" + bytes(100), b"ARROW1" + bytes(100), bytes(1000)])
def test_foreign_bytes(blob: bytes) -> None:
    with pytest.raises(StateError, match=f"{len(blob)} bytes that are no fastwin state"):
        chunks.decode(blob, MINE)


@pytest.mark.parametrize("blob", [None, 5, "text", [b"x"]])
def test_no_bytes_at_all(blob: object) -> None:
    with pytest.raises(StateError, match="a chunk is bytes, got"):
        chunks.decode(blob, MINE)


def test_another_spec_is_named() -> None:
    with pytest.raises(StateError) as caught:
        chunks.decode(chunks.encode(chunk(), OTHER), MINE, "key_by('k')")
    assert OTHER.hex() in str(caught.value)
    assert "key_by('k')" in str(caught.value)


def test_another_version_is_named() -> None:
    blob = bytearray(chunks.encode(chunk(), MINE))
    struct.pack_into("<H", blob, 4, 77)
    with pytest.raises(StateError, match="format version 77, but this fastwin reads versions 4 and 5"):
        chunks.decode(blob, MINE)


def test_every_flipped_bit_is_noticed() -> None:
    blob = chunks.encode(chunk(), MINE)
    dice = random.Random(1)
    places = [*range(8 * (HEADER + 20)), *dice.sample(range(8 * (HEADER + 20), 8 * len(blob)), 500)]
    unnoticed = []
    for place in places:
        flipped = bytearray(blob)
        flipped[place // 8] ^= 1 << place % 8
        try:
            found = chunks.decode(flipped, MINE)
        except StateError:
            continue
        unnoticed.append((place, found.kind))
    assert unnoticed == []


def test_nonsense_behind_a_right_checksum_is_an_error_not_a_crash() -> None:
    blob = chunks.encode(chunk(), MINE)
    dice = random.Random(2)
    (text_length,) = struct.unpack_from("<I", blob, HEADER)
    taken = 0
    for _ in range(300):
        body = bytearray(blob[HEADER:])
        for _ in range(dice.choice([1, 1, 3])):
            body[dice.randrange(4 + text_length)] = dice.randrange(256)
        try:
            chunks.decode(checked(bytes(body)), MINE)
        except StateError:
            continue
        taken += 1
    assert 0 < taken < 100  # some change nothing but a name or a number


ODD = [None, True, 0, -1, 7, 9, 2**70, 1.5, "f8", "(2 3)i4,i4", "O", [], [1, 2], {}, {"x": 1}]


def test_odd_values_in_the_text_are_errors_not_crashes() -> None:
    blob = chunks.encode(chunk(), MINE)
    (length,) = struct.unpack_from("<I", blob, HEADER)
    text, rest = json.loads(blob[HEADER + 4 : HEADER + 4 + length]), blob[HEADER + 4 + length :]
    refused = 0
    for path in list(paths(text)):
        for odd in ODD:
            changed = copy.deepcopy(text)
            where = changed
            for step in path[:-1]:
                where = where[step]
            where[path[-1]] = odd
            coded = json.dumps(changed).encode()
            body = struct.pack("<I", len(coded)) + coded + rest
            try:
                chunks.decode(checked(body), MINE)
            except StateError:
                refused += 1
    assert refused > 200
    deep = struct.pack("<I", 200_000) + b"[" * 200_000
    with pytest.raises(StateError, match="makes no sense"):
        chunks.decode(checked(deep), MINE)


def checked(body: bytes) -> bytes:
    """Returns a chunk with this body, whatever it is, and the right checksum."""
    return with_checksum(chunks._HEADER.pack(b"FWST", chunks.FORMAT_VERSION, 0, 0, MINE, 0, 0) + body)


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yields where the values in a JSON text are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inner:
        yield (step,)
        for path in paths(below):
            yield (step, *path)
