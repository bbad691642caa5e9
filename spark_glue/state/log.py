"""What a query leaves in Spark's state store between two micro-batches: a log of deltas, and a head with its book.

Spark's groups here are shares: all key groups that sit on one partition. A share has one head, read and written in
every micro-batch, and the chunks of its deltas, written once. The last deltas lie in the head itself so long as they
are small: a micro-batch that needs no chunk spares Spark the map of them, which it makes ready anew in each task.
"""

import copy
import hashlib
import json
import logging
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from pyspark.sql.streaming import StatefulProcessorHandle

from fastwin.errors import StateError
from fastwin.state.identity import Migrate, StateSpec, allows_wider_types
from fastwin.state.signing import SIGNATURE_BYTES, check_signature, is_signing, signature
from spark_glue.state.book import DeltaLog, Entry
from spark_glue.state.variables import CHUNK_KEY, CHUNK_VALUE, CHUNKS, HEAD, HEAD_TYPE

__all__ = [
    "CHUNK_BYTES",
    "HEAD_FORMAT",
    "INLINE_BYTES",
    "Appended",
    "Head",
    "Identity",
    "StateLog",
    "StoredHead",
    "head_in",
    "joined",
]

_LOG = logging.getLogger(__name__)

CHUNK_BYTES = 4 << 20
"""No value in the state store is larger than this."""

INLINE_BYTES = 16 << 10
"""The last deltas lie in the head until they take more than this together; then all of them get chunks."""

HEAD_FORMAT = 6
"""Of heads, which is not that of the deltas."""

_MAGIC = b"FWSL"
_BEFORE_INLINE = 5  # all deltas have chunks
_BEFORE_CHAINS = 4  # its chunks do not tell when a round of repeating began, so the round begins anew
# Magic, format; then the bytes of the fields, since format 6. Fields as JSON follow, deflated; then the deltas that lie
# in the head; then the signature, if it is signed.
_PREFIX, _LENGTH = struct.Struct("<4sH"), struct.Struct("<I")
_SIGNED = 1 << 15  # in the format


@dataclass(frozen=True)
class Identity:
    """What must be the same for the life of a checkpoint, or changed only in ways that are safe.

    fingerprint: of the spec, in hex. spec: what the state depends on. key_groups: how many there are. shares: into how
    many Spark's partitions divide them. migrate: what may have changed, see ``StateSpec.check_follows``. query: its id,
    which signed state tells of; None: it is not looked at. time_zone: in which event times without a zone are read;
    None: they have one, or it is not looked at.
    """

    fingerprint: str
    spec: StateSpec
    key_groups: int
    shares: int
    migrate: Migrate = None
    query: str | None = None
    time_zone: str | None = None

    @cached_property
    def types(self) -> str:
        """What tells the types of the state, which the fingerprint does not."""
        return hashlib.blake2b(json.dumps(self.spec.to_json()).encode(), digest_size=8).hexdigest()

    def check(self, fields: dict[str, Any]) -> None:
        """Raises StateError if state with these fields was written by another query, naming what differs."""
        theirs = fields.get("query", self.query)  # what was not signed, or by earlier versions, does not tell
        if self.query is not None and is_signing() and theirs != self.query:
            raise StateError(f"state: it was signed for the query {theirs}, and this is the query {self.query}")
        zone = fields.get("time_zone", self.time_zone)  # earlier versions do not tell
        if self.time_zone is not None and zone != self.time_zone:
            raise StateError(
                f"event_time: its column has no time zone, the checkpoint was made where times are read in {zone!r}, "
                f"and spark.sql.session.timeZone is {self.time_zone!r} now; set it to {zone!r}"
            )
        if fields["key_groups"] != self.key_groups:
            raise StateError(
                f"key_groups: the checkpoint was made with key_groups={fields['key_groups']}, this query has "
                f"key_groups={self.key_groups}; the number is fixed for the life of a checkpoint"
            )
        if "spec" in fields and fields["spec"] != self.spec.to_json():
            try:
                old = StateSpec.from_json(fields["spec"])
                if fields["fingerprint"] == self.fingerprint:  # earlier versions did not tell each input's lateness
                    old = replace(old, of_inputs=self.spec.of_inputs)
                self.spec.check_follows(old, self.migrate)
            except StateError as problem:
                raise StateError(f"{problem}; such a query needs a new checkpoint") from None
        if fields["shares"] != self.shares:
            raise StateError(
                f"spark.sql.shuffle.partitions: the checkpoint's state lies in {fields['shares']} parts, this query "
                f"would look for {self.shares}; Spark fixes their number for the life of a checkpoint, and a "
                f"repartitioned one cannot be used; with Spark Connect and foreachBatch, set it to {fields['shares']}"
            )


