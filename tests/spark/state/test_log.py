"""The log of a share in the state store: what was appended is read, in values of bounded size, by the same query only."""

import json
import struct
import zlib
from dataclasses import replace

import pytest

import fastwin as fw
from fastwin.errors import StateError
from fastwin.state.identity import StateAggregate, StateSpec
from fastwin.state.signing import KEY_VARIABLE
from spark_glue.plan.keygroups import RECORD_ID
from spark_glue.state import log as state_log
from spark_glue.state.log import CHUNK_BYTES, INLINE_BYTES, Head, Identity, StateLog, head_in
from tests.support.spark_fakes import FakeHandle

SPEC = StateSpec("aligned", (("window", "of a minute"),), 10, (StateAggregate("n", "Count()", "none", 1),), "int64", "")
ME = Identity("ab" * 16, SPEC, 64, 2)


@pytest.fixture
def handle() -> FakeHandle:
    return FakeHandle()


@pytest.fixture
def in_chunks(monkeypatch):
    """All deltas have chunks, however small they are."""
    monkeypatch.setattr(state_log, "INLINE_BYTES", -1)


def stored(handle: FakeHandle) -> list[int]:
    """Sizes of the chunks in the store."""
    return [len(value[0]) for _, value in sorted(handle.values[handle.key].get("chunks", {}).items())]


def append(log: StateLog, head: Head, delta: bytes, **meta) -> Head:
    head = log.append(head, delta, {"rows": 1, "last_end": 100} | meta, 4, meta.pop("cleaned", None)).head
    log.save(head)
    return head


def test_nothing_stored_is_an_empty_head(handle):
    head = StateLog(handle, ME).load(0)
    assert head == Head()
    assert head.log.token is None


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7])
def test_appended_is_read(handle, size):
    log = StateLog(handle, ME)
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    head = log.append(log.load(0), b"first", {"rows": 3}, 4, None).head
    head, gone, moved = log.append(Head(head.log, 123), data, {"rows": 5, "last_end": 77}, 4, None)
    assert gone == []
    assert moved == [(head.log.entries[1], data)]
    log.save(head)
    again = StateLog(handle, ME)
    assert again.load(0) == head
    assert head.timer == 123
    assert [again.read(head, entry) for entry in head.log.entries] == [b"first", data]
    assert [(entry.rows, entry.last_end) for entry in head.log.entries] == [(3, None), (5, 77)]
    assert max(stored(handle)) <= CHUNK_BYTES
    assert sum(stored(handle)) == 5 + size


def test_a_log_without_chunks_has_all_in_its_head(handle, monkeypatch):
    monkeypatch.setattr(state_log, "CHUNK_BYTES", 1_000)
    log = StateLog(handle, ME, in_chunks=False)
    large = b"0123456789abcdef" * 10_000
    head = append(log, append(log, log.load(0), b"first"), large)
    again = StateLog(handle, ME, in_chunks=False)
    assert again.load(0) == head
    assert [again.read(head, entry) for entry in head.log.entries] == [b"first", large]
    assert set(handle.values[handle.key]) == {"head"}
    again.clear(again.load(0))
    assert handle.values[handle.key] == {}


def test_tokens_follow_from_what_was_written(handle):
    log = StateLog(handle, ME)
    tokens = [log.append(Head(), delta, {"rows": 1}, 4, None).head.log.token for delta in (b"same", b"same", b"other")]
    assert tokens[0] == tokens[1] != tokens[2]


@pytest.mark.usefixtures("in_chunks")
def test_what_is_cleaned_leaves_no_chunk_behind(handle):
    log = StateLog(handle, ME)
    head = append(log, Head(), b"a" * (2 * CHUNK_BYTES), last_end=50)
    head = append(log, head, b"b", last_end=60)
    head = append(log, head, b"c", last_end=70, cleaned=50)
    assert stored(handle) == [1, 1]
    head = append(log, head, b"d", last_end=None, cleaned=70)
    assert stored(handle) == [1]
    log.clear(head)
    assert handle.values[0] == {"chunks": {}}


def test_shares_do_not_mix(handle):
    log = StateLog(handle, ME)
    mine = append(log, log.load(0), b"mine")
    handle.key = 1
    assert log.load(1) == Head(share=1)
    other = append(log, log.load(1), b"other")
    log.clear(other)
    handle.key = 0
    assert log.load(0) == mine
    assert log.read(mine, mine.log.entries[0]) == b"mine"


