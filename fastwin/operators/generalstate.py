"""State of the general operator: to chunks and back. Rows as Arrow tables, what users keep in Python as one pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin import statecodec
from fastwin.core.windowtable import HEAD_CELLS
from fastwin.errors import StateError
from fastwin.operators import userobjects
from fastwin.operators.base import fill_rows, key_rows, load_keys, load_rows, read_chunks, save_rows
from fastwin.operators.generalparts import reads_rows
from fastwin.operators.keeper import Keeper
from fastwin.operators.lateness import cleaned_at
from fastwin.operators.refresh import Refresh
from fastwin.rowview import RowType, TimedRow, decode_column, row_of, rows_to_arrays

__all__ = ["check", "load", "save", "settle"]

FEWEST_CHANGES = 4096  # that a journal may hold, however little state there is


def settle(keeper: Keeper) -> None:
    """Releases the keys whose per-key state was cleared, and gives up a journal that outweighs the state."""
    for key in [key for key in keeper.dirty_keys if key in keeper.key_states and not keeper.key_states[key]]:
        keeper.forget_key_state(key)
    if keeper.journal is not None:
        table = keeper.table
        changes = len(keeper.journal) + len(table.removed) + len(keeper.dirty_keys)
        if changes > 2 * (len(table) + len(keeper.key_states)) + FEWEST_CHANGES:
            keeper.journal = None  # the next delta is the whole state
            table.unsaved()
    if keeper.journal is None:
        keeper.saved_keys()  # nobody asks for deltas yet, or ever again


def save(operator: Any, kind: Any, refresh: Refresh | None = None) -> bytes:
    """Returns all state, or what has changed since the last call, as one chunk; a refresh: see Operator.delta()."""
    keeper, table, config = operator.keeper, operator.table, operator.config
    codec, keys, rows = config.codec, table.keys, table.rows
    part = _part_of(operator, kind == "snapshot" or keeper.journal is None, refresh)
    slots = part.slots
    tables = save_rows(codec, keys, rows, slots, {"start": 1, "end": 3}, HEAD_CELLS)
    tables["rows"] = (
        tables["rows"].append_column("flags", [table.flags(slots)]).append_column("panes", [table.panes(slots)])
    )
    position = {slot: i for i, slot in enumerate(slots.tolist())}
    timers = keeper.unmarked(part.complete) if part.everything or part.groups else []
    if not part.everything:
        timers = sorted({*timers, *(item for item in keeper.journal if item[0] in position)})
    alive = [keeper.has_timer(*item) for item in timers]
    tables["timers"] = pa.table(
        {
            "row": pa.array([position[slot] for slot, _, _ in timers], pa.int32()),
            "time": pa.array([time for _, time, _ in timers], pa.int64()),
            "kind": pa.array([kind for _, _, kind in timers], pa.int8()),
            "alive": pa.array(alive, pa.bool_()),
        }
    )
    if not part.everything and table.removed:
        ids, starts, ends = zip(*table.removed, strict=True)
        tables["removed_keys"] = key_rows(codec, keys, np.array(ids, dtype=np.int32))
        tables["removed"] = pa.table({"start": pa.array(starts, pa.int64()), "end": pa.array(ends, pa.int64())})
    objects = _objects(operator, position, tables, part)
    table.saved(slots)
    keeper.saved_keys()
    keeper.journal = []
    if operator.contents.keeps_rows:
        _lists_are_saved(keeper, slots)
    kept = len(tables["state_keys"]) if "state_keys" in tables else 0
    more = {"processing_time": keeper.clock, "whole": part.everything, "rows": len(slots) + kept}
    if refresh is not None:
        more["refreshed"] = part.groups
    more["cleaned"] = cleaned_at(keeper.watermark, keeper.lateness, keeper.cleaned)
    return config.encode_state(kind, keeper.watermark, tables, objects, **more)


@dataclass(frozen=True)
class _Part:
    """Which part of the state a chunk holds.

    slots: of its rows. complete: uint8[rows], which of all rows are there with all that they have, and not only with
    what is new about them. state_keys: ids of the keys whose own state is. everything: nothing is left out. groups: how
    many key groups are repeated.
    """

    slots: NDArray[np.int32]
    complete: NDArray[np.uint8]
    state_keys: list[int]
    everything: bool
    groups: int


def _part_of(operator: Any, everything: bool, refresh: Refresh | None) -> _Part:
    keeper, rows = operator.keeper, operator.table.rows
    if everything:
        slots, groups = rows.slots(), 0 if refresh is None else refresh.left
        return _Part(slots, np.ones(rows.top, dtype=np.uint8), sorted(keeper.key_states), True, groups)
    slots = rows.dirty_slots()
    complete = np.zeros(rows.top, dtype=np.uint8)
    if refresh is None:
        return _Part(slots, complete, sorted(keeper.dirty_keys), False, 0)
    holding = np.fromiter(keeper.key_states, dtype=np.int32, count=len(keeper.key_states))
    found = refresh.take(operator.table.keys, rows, slots, holding)
    complete[found.slots[found.repeated]] = 1
    keys = sorted(keeper.dirty_keys.union(holding[found.keys[holding]].tolist()))
    return _Part(found.slots, complete, keys, False, found.groups)


def _objects(operator: Any, position: dict[int, int], tables: dict[str, pa.Table], part: _Part) -> bytes | None:
    """Adds elements to the tables; returns the pickled rest of what Python code keeps, None if there is nothing."""
    keeper = operator.keeper
    contents: dict[int, Any] = {}
    states: dict[int, Any] = {}
    held: list[tuple[int, Any]] = []
    kept: list[tuple[int, int]] = []
    for slot, at in position.items():
        if slot >= len(keeper.contents):
            continue
        if keeper.states[slot]:
            states[at] = keeper.states[slot]
        if keeper.contents[slot] is None:
            continue
        if operator.contents.keeps_rows:
            elements, known = keeper.contents[slot], keeper.saved_lists.get(slot)
            start = known[1] if known is not None and known[0] is elements and not part.complete[slot] else 0
            if start:
                kept.append((at, start))
            held += [(at, element) for element in elements[start:]]
        else:
            contents[at] = keeper.contents[slot]
    if held:
        timed = isinstance(held[0][1], TimedRow)
        schema = operator.program.rows
        rows = [element.value if timed else element for _, element in held]
        arrays = rows_to_arrays(rows, schema)
        times = pa.array([element.timestamp if timed else None for _, element in held], pa.int64())
        names = [f"e{i}" for i in range(len(schema))]
        tables["elements"] = pa.table(
            [pa.array([at for at, _ in held], pa.int32()), times, *arrays], names=["row", "time", *names]
        )
    if kept:
        rows_kept, counts = zip(*kept, strict=True)
        tables["kept"] = pa.table({"row": pa.array(rows_kept, pa.int32()), "n": pa.array(counts, pa.int64())})
    if part.state_keys:
        config = operator.config
        tables["state_keys"] = key_rows(config.codec, operator.table.keys, np.array(part.state_keys, dtype=np.int32))
    user = (contents, states, [keeper.key_states.get(key) for key in part.state_keys])
    if not any(user):
        return None
    try:
        return userobjects.dumps(user, operator.program.classes)
    except Exception as problem:
        raise _unpicklable(operator, position, user, problem) from problem


def _unpicklable(operator: Any, position: dict[int, int], user: Any, problem: Exception) -> StateError:
    """Returns the error for user state that cannot be pickled; names the key and window that hold it."""
    windows = {at: slot for slot, at in position.items()}
    where = "some key"
    for held in user[:2]:
        for at, value in held.items():
            try:
                userobjects.dumps(value, operator.program.classes)
            except Exception:
                where = operator.keeper.where(windows[at])
    return StateError(
        f"snapshot: what user code keeps for {where} cannot be pickled: {type(problem).__name__}: {problem}"
    )


def _lists_are_saved(keeper: Keeper, slots: NDArray[np.int32]) -> None:
    for slot in slots.tolist():
        elements = keeper.contents[slot] if slot < len(keeper.contents) else None
        if elements is not None:
            keeper.saved_lists[slot] = (elements, len(elements))


def load(operator: Any, chunks: list[bytes], deltas: bool = False) -> None:
    """Takes one snapshot and the deltas after it; deltas: the first one may be a delta, too."""
    keeper, table = operator.keeper, operator.table
    lacking: dict[int, int] = {}
    for chunk in read_chunks(chunks, operator.config, deltas):
        try:
            _apply(operator, chunk, lacking)
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            if isinstance(problem, StateError):
                raise
            raise StateError(f"state: the rows make no sense: {type(problem).__name__}: {problem}") from problem
        keeper.watermark = max(keeper.watermark, chunk.meta["watermark"])
        keeper.cleaned = max(keeper.cleaned, chunk.meta["cleaned"])
        keeper.clock = chunk.meta["processing_time"]
    _drop(operator, operator.passed_slots(), lacking)
    if lacking:
        slot, n = next(iter(lacking.items()))
        raise StateError(f"state: a delta goes on after {n} elements of a window, {keeper.where(slot)}, that has fewer")
    table.saved(table.rows.slots())
    keeper.saved_keys()
    keeper.journal = []
    if operator.contents.keeps_rows:
        _lists_are_saved(keeper, table.rows.slots())


def _apply(operator: Any, chunk: statecodec.Chunk, lacking: dict[int, int]) -> None:
    """Takes one chunk. lacking: rows whose first elements, so many, are in deltas that are gone.

    A delta that repeats them with all that they have comes later, or the state is not whole.
    """
    keeper, table, codec = operator.keeper, operator.table, operator.config.codec
    tables = chunk.tables
    if chunk.kind == "delta" and chunk.meta["whole"]:
        _drop(operator, table.rows.slots().tolist(), lacking)
        for key in list(keeper.key_states):
            keeper.forget_key_state(key)
    if "removed" in tables:
        ids = load_keys(codec, table.keys, tables["removed_keys"])
        removed = tables["removed"]
        gone = table.lookup(
            ids, removed["start"].combine_chunks().to_numpy(), removed["end"].combine_chunks().to_numpy()
        )
        _drop(operator, np.unique(gone[gone >= 0]).tolist(), lacking)
    ids = load_keys(codec, table.keys, tables["keys"])
    cells = [f"c{cell}" for cell in range(HEAD_CELLS, table.rows.stride // 8)]
    columns = load_rows(tables, ids, ["start", "end", *cells, "flags", "panes"])
    slots = table.insert(columns["key"], columns["start"], columns["end"])
    keeper.drop_marked(slots)
    table.restore_heads(slots, columns["flags"], columns["panes"])
    fill_rows(operator.contents.accumulators, table.rows, slots, columns, HEAD_CELLS)
    at_end = keeper.event_time and keeper.lateness > 0 and chunk.meta.get("lateness_before") == 0
    keeper.restore_marked(slots, columns["flags"], at_end)
    timers = tables["timers"]
    for row, time, kind, alive in zip(*(column.to_pylist() for column in timers.columns), strict=True):
        keeper.restore_timer(int(slots[row]), time, kind, alive)
    if len(slots):
        keeper.fit_all()
    kept = tables["kept"].to_pydict() if "kept" in tables else {"row": [], "n": []}
    beginnings = {int(slots[at]): n for at, n in zip(kept["row"], kept["n"], strict=True)}
    for slot in slots.tolist():
        if operator.contents.keeps_rows:
            _keep_beginning(keeper, slot, beginnings.get(slot, 0), lacking)
        else:
            keeper.contents[slot] = None
        keeper.states[slot] = None
    if "elements" in tables:
        _load_elements(operator, tables["elements"], slots)
    known = load_keys(codec, table.keys, tables["state_keys"]) if "state_keys" in tables else np.zeros(0, np.int32)
    nothing: tuple[dict[int, Any], dict[int, Any], list[Any]] = ({}, {}, [None] * len(known))
    if chunk.objects is not None and not _runs_python(operator):
        raise StateError("state: it holds Python objects, and nothing of the spec is written in Python")
    contents, states, by_key = (
        nothing if chunk.objects is None else userobjects.loads(chunk.objects, operator.program.classes)
    )
    for at, value in contents.items():
        keeper.contents[int(slots[at])] = value
    for at, value in states.items():
        keeper.states[int(slots[at])] = value
    for key, values in zip(known.tolist(), by_key, strict=True):
        keeper.set_key_state(key, values)


def _runs_python(operator: Any) -> bool:
    program = operator.program
    asks = reads_rows(program.assigner, program.trigger)
    return operator.contents.in_python or program.process is not None or asks


def _keep_beginning(keeper: Keeper, slot: int, n: int, lacking: dict[int, int]) -> None:
    """Leaves the first n elements of a row, or notes that it lacks them."""
    known = keeper.contents[slot] or []
    if n < 0:
        raise StateError(f"state: a delta goes on after {n} elements of a window")
    if n > len(known) or (n and slot in lacking):  # of one that lacks its first elements, only later ones are known
        lacking[slot] = n
    else:
        lacking.pop(slot, None)
    keeper.contents[slot] = known[:n] or None


def _load_elements(operator: Any, saved: pa.Table, slots: np.ndarray) -> None:
    contents, schema = operator.keeper.contents, operator.program.rows
    kind = RowType(schema.names)
    columns = [decode_column(column) for column in saved.columns[2:]]
    timed = operator.program.evictor is not None
    values = zip(*columns, strict=True) if columns else [()] * saved.num_rows
    for at, time, row in zip(saved["row"].to_pylist(), saved["time"].to_pylist(), values, strict=True):
        slot = int(slots[at])
        element: Any = row_of(kind, row)
        if contents[slot] is None:
            contents[slot] = []
        contents[slot].append(TimedRow(element, time) if timed else element)


def _drop(operator: Any, slots: list[int], lacking: dict[int, int]) -> None:
    """Frees rows, and all their timers."""
    if not slots:
        return
    keeper = operator.keeper
    keeper.drop_marked(np.array(slots, dtype=np.int32))
    if any(keeper.marks(slot)[1] for slot in slots):  # the others have to be looked for among all
        wanted = np.zeros(operator.table.rows.top, dtype=np.uint8)
        wanted[slots] = 1
        for slot, time, kind in keeper.unmarked(wanted):
            keeper.restore_timer(slot, time, kind, False)
    for slot in slots:
        lacking.pop(slot, None)
        operator.drop_row(slot)


def check(operator: Any) -> None:
    """Raises AssertionError where an invariant does not hold. O(state)."""
    keeper, table = operator.keeper, operator.table
    table._check()
    counts: dict[int, int] = {}
    for timers in (keeper.event_timers, keeper.processing_timers):
        timers._check()
        for slot in timers.timers()[2].tolist():
            counts[slot] = counts.get(slot, 0) + 1
    slots = table.rows.slots().tolist()
    for slot in slots:
        told, count = keeper.marks(slot)
        assert count == counts.pop(slot, 0), f"row {slot}: counts {count} timers"
        for time, kind in told:
            assert keeper.has_timer(slot, time, kind), f"row {slot}: marked for a timer at {time} that is not there"
    assert not counts, f"timers of rows that are gone: {counts}"
    live = set(slots)
    for slot, value in enumerate(keeper.contents):
        assert slot in live or (value is None and keeper.states[slot] is None), f"row {slot} is free and has objects"
    held = {int(key) for key in table.rows.keys(np.array(slots, dtype=np.int32))} | keeper.key_states.keys()
    held |= keeper.dirty_keys | {key for key, _, _ in table.removed}
    assert held == set(table.keys.ids().tolist()), "a key is held by nothing"
    assert all(keeper.key_states.values()), "a key has empty state"