@dataclass(frozen=True)
class Head:
    """The book of a share: its delta log, its registered timer, ms, and whether an earlier spec has written it.

    share: the share's number. inline: the deltas that lie in the head, the last ones of the log, by the number of their
    first chunk.
    """

    log: DeltaLog = field(default_factory=DeltaLog)
    timer: int | None = None
    earlier: bool = False
    share: int = 0
    inline: Mapping[int, bytes] = field(default_factory=dict)

    def has_chunks(self, entry: Entry) -> bool:
        """Whether a delta of the log lies in chunks, and not in the head."""
        return entry.first not in self.inline


class Appended(NamedTuple):
    """What ``StateLog.append`` has done: the head to be saved, the deltas that left the log, and who got chunks."""

    head: Head
    gone: list[Entry]
    moved: list[tuple[Entry, bytes]]


def token_of(delta: bytes) -> str:
    """Returns what tells the state that a delta leads to: it names the chunk before, and so all that came before it."""
    return hashlib.blake2b(delta, digest_size=16).hexdigest()


class StateLog:
    """The state of the current share. Made once per task, in the processor's ``init``.

    in_chunks: whether deltas may lie in chunks; if not, all of them lie in the head.
    """

    def __init__(self, handle: StatefulProcessorHandle, identity: Identity, in_chunks: bool = True) -> None:
        self._identity = identity
        self._in_chunks = in_chunks
        self._head = handle.getValueState(HEAD, HEAD_TYPE)
        self._chunks: Any = handle.getMapState(CHUNKS, CHUNK_KEY, CHUNK_VALUE) if in_chunks else None

    def of(self, identity: Identity) -> "StateLog":
        """Returns the log of the same state for another identity."""
        other = copy.copy(self)
        other._identity = identity
        return other

    def load(self, share: int) -> Head:
        """Returns the head of the current share, whose number is given.

        Raises StateError if it was written with another number of key groups, is another share's, or damaged. Whether
        the spec may be an earlier one, the deltas themselves tell (``Plan.migrated``).
        """
        value = self._head.get()
        if value is None:
            return Head(share=share)
        version, fields, rest = _unpack(bytes(value[0]))
        self._identity.check(fields)
        one = self._identity
        # Heads of earlier versions tell no types; they may be others only where that is allowed.
        unknown = "" if allows_wider_types(one.migrate) else one.types
        earlier = fields["fingerprint"] != one.fingerprint or fields.get("types", unknown) != one.types
        if fields.get("share", share) != share:  # heads of earlier versions do not tell
            raise StateError(f"state: share {share} has the head of share {fields['share']}")
        log = DeltaLog.from_json(fields["log"])
        if version == _BEFORE_CHAINS:
            log = replace(log, turn=None, since=0)
        return Head(log, fields["timer"], earlier, share, _inline(log, fields, rest))

    def read(self, head: Head, entry: Entry) -> bytes:
        """Returns a delta of the current share, whose head is given. Raises StateError if it is another one."""
        if not head.has_chunks(entry):
            return joined(head.inline, entry)
        values = {number: self._chunks.getValue((number,)) for number in entry.numbers()}
        return joined({number: bytes(value[0]) for number, value in values.items() if value is not None}, entry)

    def is_better_whole(self, head: Head) -> bool:
        """Whether all of the state is to be written next, and not what has changed: where all deltas are written with
        the head, and most of what they take comes behind the first one."""
        entries = head.log.entries
        return not self._in_chunks and bool(entries) and head.log.size > 2 * entries[0].size + INLINE_BYTES

    def append(
        self, head: Head, delta: bytes, meta: dict[str, Any], groups: int, cleaned_until: int | None
    ) -> Appended:
        """Stores a delta of the current share and removes those that it makes needless.

        head: as loaded. meta: the delta's. groups, cleaned_until: see DeltaLog.append. What stays in the head is stored
        by save() alone.
        """
        chunks = max(1, -(-len(delta) // CHUNK_BYTES)) if self._in_chunks else 1
        entry = Entry.of(head.log.next_chunk, chunks, len(delta), token_of(delta), meta)
        log, gone = head.log.append(entry, meta.get("refreshed", 0), groups, cleaned_until)
        self._remove([old for old in gone if head.has_chunks(old)])
        known = {**head.inline, entry.first: delta}
        inline = [(one, known[one.first]) for one in log.entries if one.first in known]
        moved = inline if self._in_chunks and sum(one.size for one, _ in inline) > INLINE_BYTES else []
        for one, data in moved:
            for number in one.numbers():
                at = (number - one.first) * CHUNK_BYTES
                self._chunks.updateValue((number,), (data[at : at + CHUNK_BYTES],))
        left = {} if moved else {one.first: data for one, data in inline}
        return Appended(replace(head, log=log, inline=left), gone, moved)

    def save(self, head: Head) -> int:
        """Stores the head of the current share; returns its bytes."""
        told = {"share": head.share, "timer": head.timer, "log": head.log.to_json(), "inline": len(head.inline)}
        blob = _pack(self._fields() | told, head.inline.values())
        self._head.update((blob,))
        return len(blob)

    def clear(self, head: Head) -> None:
        """Removes every byte about the current share, whose head was loaded before."""
        self._head.clear()
        self._remove([entry for entry in head.log.entries if head.has_chunks(entry)])

    def sign(self) -> None:
        """Checks the query's own record against this query, and writes it if there is none yet or an earlier spec's.

        The current share is the one that all of a query's tasks know (keygroups.RECORD_ID). Because every batch with
        input comes here, a query that does not belong to its checkpoint fails before it changes any state.
        """
        value, one = self._head.get(), self._identity
        if value is None:
            _LOG.info("state begins: %d key groups in %d shares", one.key_groups, one.shares)
        else:
            _, fields, _ = _unpack(bytes(value[0]))
            one.check(fields)
            if fields["fingerprint"] != one.fingerprint or fields.get("spec") != one.spec.to_json():
                _LOG.info("state goes on under a changed specification; each share is rewritten when it is visited")
            elif fields.keys() >= self._fields().keys():  # else an earlier version has written it, or it was not signed
                return
        self.seal()

    def seal(self) -> None:
        """Writes the query's own record, whatever there was. The current share is as in ``sign``."""
        self._head.update((_pack(self._fields() | {"spec": self._identity.spec.to_json()}),))

    def _fields(self) -> dict[str, Any]:
        one = self._identity
        told: dict[str, Any] = {
            "key_groups": one.key_groups,
            "shares": one.shares,
            "fingerprint": one.fingerprint,
            "types": one.types,
        }
        if one.query is not None and is_signing():
            told["query"] = one.query
        if one.time_zone is not None:
            told["time_zone"] = one.time_zone
        return told

    def _remove(self, entries: list[Entry]) -> None:
        for entry in entries:
            for number in entry.numbers():
                self._chunks.removeKey((number,))


def joined(parts: Mapping[int, bytes], entry: Entry) -> bytes:
    """Returns a delta whose chunks are given by number. Raises StateError if it is not there as it was written."""
    lost = [number for number in entry.numbers() if number not in parts]
    if lost:
        raise StateError(f"state: chunk {lost[0]} of the delta {entry.numbers()} is missing")
    data = b"".join(parts[number] for number in entry.numbers())
    if len(data) != entry.size:
        raise StateError(f"state: {entry.size} bytes were written, {len(data)} are there")
    if is_signing() and token_of(data) != entry.token:  # in format 4, which was not signed, tokens were others
        raise StateError(f"state: the delta {entry.numbers()} is another one than the head tells of")
    return data


@dataclass(frozen=True)
class StoredHead:
    """What a stored head tells: the log of its share, how the query's keys are divided, and the deltas that lie in it.

    inline: as in ``Head``. time_zone: as in ``Identity``; None: earlier versions do not tell, too.
    """

    log: DeltaLog
    key_groups: int
    shares: int
    inline: Mapping[int, bytes] = field(default_factory=dict)
    time_zone: str | None = None

    @property
    def has_chunks(self) -> bool:
        """Whether any delta of the log lies in chunks, and not in the head."""
        return any(entry.first not in self.inline for entry in self.log.entries)

    def deltas(self, chunks: Mapping[int, bytes]) -> list[bytes]:
        """Returns the deltas of the log. chunks: those of the share. Raises StateError where one is missing."""
        known = {**chunks, **self.inline}
        return [joined(known, entry) for entry in self.log.entries]


def head_in(head: bytes) -> StoredHead:
    """Returns what a stored head tells. Raises StateError if it is damaged."""
    _, fields, rest = _unpack(head)
    log = DeltaLog.from_json(fields["log"])
    inline = _inline(log, fields, rest)
    return StoredHead(log, fields["key_groups"], fields["shares"], inline, fields.get("time_zone"))


def _pack(fields: dict[str, Any], inline: Iterable[bytes] = ()) -> bytes:
    text = zlib.compress(json.dumps(fields, separators=(",", ":")).encode(), 1)
    prefix = _PREFIX.pack(_MAGIC, HEAD_FORMAT | (_SIGNED if is_signing() else 0)) + _LENGTH.pack(len(text))
    head = b"".join((prefix, text, *inline))
    return head + signature(head)


def _unpack(head: bytes) -> tuple[int, dict[str, Any], bytes]:
    """Returns the format of a head, its fields, and the deltas that lie in it."""
    if len(head) < _PREFIX.size:
        raise StateError(f"state: a head of {len(head)} bytes is no state of fastwin")
    magic, version = _PREFIX.unpack_from(head)
    if magic != _MAGIC:
        raise StateError(f"state: starts with {magic!r}, state of fastwin with {_MAGIC!r}")
    end = len(head) - (SIGNATURE_BYTES if version & _SIGNED else 0)
    check_signature(head[:end], head[end:])
    version &= ~_SIGNED
    if version not in (_BEFORE_CHAINS, _BEFORE_INLINE, HEAD_FORMAT):
        raise StateError(
            f"state: has format {version}, this version of fastwin reads formats {_BEFORE_CHAINS} to {HEAD_FORMAT}"
        )
    try:
        begin, stop = _PREFIX.size, end
        if version == HEAD_FORMAT:
            begin += _LENGTH.size
            stop = begin + _LENGTH.unpack_from(head, _PREFIX.size)[0]
        return version, json.loads(zlib.decompress(head[begin:stop])), head[stop:end]
    except (ValueError, struct.error, zlib.error) as error:
        raise StateError(f"state: a head cannot be read: {error}") from error


def _inline(log: DeltaLog, fields: dict[str, Any], data: bytes) -> dict[int, bytes]:
    """Returns the deltas that lie in a head. data: what comes behind its fields."""
    count = fields.get("inline", 0)
    entries = log.entries[len(log.entries) - count :]
    if len(entries) != count or sum(entry.size for entry in entries) != len(data):
        raise StateError(f"state: a head cannot be read: it tells of {count} deltas, and {len(data)} bytes of them")
    found, at = {}, 0
    for entry in entries:
        found[entry.first] = data[at : at + entry.size]
        at += entry.size
    return found