@pytest.mark.usefixtures("in_chunks")
def test_what_is_signed_stays_with_its_share(handle, monkeypatch):
    """Who has no key can still move what is signed from one share to another."""
    monkeypatch.setenv(KEY_VARIABLE, "a key of some length")
    log, heads = StateLog(handle, ME), []
    for share, delta in enumerate((b"mine", b"them")):
        handle.key = share
        heads.append(append(log, log.load(share), delta))
    values = handle.values
    values[0]["chunks"], values[1]["chunks"] = values[1]["chunks"], values[0]["chunks"]
    with pytest.raises(StateError, match=r"the delta range\(0, 1\) is another one than the head tells of"):
        log.read(heads[1], heads[1].log.entries[0])
    values[0]["head"], values[1]["head"] = values[1]["head"], values[0]["head"]
    with pytest.raises(StateError, match="share 1 has the head of share 0"):
        log.load(1)


OTHERS = [
    (replace(ME, key_groups=32), "key_groups=64, this query has key_groups=32"),
    (replace(ME, shares=3), "lies in 2 parts, this query would look for 3"),
]
MORE = StateAggregate("high", "Max('v')", "int64", 1)


@pytest.mark.parametrize(("other", "says"), OTHERS)
def test_state_of_another_query_is_refused(handle, other, says):
    log = StateLog(handle, ME)
    append(log, log.load(0), b"s")
    with pytest.raises(StateError, match=says):
        StateLog(handle, other).load(0)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        *OTHERS,
        (replace(ME, spec=replace(SPEC, keys="int32")), "the keys were of int64, are of int32.*needs a new checkpoint"),
        (
            replace(ME, fingerprint="cd" * 16, spec=replace(SPEC, parts=(("window", "of an hour"),))),
            "window was of a minute, is of an hour; such a query needs a new checkpoint",
        ),
        (replace(ME, fingerprint="cd" * 16, spec=replace(SPEC, lateness_ms=9)), "allowed_lateness was 10 ms, is 9 ms"),
        (
            replace(ME, fingerprint="cd" * 16, spec=replace(SPEC, aggregates=(*SPEC.aggregates, MORE))),
            r"high=Max\(.*\) is new: .* migrate='added aggregates' allows that",
        ),
    ],
)
def test_the_record_knows_its_query(handle, other, says):
    StateLog(handle, ME).sign()
    StateLog(handle, ME).sign()
    with pytest.raises(StateError, match=says):
        StateLog(handle, other).sign()


def test_times_without_a_zone_are_read_in_one_zone_for_ever(handle):
    berlin, utc = (StateLog(handle, replace(ME, time_zone=zone)) for zone in ("Europe/Berlin", "UTC"))
    handle.key = RECORD_ID
    StateLog(handle, ME).sign()
    berlin.sign()  # what tells of no zone takes that of the next start
    with pytest.raises(StateError, match=r"read in 'Europe/Berlin', and spark.sql.session.timeZone is 'UTC' now"):
        utc.sign()
    handle.key = 0
    append(berlin, berlin.load(0), b"s")
    with pytest.raises(StateError, match=r"set it to 'Europe/Berlin'"):
        utc.load(0)
    StateLog(handle, ME).load(0)  # whoever reads no times needs no zone


def test_the_record_goes_on_with_the_query(handle):
    StateLog(handle, ME).sign()
    longer = replace(ME, fingerprint="cd" * 16, spec=replace(SPEC, lateness_ms=20))
    more = replace(longer, fingerprint="ef" * 16, spec=replace(longer.spec, aggregates=(*SPEC.aggregates, MORE)))
    StateLog(handle, longer).sign()
    with pytest.raises(StateError, match="allowed_lateness was 20 ms, is 10 ms"):
        StateLog(handle, ME).sign()
    StateLog(handle, replace(more, migrate="added aggregates")).sign()
    StateLog(handle, more).sign()
    with pytest.raises(StateError, match=r"aggregate high=.* is missing"):
        StateLog(handle, longer).sign()


