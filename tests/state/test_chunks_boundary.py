"""Bytes that are attacked behind a right checksum: a StateError, or a stream whose parts hold together. Never a crash."""

import contextlib
import json
import random
import struct

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.state import chunks
from tests.support.saved import with_checksum

HEADER = chunks._HEADER.size
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
BASE = fw.key_by("k").event_time("ts")
MANY = {
    "n": fw.Count(),
    "total": fw.Sum("v"),
    "mean": fw.Mean("v"),
    "low": fw.Min("k"),
    "last": fw.Last("k"),
    "uv": fw.HyperLogLog("v"),
}
SPECS = {
    "tumbling": BASE.window(fw.TumblingEventTimeWindows.of(20)).aggregate(**MANY),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(20, 8)).allowed_lateness(5, coalesce=True).aggregate(**MANY),
    "session": BASE.window(fw.EventTimeSessionWindows.with_gap(6)).aggregate(**MANY),
    "general": (
        BASE.window(fw.EventTimeSessionWindows.with_gap(6))
        .trigger(fw.after_watermark(early=fw.CountTrigger.of(3)))
        .with_pane_info()
        .aggregate(**MANY)
    ),
}


def rows(number: int) -> pa.Table:
    times = [10 * number + step for step in (0, 3, 9, 15)]
    return pa.table({"k": ["a", "b", None, "a"], "ts": times, "v": [1, 2, 3, number]}, schema=SCHEMA)


def saved(kind: str) -> list[bytes]:
    """A snapshot and a delta of a stream."""
    stream, found = SPECS[kind].open(schema=SCHEMA), []
    for number in range(2):
        stream.process(rows(number))
        stream.advance_watermark(10 * number)
        found.append(stream.delta() if found else stream.snapshot())
    return found


def survives(kind: str, blobs: list[bytes]) -> bool:
    """Restores chunks, and goes on; returns whether they were taken."""
    stream = SPECS[kind].open(schema=SCHEMA)
    try:
        stream.restore(blobs)
    except fw.StateError:
        return False
    stream._check_invariants()
    with contextlib.suppress(fw.SpecError, fw.StateError, fw.AggregateOverflowError):
        stream.process(rows(2))
        stream._check_invariants()
    return True


@pytest.mark.parametrize("kind", SPECS)
def test_every_flipped_bit_of_a_chunk_is_noticed(kind: str) -> None:
    snapshot, delta = saved(kind)
    assert survives(kind, [snapshot, delta])
    for number, blob in enumerate((snapshot, delta)):
        (length,) = struct.unpack_from("<I", blob, HEADER)
        step = max(1, 8 * (len(blob) - HEADER) // 100) | 1
        for place in [*range(8 * HEADER), *range(8 * HEADER, 8 * len(blob), step)]:
            flipped = bytearray(blob)
            flipped[place // 8] ^= 1 << place % 8
            chain = [flipped] if number == 0 else [snapshot, flipped]
            assert not survives(kind, chain), (number, place, length)


@pytest.mark.parametrize("kind", SPECS)
def test_random_bytes_behind_a_right_checksum(kind: str) -> None:
    """The parser of the body itself is attacked, and what reads the rows."""
    snapshot, delta = saved(kind)
    dice = random.Random(5)
    taken = 0
    for turn in range(300):
        number, chain = turn % 2, [bytearray(snapshot), bytearray(delta)]
        for _ in range(dice.choice((1, 1, 1, 2, 8))):
            chain[number][dice.randrange(HEADER, len(chain[number]))] = dice.randrange(256)
        chain[number] = with_checksum(chain[number])
        taken += survives(kind, [bytes(blob) for blob in (chain if number else chain[:1])])
    assert 0 < taken < 100


@pytest.mark.parametrize("kind", SPECS)
def test_random_values_in_the_rows(kind: str) -> None:
    """The bytes make sense, and the numbers in them do not."""
    snapshot, _ = saved(kind)
    fingerprint = chunks.owner(snapshot)
    found = chunks.decode(snapshot, fingerprint)
    dice = random.Random(6)
    odd = [0, -1, 1, 7, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]
    taken = []
    for _ in range(200):
        tables = dict(found.tables)
        name = dice.choice(list(tables))
        table = tables[name]
        if not table.num_columns or not table.num_rows:
            continue
        at = dice.randrange(table.num_columns)
        column = table.column(at).to_pylist()
        kind_of = table.schema.field(at).type
        for row in range(len(column)):
            if dice.random() < 0.5:
                column[row] = other(dice, kind_of, odd, column[row])
        tables[name] = table.set_column(at, table.schema.field(at), pa.array(column, kind_of))
        chunk = chunks.Chunk(found.kind, found.meta, tables, found.objects, found.link)
        taken.append(survives(kind, [chunks.encode(chunk, fingerprint)]))
    assert len(taken) > 100
    assert set(taken) == {True, False}


def other(dice: random.Random, kind: pa.DataType, odd: list[int], value: object) -> object:
    """Another value of a type."""
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        number = dice.choice([*odd, dice.getrandbits(60)]) % 2**bits
        return number - 2**bits if pa.types.is_signed_integer(kind) and number >= 2 ** (bits - 1) else number
    if pa.types.is_floating(kind):
        return dice.choice([0.0, float("nan"), float("inf"), -1e300])
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return dice.choice([b"", b"x", dice.randbytes(40), bytes(value)[:-1] if value else b"\xff" * 9])
    return value


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 0, 2**31])
def test_a_length_that_is_not_there(length: int) -> None:
    blob = bytearray(saved("tumbling")[0])
    struct.pack_into("<Q", blob, 28, length)
    assert not survives("tumbling", [bytes(blob)])


