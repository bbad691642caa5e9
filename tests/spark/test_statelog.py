"""The state of a key group: what was saved is loaded, in values of bounded size, by the same query only."""

import pytest

from fastwin.errors import StateError
from spark_glue import statelog
from spark_glue.statelog import CHUNK_BYTES, Head, Identity, StateLog
from tests.spark.fakes import FakeHandle

ME = Identity("ab" * 16, "the spec", "k int64, n int64", 64)


@pytest.fixture
def handle() -> FakeHandle:
    return FakeHandle()


def stored(handle: FakeHandle) -> list[int]:
    """Sizes of the numbered chunks in the store."""
    return [len(value[0]) for _, value in sorted(handle.values[handle.key].get("chunks", {}).items())]


def test_nothing_stored_is_an_empty_head(handle):
    assert StateLog(handle, ME).load() == Head()


@pytest.mark.parametrize(
    "chunks",
    [
        [b""],
        [b"x"],
        [b"snapshot", b"", b"delta"],
        [b"s" * CHUNK_BYTES],
        [b"s" * (CHUNK_BYTES + 1)],
        [b"s" * (CHUNK_BYTES - 1), b"dd"],
        [b"s" * (2 * CHUNK_BYTES + 5), b"d" * CHUNK_BYTES],
    ],
    ids=lambda chunks: "+".join(str(len(chunk)) for chunk in chunks),
)
def test_saved_is_loaded(handle, chunks):
    log = StateLog(handle, ME)
    log.load()
    written = log.save(chunks, timer=123)
    assert written == handle.written
    assert sum(map(len, chunks)) < written < sum(map(len, chunks)) + 300
    assert StateLog(handle, ME).load() == Head(tuple(chunks), 123)
    assert all(size <= CHUNK_BYTES for size in stored(handle))
    assert len(handle.values[0]["head"][0]) <= CHUNK_BYTES + 300


def test_smaller_state_leaves_no_chunk_behind(handle):
    log = StateLog(handle, ME)
    log.load()
    log.save([b"s" * (3 * CHUNK_BYTES)], None)
    assert stored(handle) == [CHUNK_BYTES] * 3
    again = StateLog(handle, ME)
    again.load()
    again.save([b"s" * (CHUNK_BYTES + 1)], None)
    assert stored(handle) == [CHUNK_BYTES, 1]
    again.save([b"s"], None)
    assert stored(handle) == []
    again.load()
    again.clear()
    assert handle.values[0] == {"chunks": {}}


def test_key_groups_do_not_mix(handle):
    log = StateLog(handle, ME)
    log.load()
    log.save([b"s" * (2 * CHUNK_BYTES)], 1)
    handle.key = 1
    assert log.load() == Head()
    log.save([b"t"], None)
    log.clear()
    handle.key = 0
    assert log.load() == Head((b"s" * (2 * CHUNK_BYTES),), 1)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (Identity(ME.fingerprint, ME.text, ME.columns, 32), "key_groups=64, this query has key_groups=32"),
        (Identity("cd" * 16, "another spec", ME.columns, 64), "spec: .* this query has another spec"),
    ],
)
def test_state_of_another_query_is_refused(handle, other, says):
    log = StateLog(handle, ME)
    log.load()
    log.save([b"s"], None)
    with pytest.raises(StateError, match=says):
        StateLog(handle, other).load()


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (Identity(ME.fingerprint, ME.text, ME.columns, 32), "key_groups=64, this query has key_groups=32"),
        (Identity("cd" * 16, "another spec", ME.columns, 64), r"spec: .* one \(the spec\); this query has another spec"),
        (Identity(ME.fingerprint, ME.text, "k int32, n int64", 64), "of k int64, n int64, now they would be k int32"),
    ],
)
def test_the_record_knows_its_query(handle, other, says):
    StateLog(handle, ME).sign()
    StateLog(handle, ME).sign()
    with pytest.raises(StateError, match=says):
        StateLog(handle, other).sign()


def damage(head: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "short": head[:5],
        "foreign": b"\x00" + head[1:],
        "other format": head[:4] + b"\x63\x00" + head[6:],
        "cut off": head[:-1],
        "too long": head + b"x",
        "garbled fields": head[:12] + b"\xff" + head[13:],
    }


@pytest.mark.parametrize("kind", damage(b""))
def test_damaged_state_is_refused(handle, kind):
    log = StateLog(handle, ME)
    log.load()
    log.save([b"snapshot"], None)
    (head,) = handle.values[0]["head"]
    handle.values[0]["head"] = (damage(head)[kind],)
    with pytest.raises(StateError, match="state: "):
        log.load()


def test_missing_chunk_is_refused(handle):
    log = StateLog(handle, ME)
    log.load()
    log.save([b"s" * (2 * CHUNK_BYTES)], None)
    del handle.values[0]["chunks"][(1,)]
    with pytest.raises(StateError, match="chunk 1 of 2 is missing"):
        log.load()


def test_split_and_join_are_inverse():
    data = bytes(range(256)) * 100_000
    pieces = statelog._split(data)
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) == CHUNK_BYTES
