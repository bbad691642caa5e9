"""State of an earlier spec, made into state of the one that goes on with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.errors import StateError
from fastwin.state.chunks import Chunk, decode, encode, owner
from fastwin.state.identity import Migrate, StateSpec, allows_wider_types, types_in

__all__ = ["Heir", "migrated"]


class Heir(Protocol):
    """The spec that goes on with the state: what ``migrated`` asks of an operator's configuration."""

    @property
    def fingerprint(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def input_schema(self) -> str: ...
    @property
    def state(self) -> StateSpec: ...

    def new_accumulators(self, head_cells: int = 3) -> AccumulatorSet: ...


def migrated(chunk: bytes, heir: Heir, migrate: Migrate) -> bytes:
    """Returns a chunk as one of the spec that ``heir`` is for; if it is that already, as it is.

    migrate: what may have changed but for a longer allowed lateness, see ``state.identity``. Aggregates that were added
    are empty in all rows, those that were removed are gone from them.

    Raises StateError if the chunk is damaged, or of a spec that cannot go on so, naming what differs.
    """
    wrote = owner(chunk)
    if wrote == heir.fingerprint and not allows_wider_types(migrate):
        return chunk
    found = decode(chunk, wrote)
    old = StateSpec.from_json(found.meta.get("spec"))
    if wrote == heir.fingerprint:  # what was written before it told this of joins has the same
        old = replace(old, of_inputs=heir.state.of_inputs)
        if old == heir.state:
            return chunk
    if old == heir.state and (old.operator != "rows" or old.of_inputs):  # else of a join, of which one lateness grew
        raise StateError(f"state: it has another fingerprint, {wrote.hex()}, though it is of {heir.text}: corrupt")
    heir.state.check_follows(old, migrate)
    tables = {name: _with_keys(table, heir) if name in _KEYS else table for name, table in found.tables.items()}
    if "rows" in tables:
        tables["rows"] = _with_added(tables["rows"], old.renamed(migrate), heir)
    meta = {**found.meta, "spec": heir.state.to_json(), "input_schema": heir.input_schema}
    meta["lateness_before"] = old.lateness_ms
    link = None if found.link is None else found.link._replace(origin=found.id)
    return encode(Chunk(found.kind, meta, tables, found.objects, link), heir.fingerprint)


_KEYS = ("keys", "removed_keys", "state_keys", "mark_keys")


def _with_keys(keys: pa.Table, heir: Heir) -> pa.Table:
    """Returns saved keys in the types of the keys that they go on as, which may be wider."""
    for place, kind in enumerate(types_in(heir.state.keys), 1):
        if str(keys.schema.field(place).type) not in (kind, f"large_{kind}"):  # of much text, and read as well
            keys = keys.set_column(place, keys.column_names[place], keys.column(place).cast(pa.type_for_alias(kind)))
    return keys


def _with_added(rows: pa.Table, old: StateSpec, heir: Heir) -> pa.Table:
    """Returns saved rows with the cells of all aggregates, in their order: blank ones for those that are new, and none
    of those that are gone.

    Cells that several share are there as long as one of these is, whichever of them comes first.
    """
    cells = [name for name in rows.column_names if name[0] == "c" and name[1:].isdigit()]  # each aggregate has some
    if not cells:  # no built-in aggregates, before and now
        return rows
    first = int(cells[0][1:])
    kept = len(cells) - sum(one.cells for one in old.aggregates)  # those of the trigger
    accumulators = heir.new_accumulators()
    head = accumulators.head_cells
    blank, owned = accumulators.blank()[head:], {cell - head for cell in accumulators.owned}
    place, at = {}, kept
    for i, one in enumerate(old.aggregates):
        place[one.name] = i, cells[at : at + one.cells]
        at += one.cells
    columns = [rows[name] for name in cells[:kept]]
    old_bits = rows["bits"].to_numpy()
    bits = np.zeros(len(old_bits), dtype=np.int64)
    holders = _holders(old, heir.state)
    for i, one in enumerate(heir.state.aggregates):
        start = len(columns) - kept
        if one.name in holders:
            before, names = place[holders[one.name]]
            columns += [rows[name] for name in names]
            bits |= (old_bits >> before & 1) << i
            continue
        for cell in range(start, start + one.cells):
            empty = pa.array([b""] * len(bits), pa.large_binary())
            columns.append(empty if cell in owned else pa.array(np.full(len(bits), blank[cell])))
    named = dict(zip((f"c{first + i}" for i in range(len(columns))), columns, strict=True))
    out: dict[str, pa.Array] = {}
    for name in rows.column_names:
        if name == "bits":
            out[name] = pa.array(bits)
        elif name not in cells:
            out[name] = rows[name]
        if name == cells[-1]:
            out |= named
    return pa.table(out)


def _holders(old: StateSpec, new: StateSpec) -> dict[str, str]:
    """Returns for the aggregates of a spec that hold cells of an earlier one which aggregate held them there."""
    before = {one.name: one for one in old.aggregates}
    return {new.holder(one).name: old.holder(before[one.name]).name for one in new.aggregates if one.name in before}