def test_a_head_tells_that_an_earlier_spec_has_written_it(handle):
    log = StateLog(handle, ME)
    append(log, log.load(0), b"s")
    assert not log.load(0).earlier
    assert StateLog(handle, replace(ME, fingerprint="cd" * 16)).load(0).earlier


def damage(head: bytes) -> dict[str, tuple[bytes, str]]:
    return {
        "empty": (b"", "0 bytes is no state"),
        "short": (head[:5], "5 bytes is no state"),
        "foreign": (b"\x00" + head[1:], "starts with"),
        "other format": (head[:4] + b"\x63\x00" + head[6:], "format 99, this version of fastwin reads formats 4 to 6"),
        "no length": (head[:7], "cannot be read"),
        "cut off": (head[:-1], "cannot be read"),
        "garbled fields": (head[:12] + b"\xff" + head[13:], "cannot be read"),
    }


@pytest.mark.parametrize("kind", damage(b""))
def test_damaged_head_is_refused(handle, kind):
    log = StateLog(handle, ME)
    append(log, log.load(0), b"delta")
    (head,) = handle.values[0]["head"]
    blob, says = damage(head)[kind]
    handle.values[0]["head"] = (blob,)
    with pytest.raises(StateError, match=says):
        log.load(0)


@pytest.mark.usefixtures("in_chunks")
def test_missing_and_shortened_chunks_are_refused(handle):
    log = StateLog(handle, ME)
    head = append(log, log.load(0), b"s" * (2 * CHUNK_BYTES))
    handle.values[0]["chunks"][(0,)] = (b"s",)
    with pytest.raises(StateError, match=f"{2 * CHUNK_BYTES} bytes were written, {CHUNK_BYTES + 1} are there"):
        log.read(head, head.log.entries[0])
    del handle.values[0]["chunks"][(1,)]
    with pytest.raises(StateError, match="chunk 1 of the delta"):
        log.read(head, head.log.entries[0])


def test_small_deltas_lie_in_the_head_until_they_are_too_many(handle):
    log, head, size = StateLog(handle, ME), Head(), INLINE_BYTES // 4
    for number in range(4):
        head = append(log, head, bytes([number]) * size)
        assert "chunks" not in handle.values[0]  # not even asked for
        assert log.load(0) == head
    assert [log.read(head, entry) for entry in head.log.entries] == [bytes([number]) * size for number in range(4)]
    (blob,) = handle.values[0]["head"]
    told = head_in(blob)
    assert not told.has_chunks
    assert told.deltas({}) == [bytes([number]) * size for number in range(4)]
    head, _, moved = log.append(head, b"x", {"rows": 1}, 4, None)
    assert [len(delta) for _, delta in moved] == [*[size] * 4, 1]
    assert head.inline == {}
    assert stored(handle) == [*[size] * 4, 1]
    head = append(log, head, b"in the head again")
    assert log.load(0) == head
    assert log.read(head, head.log.entries[-1]) == b"in the head again"
    assert log.read(head, head.log.entries[1]) == b"\x01" * size
    log.clear(head)
    assert handle.values[0] == {"chunks": {}}


def test_a_large_delta_takes_the_small_ones_along(handle):
    log = StateLog(handle, ME)
    head = append(log, Head(), b"small")
    head = append(log, head, b"l" * (INLINE_BYTES + 1), last_end=200)
    assert stored(handle) == [5, INLINE_BYTES + 1]
    head = append(log, head, b"next", last_end=300)
    assert dict(head.inline) == {2: b"next"}
    head = append(log, head, b"last", cleaned=200)
    assert stored(handle) == []
    assert dict(head.inline) == {2: b"next", 3: b"last"}
    assert append(log, head, b"end", last_end=None, cleaned=300).inline == {4: b"end"}


@pytest.mark.parametrize("signed", [False, True])
def test_a_delta_in_a_damaged_head_is_refused(handle, monkeypatch, signed):
    if signed:
        monkeypatch.setenv(KEY_VARIABLE, "a key of some length")
    log = StateLog(handle, ME)
    append(log, Head(), b"delta")
    (blob,) = handle.values[0]["head"]
    at = blob.index(b"delta")
    handle.values[0]["head"] = (blob[:at] + blob[at + 1 :],)
    with pytest.raises(StateError, match="its signature does not fit" if signed else "1 deltas, and 4 bytes of them"):
        log.load(0)


