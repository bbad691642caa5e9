"""The chunks that a restore is given, decoded: of this spec, whole, and in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from fastwin.errors import StateError
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk, decode
from fastwin.state.identity import StateSpec
from fastwin.state.narrow import names_in
from fastwin.times import MIN_TIMESTAMP

__all__ = ["Owner", "newest_of", "read_chunks", "read_partials"]


class Owner(Protocol):
    """The spec whose chunks are read: what is asked of an operator's configuration."""

    @property
    def fingerprint(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def state(self) -> StateSpec: ...


def read_chunks(chunks: list[bytes], owner: Owner, chain: Chain, deltas: bool = False) -> list[Chunk]:
    """Decodes one snapshot and the deltas after it, and goes on behind them. Raises StateError for anything else.

    deltas: the first one may be a delta, too: that comes next in the chain or, for a stream without state, where what
    came before it is not needed any more.
    """
    decoded = _decoded(chunks, owner, partial=False)
    kinds = [chunk.kind for chunk in decoded]
    if kinds[1:] != ["delta"] * (len(kinds) - 1) or (kinds[:1] != ["snapshot"] and not deltas):
        raise StateError(f"state: takes one snapshot and then deltas, got {kinds}")
    chain.follow(decoded)
    return decoded


def newest_of(chunks: list[Chunk], known: int) -> int:
    """Returns the newest time of an element that chunks tell of, or the one that is known if it is newer."""
    return max([known, *(chunk.meta.get("newest", MIN_TIMESTAMP) for chunk in chunks)])


def read_partials(chunks: list[bytes], owner: Owner) -> list[Chunk]:
    """Decodes partial results, in any order. Raises StateError for anything else."""
    return _decoded(chunks, owner, partial=True)


def _decoded(chunks: list[bytes], owner: Owner, partial: bool) -> list[Chunk]:
    decoded = [decode(chunk, owner.fingerprint, owner.text, narrow=not partial) for chunk in chunks]
    for chunk in decoded:
        if "rows" not in chunk.tables or ("elements" in names_in(chunk.tables, "rows")) != partial:
            raise StateError("state: no partial results" if partial else "state: partial results, or none at all")
        if chunk.meta.get("spec") != owner.state.to_json():
            # Of this fingerprint, so of the same lateness for each input, which earlier versions did not tell.
            told = replace(StateSpec.from_json(chunk.meta.get("spec")), of_inputs=owner.state.of_inputs)
            owner.state.check_follows(told, None)
    return decoded
