"""State signed by a key of the environment; and pickles, which are not read where no user code can have left any."""

import contextlib
import os
import pickle
import struct
from pathlib import Path

import pytest

import fastwin as fw
from fastwin.errors import StateError
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state import chunks
from fastwin.state.chunks import decode, encode
from fastwin.state.signing import KEY_VARIABLE, SIGNATURE_BYTES
from tests.support import newer_specs, stored_specs
from tests.support.saved import with_checksum
from tests.support.stored_streams import BATCHES, SCHEMA, feed, main_rows

KEY, OTHER = "a key of some length", "another key of some length"
SPECS = stored_specs.SPECS | newer_specs.SPECS
PYTHON = {"combined", "ledger", "reduced", "own_trigger", "own_windows", "dynamic_gap", "count_window", "delta"}
BUILT_IN = [name for name in SPECS if name not in PYTHON]
SPEC = stored_specs.SPECS["own_trigger"]


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def with_pickle(blob: bytes, path: Path) -> bytes:
    """Returns a chunk with a pickle at its end that makes a file."""
    header = bytearray(blob)
    header[7] |= chunks._PICKLED
    return with_checksum(bytes(header) + pickle.dumps(({0: Evil(path)}, {}, [])))


def saved(spec: fw.WindowSpec, batches: int = 2) -> list[bytes]:
    """A snapshot and deltas."""
    stream, found = spec.open(schema=SCHEMA), []
    for batch in range(batches):
        feed(stream, batch)
        found.append(stream.delta() if found else stream.snapshot())
    return found


@pytest.mark.parametrize("name", BUILT_IN)
def test_without_user_code_nothing_is_unpickled(name, tmp_path):
    """Whoever can write to a checkpoint can run code where state of user code is read; of no other state."""
    path = tmp_path / "made"
    blobs = saved(SPECS[name])
    for at in range(2):
        changed = [with_pickle(blob, path) if i == at else blob for i, blob in enumerate(blobs)]
        stream = open_replica(plan(SPECS[name], SCHEMA))
        with contextlib.suppress(StateError):
            stream.restore(changed)
        assert not path.exists()


def test_with_user_code_a_pickle_is_read(tmp_path):
    """What a key is good for."""
    path = tmp_path / "made"
    (blob,) = saved(SPEC, 1)
    found = chunks._read_header(blob)
    end = len(blob) - len(decode(blob, found.owner).objects)
    SPEC.open(schema=SCHEMA).restore([with_pickle(blob[:end], path)])
    assert path.exists()


def test_a_signed_stream_goes_on(monkeypatch):
    expected = main_rows(feed(restored(saved(SPEC)), BATCHES - 1))
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    signed = saved(SPEC)
    assert main_rows(feed(restored(signed), BATCHES - 1)).equals(expected)
    monkeypatch.setenv(KEY_VARIABLE, f"{OTHER}, {KEY}")  # the first one signs from now on
    stream = restored(signed)
    more = [*signed, stream.delta()]
    assert main_rows(feed(restored(more), BATCHES - 1)).equals(expected)
    monkeypatch.setenv(KEY_VARIABLE, OTHER)
    with pytest.raises(StateError, match="no key in FASTWIN_STATE_KEY has signed it"):
        restored(more)


def restored(blobs: list[bytes]) -> fw.Stream:
    stream = SPEC.open(schema=SCHEMA)
    stream.restore(blobs)
    return stream


def test_state_that_is_not_signed_by_the_key_is_refused_before_it_is_read(monkeypatch, tmp_path):
    path = tmp_path / "made"
    (plain,) = saved(SPEC, 1)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    (signed,) = saved(SPEC, 1)
    end = len(signed) - SIGNATURE_BYTES
    evil = with_pickle(signed[:end], path)
    for blob, said in (
        (plain, "it is not signed, and FASTWIN_STATE_KEY is set"),
        (with_pickle(plain, path), "it is not signed"),
        (evil + signed[end:], "its signature does not fit"),
        (signed[:end] + bytes(SIGNATURE_BYTES), "its signature does not fit"),
        (signed[:-1], "cut off"),
    ):
        with pytest.raises(StateError, match=said):
            restored([blob])
        assert not path.exists()
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(StateError, match="it is signed, and FASTWIN_STATE_KEY is not set"):
        restored([signed])


def test_a_short_key_is_refused(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, f"{KEY},short")
    with pytest.raises(StateError, match="FASTWIN_STATE_KEY: a key has at least 16 bytes, got one of 5"):
        saved(SPEC, 1)


def test_signed_bytes_are_those_of_a_chunk_and_its_signature(monkeypatch):
    chunk = chunks.Chunk("snapshot", {"rows": 1}, link=chunks.Link(1))
    plain = encode(chunk, bytes(16))
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    signed = encode(chunk, bytes(16))
    assert len(signed) == len(plain) + SIGNATURE_BYTES
    assert struct.unpack_from("<B", signed, 7) == (chunks._SIGNED,)
    assert decode(signed, bytes(16)) == chunk


@pytest.mark.parametrize("value", ["", "  ", f"{KEY},"])
def test_an_empty_key_is_no_key_left_out(monkeypatch, value):
    """A secret that was not found often comes as an empty text: state must not go without a signature then."""
    monkeypatch.setenv(KEY_VARIABLE, value)
    with pytest.raises(StateError, match=f"{KEY_VARIABLE}: a key has at least 16 bytes, got one of 0"):
        saved(SPEC)


def test_a_key_of_any_bytes(monkeypatch):
    monkeypatch.setitem(os.environb, KEY_VARIABLE.encode(), b"\xff\xfe" * 8)
    stream = SPEC.open(schema=SCHEMA)
    stream.restore(saved(SPEC))
    assert stream.metrics.state_rows > 0
