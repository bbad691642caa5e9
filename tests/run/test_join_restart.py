"""What a restored join knows: the newest time of each input, and functions whose code has changed."""

import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError, StateError
from fastwin.run.joinheader import JoinHeader, split_header
from fastwin.state.chunks import Chunk, decode, encode, owner
from tests.support.clock import Clock

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])
START = fw.key_by("k").event_time("ts", unit="ms")
WINDOW = fw.TumblingEventTimeWindows.of(10)
JOIN = fw.window_join(START, START, WINDOW)


def rows(*times: int) -> pa.Table:
    return pa.table({"k": ["a"] * len(times), "ts": pa.array(times, pa.int64())})


def opened(**options: Any) -> fw.JoinStream:
    return JOIN.open(("0 s", "1 hour"), schemas=(SCHEMA, SCHEMA), idle="30 s", **options)


def lifted(clock: Clock, *right: int) -> fw.JoinStream:
    """A join whose right input has been quiet, so that time has gone on without it."""
    stream = opened()
    stream.process(right=rows(*right))
    clock.now += 31
    stream.process(left=rows(10_000_000))
    assert stream._watermarks == [9_999_999, 9_999_999]
    return stream


def as_before(chunk: bytes) -> bytes:
    """A chunk with the first version of the header, which told no newest times."""
    header, rest = split_header(chunk)
    told = struct.pack("<qq", *header.watermarks)
    return b"fwjoin\x00\x01" + told + struct.pack("<I", zlib.crc32(told)) + rest


@pytest.mark.parametrize("right", [(), (5_000,)])
@pytest.mark.parametrize("saves", [0, 1, 2])
def test_time_that_went_on_without_an_input_goes_on_as_without_a_restart(
    clock: Clock, right: tuple[int, ...], saves: int
) -> None:
    stream = lifted(clock, *right)
    chunks: list[bytes] = []
    for _ in range(saves):
        chunks.append(stream.delta() if chunks else stream.snapshot())
        stream = opened()
        stream.restore(chunks)
    clock.now += 30
    stream.process()
    assert stream.watermark == 10_000_000
    clock.now += 2
    stream.process()
    assert stream.watermark == 10_002_000
    assert stream.process(left=rows(10_002_001)).main.num_rows == 0
    assert stream.metrics.num_late_records_dropped == 0


def test_a_watermark_that_the_caller_moved_is_no_element_after_a_restart(clock: Clock) -> None:
    stream = opened()
    stream.process(left=rows(100), right=rows(50))
    stream.advance_watermark(left=2_000, right=3_000)
    again = opened()
    again.restore(stream.snapshot())
    clock.now += 30
    again.process()
    assert again.watermark == 2_000  # the newest elements are far behind
    assert "newest element" not in again.why("a").text


def test_state_without_newest_times_is_read_and_they_are_guessed(clock: Clock) -> None:
    stream = lifted(clock)
    chunk = as_before(stream.snapshot())
    for chunks in ([chunk], [chunk, as_before(stream.delta())]):
        again = opened()
        again.restore(chunks)
        assert (again._watermarks, again.watermark) == ([9_999_999, 9_999_999], 9_999_999)
        assert again._clocks.newest == (10_000_000, 13_600_000)
    told = " ".join(again.why("a").text.split())
    assert "newest element" not in told
    saved = opened()  # what was guessed once stays a guess
    saved.restore(again.snapshot())
    assert saved._clocks.newest == (10_000_000, 13_600_000)
    assert "newest element" not in saved.why("a").text
    saved.process(right=rows(13_700_000))
    told = " ".join(saved.why("a").text.split())
    assert (
        "right input is at 1970-01-01 02:48:19.999, 1 h behind its newest element, which is of 1970-01-01 03:48:20"
        in told
    )
    assert told.count("newest element") == 1


def test_a_header_is_read_as_it_was_written() -> None:
    header = JoinHeader((-(2**63), 5), (2**63 - 1, -7), (False, True))
    chunk = header.before(b"rest")
    assert split_header(chunk) == (header, b"rest")
    assert split_header(as_before(chunk)) == (JoinHeader((-(2**63), 5), None), b"rest")
    for at in range(8, len(chunk) - 4):
        damaged = bytearray(chunk)
        damaged[at] ^= 1
        with pytest.raises(StateError, match="the chunk is corrupt: its watermarks do not match their checksum"):
            split_header(bytes(damaged))
    for short in (b"", chunk[:7], chunk[:40], as_before(chunk)[:27], b"fwjoin\x00\x03" + chunk[8:]):
        with pytest.raises(StateError, match="the chunk is none of a join"):
            split_header(short)