@pytest.mark.parametrize("version", [4, 5])
def test_heads_of_earlier_formats_are_read(handle, monkeypatch, version):
    """They had no length behind the prefix, and no deltas."""
    monkeypatch.setattr(state_log, "INLINE_BYTES", -1)
    log = StateLog(handle, ME)
    head = append(log, append(log, Head(), b"first"), b"second")
    (blob,) = handle.values[0]["head"]
    fields = json.loads(zlib.decompress(blob[10:]))
    assert fields.pop("inline") == 0
    handle.values[0]["head"] = (struct.pack("<4sH", b"FWSL", version) + zlib.compress(json.dumps(fields).encode()),)
    assert log.load(0) == head
    monkeypatch.undo()
    head = append(log, log.load(0), b"third")
    assert dict(log.load(0).inline) == {2: b"third"}
    assert [log.read(head, entry) for entry in head.log.entries] == [b"first", b"second", b"third"]


@pytest.mark.usefixtures("in_chunks")
def test_a_head_is_small(handle):
    log = StateLog(handle, ME)
    head = Head()
    for number in range(400):
        head = append(log, head, b"delta" * (number % 90))
    (stored_head,) = handle.values[0]["head"]
    assert len(stored_head) < 400 * 25  # of which 16 are the token
    assert StateLog(handle, ME).load(0) == head


@pytest.mark.usefixtures("in_chunks")
def test_a_delta_without_rows_is_needless_with_the_next_one(handle):
    log = StateLog(handle, ME)
    head = append(log, Head(), b"a", rows=0, last_end=None)
    assert head.log.entries[0].last_end == fw.MIN_TIMESTAMP
    head = append(log, head, b"b", cleaned=0)
    assert stored(handle) == [1]


def test_a_head_that_is_not_signed_by_the_key_is_refused(handle, monkeypatch):
    log = StateLog(handle, ME)
    head = append(log, log.load(0), b"plain")
    monkeypatch.setenv(KEY_VARIABLE, "a key of some length")
    with pytest.raises(StateError, match="it is not signed, and FASTWIN_STATE_KEY is set"):
        log.load(0)
    log.save(head)
    assert log.load(0) == head
    signed = handle.values[handle.key]["head"][0]
    handle.values[handle.key]["head"] = (signed[:-1] + bytes([signed[-1] ^ 1]),)
    with pytest.raises(StateError, match="its signature does not fit"):
        log.load(0)
    handle.values[handle.key]["head"] = (signed,)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(StateError, match="it is signed, and FASTWIN_STATE_KEY is not set"):
        log.load(0)


def test_signed_state_is_of_one_query(handle, monkeypatch):
    """Whoever can write to two checkpoints of one key cannot lay the state of one under the other."""
    mine, other = (StateLog(handle, replace(ME, query=name)) for name in ("mine", "other"))
    append(other, other.load(0), b"without a key")
    assert mine.load(0).log.token is not None  # nothing was promised
    monkeypatch.setenv(KEY_VARIABLE, "a key of some length")
    nobody = StateLog(handle, ME)
    nobody.save(Head())
    assert mine.load(0) == Head()  # as earlier versions signed it
    other.save(Head())
    assert other.load(0) == Head()
    assert nobody.load(0) == Head()
    with pytest.raises(StateError, match="it was signed for the query other, and this is the query mine"):
        mine.load(0)
    other.seal()
    with pytest.raises(StateError, match="signed for the query other"):
        mine.sign()


def test_wider_types_make_a_head_an_earlier_one_until_it_is_written(handle):
    wider = replace(ME, spec=replace(SPEC, keys="int64"), migrate="wider types")
    narrow = replace(ME, spec=replace(SPEC, keys="int16"))
    StateLog(handle, narrow).sign()
    record = dict(handle.values[handle.key])
    head = append(StateLog(handle, narrow), Head(), b"narrow")
    assert not StateLog(handle, narrow).load(0).earlier
    log = StateLog(handle, wider)
    assert log.load(0).earlier
    log.save(head)
    assert not log.load(0).earlier
    handle.values[handle.key].update(record)
    with pytest.raises(StateError, match="the keys were of int16, are of int64"):
        StateLog(handle, replace(wider, migrate=None)).sign()
    log.sign()
    StateLog(handle, replace(wider, migrate=None)).sign()
