"""State of the general operator: to chunks and back. Rows as Arrow tables, what users keep in Python as one pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import aligned, in_one
from fastwin.core.memory.ordering import unique
from fastwin.core.windows.windowtable import END_CELL, HEAD_CELLS
from fastwin.errors import StateError
from fastwin.operators.general.planning import reads_rows
from fastwin.operators.general.repeating import GeneralRound, is_unmarked, unmarked
from fastwin.operators.general.savedobjects import (
    UserObjects,
    at_slots,
    first_of,
    lists_are_saved,
    load_elements,
    save_objects,
)
from fastwin.operators.lateness import cleaned_at
from fastwin.state import userobjects
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.order import START_CELL, key_order, row_order
from fastwin.state.reading import newest_of, read_chunks
from fastwin.state.refresh import Refresh
from fastwin.state.rows import cell_names, fed_meta, feed_behind, fill_rows, key_rows, load_keys, load_rows, save_rows
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.triggers.builtin import reads_rows as trigger_reads_rows

if TYPE_CHECKING:
    from fastwin.operators.general.operator import GeneralOperator

__all__ = ["allocated", "check", "forget_watermark", "load", "save", "settle"]

FEWEST_CHANGES = 4096  # that a journal may hold, however little state there is


def allocated(operator: GeneralOperator) -> int:
    """Returns the bytes allocated for state; see ``GeneralOperator.state_bytes``."""
    timers, repeating = operator.timer_service, operator.round
    queues = timers.event_timers, timers.processing_timers, timers.forsaken
    held = operator.table.nbytes + sum(queue.nbytes for queue in queues)
    held += operator.table.keys.nbytes + 8 * (len(operator.contents.objects) + len(operator.state.windows))
    return int(held + (0 if repeating is None else repeating.nbytes))


def settle(operator: GeneralOperator) -> None:
    """Releases the keys whose per-key state was cleared, and gives up a journal that outweighs the state."""
    timers, state, table = operator.timer_service, operator.state, operator.table
    state.settle()
    if timers.journal is not None:
        changes = len(timers.journal) + len(table.removed) + len(state.dirty_keys)
        if changes > 2 * (len(table) + len(state.keys)) + FEWEST_CHANGES:
            _forget_saved(operator)
    if timers.journal is None:
        state.saved_keys()  # nobody asks for deltas yet, or ever again


def _forget_saved(operator: GeneralOperator) -> None:
    """Makes the next delta the whole state."""
    operator.timer_service.journal = None
    operator.table.unsaved()


def forget_watermark(operator: GeneralOperator) -> None:
    """Takes the watermark back that a restore brought, and begins a new chain: one that goes on would bring it back."""
    timers = operator.timer_service
    operator.newest = timers.watermark = timers.cleaned = MIN_TIMESTAMP
    operator.chain = Chain()
    _forget_saved(operator)


def save(operator: GeneralOperator, kind: Literal["snapshot", "delta"], refresh: Refresh | None = None) -> bytes:
    """Returns all state, or what has changed since the last call, as one chunk; a refresh: see Operator.delta()."""
    service, table, config = operator.timer_service, operator.table, operator.config
    codec, keys, rows = config.codec, table.keys, table.rows
    part = _part_of(operator, kind == "snapshot" or service.journal is None, refresh)
    slots = row_order(keys, rows, part.slots, END_CELL)
    accumulators = operator.contents.accumulators
    tables = save_rows(codec, keys, accumulators, rows, slots, {"start": START_CELL, "end": END_CELL}, HEAD_CELLS)
    tables["rows"] = (
        tables["rows"].append_column("flags", [table.flags(slots)]).append_column("panes", [table.panes(slots)])
    )
    position = {slot: i for i, slot in enumerate(slots.tolist())}
    tables["timers"] = _timer_table(operator, part, slots, position)
    if not part.everything and table.removed:
        removed, starts, ends = (np.array(column, dtype=np.int64) for column in zip(*table.removed, strict=True))
        ids = removed.astype(np.int32)
        order = key_order(keys, ids, starts, ends)
        tables["removed_keys"] = key_rows(codec, keys, ids[order])
        tables["removed"] = pa.table({"start": starts[order], "end": ends[order]})
    objects, user = save_objects(operator, position, tables, part.complete, part.state_keys)
    kept = len(tables["state_keys"]) if "state_keys" in tables else 0
    more = {"processing_time": service.clock, "whole": part.everything, "rows": len(slots) + kept}
    if refresh is not None:
        more["refreshed"] = part.groups
    more |= fed_meta(operator.contents.accumulators)
    more["cleaned"] = cleaned_at(service.watermark, service.lateness, service.cleaned)
    complete = part.everything or not operator.state_rows
    blob = config.encode_state(
        kind,
        service.watermark,
        tables,
        objects,
        operator.newest,
        chain=operator.chain,
        complete=complete,
        refresh=refresh,
        **more,
    )
    user.put(operator)
    table.saved(slots)
    operator.state.saved_keys()
    service.journal = []
    if operator.contents.keeps_rows:
        lists_are_saved(operator.contents, slots)
    return blob


def _timer_table(
    operator: GeneralOperator, part: _Part, slots: NDArray[np.int32], position: dict[int, int]
) -> pa.Table:
    """Returns the timers that rows do not tell by a mark, and in a delta those that have gone.

    slots: of the rows that are saved, in their order. position: where in it each slot is.
    """
    service = operator.timer_service
    if part.everything:
        found = {*unmarked(service)}
    else:
        assert service.journal is not None
        found = {item for item in service.journal if item[0] in position and _tells(operator, *item)}
        if part.groups:
            assert operator.round is not None
            found |= operator.round.timers(slots[part.complete[slots] != 0])
    timers = sorted(found, key=lambda item: (position[item[0]], *item[1:]))
    alive = [service.has_timer(*item) for item in timers]
    if operator.round is not None:
        operator.round.note_timers(timer for timer, there in zip(timers, alive, strict=True) if there)
    return pa.table(
        {
            "row": pa.array([position[slot] for slot, _, _ in timers], pa.int32()),
            "time": pa.array([time for _, time, _ in timers], pa.int64()),
            "kind": pa.array([kind for _, _, kind in timers], pa.int8()),
            "alive": pa.array(alive, pa.bool_()),
        }
    )


def _tells(operator: GeneralOperator, slot: int, time: int, kind: int) -> bool:
    """Whether an entry of the journal tells something of the row that is in a slot now, and not of one before it."""
    service = operator.timer_service
    if not service.has_timer(slot, time, kind):
        return operator.table.was_saved(slot)
    return is_unmarked(service, slot, time, kind)


def _changed(operator: GeneralOperator) -> bool:
    """Whether there is anything for a delta to hold."""
    journal, table = operator.timer_service.journal, operator.table
    if journal is None:
        return operator.state_rows > 0
    return bool(journal or operator.state.dirty_keys or table.removed or len(table.rows.dirty_slots()))


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


def _part_of(operator: GeneralOperator, everything: bool, refresh: Refresh | None) -> _Part:
    state, rows = operator.state, operator.table.rows
    if everything or refresh is None:
        operator.round = None
    if everything:
        slots, groups = rows.slots(), 0 if refresh is None else refresh.left
        return _Part(slots, np.ones(rows.top, dtype=np.uint8), list(state.keys), True, groups)
    complete = np.zeros(rows.top, dtype=np.uint8)
    if refresh is None:
        return _Part(rows.dirty_slots(), complete, list(state.dirty_keys), False, 0)
    if operator.round is None or not operator.round.goes_on(refresh):
        operator.round = GeneralRound(refresh, operator)
    found = operator.round.take()
    (changed, keys), (unchanged, other_keys) = found.changed, found.unchanged
    complete[changed[found.among[0]]] = complete[unchanged] = 1
    slots = np.concatenate([changed, unchanged])
    return _Part(slots, complete, [*keys.tolist(), *other_keys.tolist()], False, found.groups)


def load(operator: GeneralOperator, chunks: list[bytes], deltas: bool = False) -> None:
    """Takes one snapshot and the deltas after it; deltas: the first one may be a delta, too."""
    service, table = operator.timer_service, operator.table
    operator.round = None
    lacking: dict[int, int] = {}
    if deltas:
        operator.chain.check_saved(service.watermark, _changed(operator))
    read = read_chunks(chunks, operator.config, operator.chain, deltas)
    operator.newest = newest_of(read, operator.newest)
    for chunk in read:
        try:
            _apply(operator, chunk, lacking)
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            if isinstance(problem, StateError):
                raise
            raise StateError(f"state: the rows make no sense: {type(problem).__name__}: {problem}") from problem
        service.watermark = max(service.watermark, chunk.meta["watermark"])
        service.cleaned = max(service.cleaned, chunk.meta["cleaned"])
        service.clock = chunk.meta["processing_time"]
    feed_behind(operator.contents.accumulators, read)
    _drop(operator, operator.windows.passed_slots(), lacking)
    if lacking:
        slot, n = next(iter(lacking.items()))
        raise StateError(
            f"state: a delta goes on after {n} elements of a window, {operator.elements.where(slot)}, that has fewer"
        )
    table.saved(table.rows.slots())
    operator.state.saved_keys()
    service.journal = []
    if operator.contents.keeps_rows:
        lists_are_saved(operator.contents, table.rows.slots())


def _apply(operator: GeneralOperator, chunk: Chunk, lacking: dict[int, int]) -> None:
    """Takes one chunk. lacking: rows whose first elements, so many, are in deltas that are gone.

    A delta that repeats them with all that they have comes later, or the state is not whole.
    """
    service, state, table, codec = operator.timer_service, operator.state, operator.table, operator.config.codec
    objects = operator.contents.objects
    tables = dict(chunk.tables)
    if chunk.kind == "delta" and chunk.meta["whole"]:
        _drop(operator, table.rows.slots().tolist(), lacking)
        for key in list(state.keys):
            state.forget_key(key)
    if "removed" in tables:
        ids = load_keys(codec, table.keys, tables["removed_keys"])
        removed = tables["removed"]
        gone = table.lookup(ids, *(aligned(in_one(removed[name]).to_numpy()) for name in ("start", "end")))
        _drop(operator, unique(gone[gone >= 0]).tolist(), lacking)
    ids = load_keys(codec, table.keys, tables["keys"])
    wanted = ["start", "end", *cell_names(table.rows, HEAD_CELLS), "flags", "panes"]
    columns = load_rows(tables, ids, wanted)
    slots = table.insert(columns["key"], columns["start"], columns["end"])
    service.drop_marked(slots)
    table.restore_heads(slots, columns["flags"], columns["panes"])
    fill_rows(operator.contents.accumulators, table.rows, slots, columns, HEAD_CELLS)
    # Before those that marks tell of: with a longer lateness, a timer that was deleted may be at the time of cleaning.
    timers = tables["timers"]
    for row, time, kind, alive in zip(*(column.to_pylist() for column in timers.columns), strict=True):
        service.restore_timer(int(slots[row]), time, kind, alive)
    at_end = service.event_time and service.lateness > 0 and chunk.meta.get("lateness_before") == 0
    service.restore_marked(slots, columns["flags"], at_end)
    _keep_timers_of_triggers(operator, chunk, slots, columns)
    if len(slots):
        operator.contents.fit_all()
        state.fit_all()
    kept = tables["kept"].to_pydict() if "kept" in tables else {"row": [], "n": []}
    beginnings = {int(slots[at]): n for at, n in zip(kept["row"], kept["n"], strict=True)}
    for slot in slots.tolist():
        if operator.contents.keeps_rows:
            _keep_beginning(objects, slot, beginnings.get(slot, 0), lacking)
        else:
            objects[slot] = None
        state.windows[slot] = None
    if "elements" in tables:
        load_elements(operator, tables["elements"], slots)
    known = load_keys(codec, table.keys, tables["state_keys"]) if "state_keys" in tables else np.zeros(0, np.int32)
    nothing: tuple[dict[int, Any], dict[int, Any], list[Any]] = ({}, {}, [None] * len(known))
    if chunk.objects is not None and not _runs_python(operator):
        raise StateError("state: it holds Python objects, and nothing of the spec is written in Python")
    contents, states, by_key = (
        nothing if chunk.objects is None else userobjects.loads(chunk.objects, operator.program.classes)
    )
    places = slots.tolist()
    kept_by = dict(zip(known.tolist(), by_key, strict=True))
    UserObjects(at_slots(contents, places), at_slots(states, places), kept_by).put(operator)


def _keep_timers_of_triggers(
    operator: GeneralOperator, chunk: Chunk, slots: NDArray[np.int32], columns: dict[str, NDArray]
) -> None:
    """Leaves a trigger written in Python its timer where windows were cleaned before the lateness grew.

    One timer was for both, and nobody knows whether the trigger had set it: it is asked, as it would have been.
    """
    service, before = operator.timer_service, chunk.meta.get("lateness_before")
    if not service.event_time or before is None or not 0 < before < service.lateness:  # for 0 a mark tells of it
        return
    if not trigger_reads_rows(operator.program.trigger):
        return
    bounded = columns["start"] != columns["end"]
    for slot, last in zip(slots[bounded].tolist(), (columns["end"][bounded] - 1).tolist(), strict=True):
        cleans = last + service.lateness
        if cleans < MAX_TIMESTAMP:
            service.restore_timer(slot, last + before, 0, (cleans, 0) in service.marks(slot)[0])


def _runs_python(operator: GeneralOperator) -> bool:
    program = operator.program
    asks = reads_rows(program.assigner, program.trigger)
    return operator.contents.in_python or program.process is not None or asks


def _keep_beginning(objects: list[Any], slot: int, n: int, lacking: dict[int, int]) -> None:
    """Leaves the first n elements of a row, or notes that it lacks them."""
    known = objects[slot] or []
    if n < 0:
        raise StateError(f"state: a delta goes on after {n} elements of a window")
    if n > len(known) or (n and slot in lacking):  # of one that lacks its first elements, only later ones are known
        lacking[slot] = n
    else:
        lacking.pop(slot, None)
    objects[slot] = first_of(objects[slot], n)


def _drop(operator: GeneralOperator, slots: list[int], lacking: dict[int, int]) -> None:
    """Frees rows, and all their timers."""
    if not slots:
        return
    service = operator.timer_service
    service.drop_marked(np.array(slots, dtype=np.int32))
    if any(service.marks(slot)[1] for slot in slots):  # the others have to be looked for among all
        wanted = np.zeros(operator.table.rows.top, dtype=np.uint8)
        wanted[slots] = 1
        for slot, time, kind in unmarked(service, wanted):
            service.restore_timer(slot, time, kind, False)
    for slot in slots:
        lacking.pop(slot, None)
        operator.windows.drop(slot)


def check(operator: GeneralOperator) -> None:
    """Raises AssertionError where an invariant does not hold. O(state)."""
    service, state, table = operator.timer_service, operator.state, operator.table
    table._check()
    counts: dict[int, int] = {}
    for event_time, timers in ((True, service.event_timers), (False, service.processing_timers)):
        timers._check()
        for slot in service.listed(event_time)[1].tolist():
            counts[slot] = counts.get(slot, 0) + 1
    slots = table.rows.slots().tolist()
    for slot in slots:
        told, count = service.marks(slot)
        assert count == counts.pop(slot, 0), f"row {slot}: counts {count} timers"
        for time, kind in told:
            assert service.has_timer(slot, time, kind), f"row {slot}: marked for a timer at {time} that is not there"
    assert not counts, f"timers of rows that are gone: {counts}"
    live = set(slots)
    for held_by_slot in (operator.contents.objects, state.windows):
        for slot, value in enumerate(held_by_slot):
            assert slot in live or value is None, f"row {slot} is free and has objects"
    held = {int(key) for key in table.rows.keys(np.array(slots, dtype=np.int32))} | state.keys.keys()
    held |= state.dirty_keys | {key for key, _, _ in table.removed}
    assert held == set(table.keys.ids().tolist()), "a key is held by nothing"
    assert all(state.keys.values()), "a key has empty state"