def of_lateness(left: int, right: int) -> fw.JoinStream:
    join = fw.window_join(START.allowed_lateness(left), START.allowed_lateness(right), WINDOW)
    return join.open(("0 s", "0 s"), schemas=(SCHEMA, SCHEMA))


@pytest.mark.parametrize(
    ("before", "after", "shorter"),
    [
        ((10, 0), (10, 0), None),
        ((10, 0), (10, 5), None),
        ((10, 0), (10, 10), None),
        ((5, 5), (5, 9), None),
        ((0, 0), (10, 0), None),
        ((10, 0), (0, 10), "left input was 10 ms, is 0 ms"),
        ((10, 5), (20, 0), "right input was 5 ms, is 0 ms"),
        ((10, 10), (20, 9), "right input was 10 ms, is 9 ms"),
    ],
)
@pytest.mark.parametrize("deltas", [False, True])
def test_the_lateness_of_each_input_may_get_longer(
    before: tuple[int, int], after: tuple[int, int], shorter: str | None, deltas: bool
) -> None:
    stream = of_lateness(*before)
    stream.process(left=rows(5, 22), right=rows(22))
    chunks = [stream.snapshot()]
    if deltas:
        stream.process(left=rows(23))
        chunks.append(stream.delta())
    again = of_lateness(*after)
    if shorter is not None:
        with pytest.raises(StateError, match=f"allowed_lateness of the {shorter}; only a longer one can go on"):
            again.restore(chunks)
        return
    again.restore(chunks)
    assert again.process(left=rows(36), right=rows(36)).main.num_rows == 1 + deltas
    again.process(left=rows(29), right=rows(29))  # the watermark is at 35, the last of the window at 29
    assert again.metrics.num_late_records_dropped == sum(29 + late <= 35 for late in after)


def without_lateness_of_inputs(chunk: bytes) -> bytes:
    """A chunk that does not tell the lateness of each input, as of an earlier version."""
    header, rest = split_header(chunk)
    found = decode(rest, owner(rest))
    meta = {**found.meta, "spec": found.meta["spec"][:6]}
    return header.before(encode(Chunk(found.kind, meta, found.tables, found.objects, found.link), owner(rest)))


def test_state_that_does_not_tell_the_lateness_of_each_input_is_read() -> None:
    stream = of_lateness(10, 5)
    stream.process(left=rows(5, 22), right=rows(22))
    chunk = without_lateness_of_inputs(stream.snapshot())
    for migrate in (None, "wider types"):
        again = of_lateness(10, 5)
        again.restore([chunk], migrate=migrate)
        assert again.process(left=rows(36), right=rows(36)).main.num_rows == 1
    longer = of_lateness(10, 10)
    longer.restore([chunk])
    assert longer.process(left=rows(36), right=rows(36)).main.num_rows == 1
    with pytest.raises(StateError, match="allowed_lateness of the right input was 10 ms, is 7 ms"):
        of_lateness(10, 7).restore([chunk])  # it may have been as long


def lines(text: str) -> Any:
    """Returns a function that has no name of its own, from a text."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(text, space)
    return space["f"]


def grouped(text: str, output: str = "n bigint") -> fw.JoinStream:
    join = fw.co_group(START, START, WINDOW, lines(text), output=output)
    return join.open(schemas=(SCHEMA, SCHEMA))


def test_a_function_with_other_code_goes_on_if_that_is_allowed() -> None:
    stream = grouped("f = lambda key, window, left, right: [(len(left),)]")
    stream.process(left=rows(1, 2))
    chunk = stream.snapshot()
    other = "f = lambda key, window, left, right: [(100 + len(left),)]"
    with pytest.raises(StateError, match=r"co_group has other code in __main__\.<lambda>.*migrate="):
        grouped(other).restore(chunk)
    again = grouped(other)
    again.restore([chunk], migrate="changed functions")
    assert again.advance_watermark(9).main["n"].to_pylist() == [102]
    with pytest.raises(StateError, match="co_group was"):
        grouped(other, "m int").restore(chunk, migrate="changed functions")
    with pytest.raises(SpecError, match="migrate: must be None"):
        grouped(other).restore(chunk, migrate="all")


@pytest.mark.parametrize("call", ["snapshot", "delta"])
def test_an_interrupt_behind_a_written_chunk_fails_the_join(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = opened()
    saved = stream.snapshot()
    stream.process(left=rows(1), right=rows(1))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fastwin.run.joinstream.JoinHeader", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(stream, call)()
    with pytest.raises(StateError, match=r"it failed .*KeyboardInterrupt"):
        stream.delta()
    stream.restore([saved])
    assert stream.process(left=rows(1), right=rows(1)).main.num_rows == 0
