"""State of an earlier spec, made into state of the one that goes on with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fastwin import statecodec
from fastwin.errors import StateError
from fastwin.operators.base import Config
from fastwin.statespec import StateSpec

__all__ = ["migrated"]


def migrated(chunk: bytes, config: Config, migrate: str | None) -> bytes:
    """Returns a chunk as one of the spec that ``config`` is for; if it is that already, as it is.

    migrate: what may have changed but for a longer allowed lateness, see ``statespec``. Aggregates that were added are
    empty in all rows.

    Raises StateError if the chunk is damaged, or of a spec that cannot go on so, naming what differs.
    """
    owner = statecodec.owner(chunk)
    if owner == config.fingerprint:
        return chunk
    found = statecodec.decode(chunk, owner)
    old = StateSpec.from_json(found.meta.get("spec"))
    if old == config.state:
        raise StateError(f"state: it has another fingerprint, {owner.hex()}, though it is of {config.text}: corrupt")
    config.state.check_follows(old, migrate)
    tables = found.tables
    if "rows" in tables:
        tables = {**tables, "rows": _with_added(tables["rows"], old, config)}
    meta = {**found.meta, "spec": config.state.to_json(), "input_schema": config.input_schema}
    meta["lateness_before"] = old.lateness_ms
    return statecodec.encode(statecodec.Chunk(found.kind, meta, tables, found.objects), config.fingerprint)


def _with_added(rows: pa.Table, old: StateSpec, config: Config) -> pa.Table:
    """Returns saved rows with the cells of all aggregates, in their order: blank ones for those that are new."""
    cells = [name for name in rows.column_names if name[0] == "c" and name[1:].isdigit()]  # each aggregate has some
    first = int(cells[0][1:])
    kept = len(cells) - sum(one.cells for one in old.aggregates)  # those of the trigger
    accumulators = config.new_accumulators()
    head = accumulators.head_cells
    blank, owned = accumulators.blank()[head:], {cell - head for cell in accumulators.owned}
    place, at = {}, kept
    for i, one in enumerate(old.aggregates):
        place[one.name] = i, cells[at : at + one.cells]
        at += one.cells
    columns = [rows[name] for name in cells[:kept]]
    old_bits = rows["bits"].to_numpy()
    bits = np.zeros(len(old_bits), dtype=np.int64)
    for i, one in enumerate(config.state.aggregates):
        start = len(columns) - kept
        if one.name in place:
            before, names = place[one.name]
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