@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 0, 3])
def test_a_text_of_a_length_that_is_not_there(length: int) -> None:
    blob = bytearray(saved("tumbling")[0])
    struct.pack_into("<I", blob, HEADER, length)
    assert not survives("tumbling", [with_checksum(blob)])


def test_a_text_that_is_far_too_long() -> None:
    text = b'{"meta":{},"tables":[],"x":"' + b"a" * 100_000_000 + b'"}'
    blob = saved("tumbling")[0][:HEADER] + struct.pack("<I", len(text)) + text
    with pytest.raises(fw.StateError, match="a text of 100000030 bytes"):
        SPECS["tumbling"].open(schema=SCHEMA).restore(with_checksum(blob))


@pytest.mark.parametrize(
    "text", [b"[" * 1_000_000, b'{"meta":' * 100_000, b"{}", b"[]", b"null", b"\xff\xfe", b"1" * 10_000]
)
def test_texts_that_describe_nothing(text: bytes) -> None:
    blob = saved("tumbling")[0][:HEADER] + struct.pack("<I", len(text)) + text
    assert not survives("tumbling", [with_checksum(blob)])


def test_what_lies_behind_a_chunk_is_noticed() -> None:
    snapshot, delta = saved("session")
    assert not survives("session", [snapshot + b"\0"])
    assert not survives("session", [snapshot + delta])
    assert not survives("session", [with_checksum(snapshot + b"\0")])
    assert not survives("session", [snapshot, delta + b"garbage"])


def test_tables_of_lengths_that_are_not_there() -> None:
    blob = saved("tumbling")[0]
    (length,) = struct.unpack_from("<I", blob, HEADER)
    rest = blob[HEADER + 4 + length :]
    for size in (-1, 2**62, 2**70, 0, 1.5, "7", None):
        fields = json.loads(blob[HEADER + 4 : HEADER + 4 + length])
        fields["tables"][0][1] = size
        text = json.dumps(fields).encode()
        assert not survives("tumbling", [with_checksum(blob[:HEADER] + struct.pack("<I", len(text)) + text + rest)])


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("odd", [None, True, -1, 2**70, 1.5, "x", [], [[1]], [[1, 2, 3]], [["a", "b"]], {}])
def test_odd_places_in_a_chain(place: int, odd: object) -> None:
    snapshot, delta = saved("tumbling")
    (length,) = struct.unpack_from("<I", delta, HEADER)
    fields = json.loads(delta[HEADER + 4 : HEADER + 4 + length])
    if fields["chain"][place] == odd or (place == 4 and not odd) or (place == 3 and odd in ([], {})):
        return
    fields["chain"][place] = odd
    text = json.dumps(fields).encode()
    blob = with_checksum(delta[:HEADER] + struct.pack("<I", len(text)) + text + delta[HEADER + 4 + length :])
    if survives("tumbling", [snapshot, blob]):
        assert place in (2, 3, 5), "only what counts for the chunks behind it"
