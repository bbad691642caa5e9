"""What Python code keeps in the general operator, to chunks and back: elements as tables, the rest pickled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import in_one
from fastwin.columns.pythonvalues import exact_values
from fastwin.columns.row import Rows, TimedRow, row_of, row_type, rows_to_arrays
from fastwin.columns.rowkeeping import keep_first, keep_rows
from fastwin.columns.windowrows import WindowRows, window_rows
from fastwin.errors import StateError
from fastwin.state import userobjects
from fastwin.state.lookover import NUMBERS, kind_of
from fastwin.state.order import key_order
from fastwin.state.rows import key_rows

if TYPE_CHECKING:
    from fastwin.operators.general.contents import Contents
    from fastwin.operators.general.operator import GeneralOperator

__all__ = ["UserObjects", "at_slots", "first_of", "lists_are_saved", "load_elements", "save_objects"]


@dataclass(frozen=True)
class UserObjects:
    """What user code keeps: of windows, by slot: their contents and their state; and the state of keys.

    elements: those of windows as they were saved, and where they go; see ``_reload``.
    """

    contents: dict[int, Any]
    windows: dict[int, Any]
    keys: dict[int, Any]
    elements: tuple[pa.Table, list[int], dict[int, int]] | None = None

    def put(self, operator: GeneralOperator) -> None:
        """Makes an operator go on with these."""
        if self.elements is not None:
            _reload(operator, *self.elements)
        objects, windows = operator.contents.objects, operator.state.windows
        for slot, value in self.contents.items():
            objects[slot] = value
        for slot, value in self.windows.items():
            windows[slot] = value
        for key, values in self.keys.items():
            operator.state.set_key(key, values)


def save_objects(
    operator: GeneralOperator,
    position: dict[int, int],
    tables: dict[str, pa.Table],
    complete: NDArray[np.uint8],
    state_keys: list[int],
) -> tuple[bytes | None, UserObjects]:
    """Adds elements to the tables; returns the rest of what Python code keeps, pickled, None if there is nothing.

    position: which row of the tables each slot is. complete: see ``_Part``. state_keys: ids of the keys whose own state
    is saved. Also returns what is read from that, if it is told by more than its values: a stream that goes on with it
    shares its objects as a restored one does, and so pickles the same bytes. Nothing of the operator changes before
    that is put into it.
    """
    objects, saved_lists, state = operator.contents.objects, operator.contents.saved_lists, operator.state
    contents: dict[int, Any] = {}
    states: dict[int, Any] = {}
    held: list[tuple[int, Any]] = []
    kept: list[tuple[int, int]] = []
    rewritten = False
    for slot, at in position.items():
        values, content = _at(state.windows, slot), _at(objects, slot)
        if values:
            states[at] = values
        if content is None:
            continue
        if operator.contents.keeps_rows:
            known = saved_lists.get(slot)
            start = known[1] if known is not None and known[0] is content and not complete[slot] else 0
            if start:
                kept.append((at, start))
            rewritten |= known is not None and len(content) > start == 0
            held += [(at, element) for element in content[start:]]
        else:
            contents[at] = content
    if held:
        tables["elements"] = _element_table(operator, held)
    if kept:
        rows_kept, counts = zip(*kept, strict=True)
        tables["kept"] = pa.table({"row": pa.array(rows_kept, pa.int32()), "n": pa.array(counts, pa.int64())})
    keys = np.array(state_keys, dtype=np.int32)
    keys = keys[key_order(operator.table.keys, keys)]
    if len(keys):
        tables["state_keys"] = key_rows(operator.config.codec, operator.table.keys, keys)
    user = (contents, states, [state.keys.get(key) for key in keys.tolist()])
    slots = list(position)
    elements = (tables["elements"], slots, dict(kept)) if held and (rewritten or any(user)) else None
    if not any(user):
        return None, UserObjects({}, {}, {}, elements)
    try:
        kind = kind_of(user)
        pickled = userobjects.dumps(user, operator.program.classes, kind)
    except Exception as problem:
        raise _unpicklable(operator, position, user, problem) from problem
    if kind == NUMBERS:  # their bytes follow from their values alone
        return pickled, UserObjects({}, {}, {}, elements)
    contents, states, by_key = userobjects.loads(pickled, operator.program.classes)
    kept_by = {key: values for key, values in zip(keys.tolist(), by_key, strict=True) if values}
    return pickled, UserObjects(at_slots(contents, slots), at_slots(states, slots), kept_by, elements)


def _element_table(operator: GeneralOperator, held: list[tuple[int, Any]]) -> pa.Table:
    """Returns elements as a table. held: each with the row of its window."""
    timed, schema = isinstance(held[0][1], TimedRow), operator.program.rows
    assert schema is not None
    arrays = rows_to_arrays([element.value if timed else element for _, element in held], schema)
    times = pa.array([element.timestamp if timed else None for _, element in held], pa.int64())
    names = [f"e{i}" for i in range(len(schema))]
    table = pa.table([pa.array([at for at, _ in held], pa.int32()), times, *arrays], names=["row", "time", *names])
    if operator.contents.numbered:
        table = table.append_column("arrival", pa.array([element.arrival for _, element in held], pa.int64()))
    return table


def _reload(operator: GeneralOperator, saved: pa.Table, slots: list[int], kept: dict[int, int]) -> None:
    """Puts elements as they are read into the place of those just saved: values of theirs may be in user state, too."""
    objects = operator.contents.objects
    for at in dict.fromkeys(saved["row"].to_pylist()):
        first_of(objects[slots[at]], kept.get(at, 0))
    load_elements(operator, saved, slots)


def first_of(elements: WindowRows | list[TimedRow] | None, n: int) -> WindowRows | list[TimedRow] | None:
    """Drops all elements of a window but the first n; returns what is left, None for nothing."""
    if isinstance(elements, WindowRows):
        keep_first(elements, n)
    elif elements is not None:
        del elements[n:]
    return elements if n else None


def at_slots(values: dict[int, Any], slots: list[int]) -> dict[int, Any]:
    """Returns by slot what is there by the rows of a chunk."""
    return {slots[at]: value for at, value in values.items()}


def _unpicklable(
    operator: GeneralOperator,
    position: dict[int, int],
    user: tuple[dict[int, Any], dict[int, Any], list[Any]],
    problem: Exception,
) -> StateError:
    """Returns the error for user state that cannot be pickled; names the key and window that hold it."""
    windows = {at: slot for slot, at in position.items()}
    where = "some key"
    for held in user[:2]:
        for at, value in held.items():
            try:
                userobjects.dumps(value, operator.program.classes)
            except Exception:
                where = operator.elements.where(windows[at])
    return StateError(
        f"snapshot: what user code keeps for {where} cannot be pickled: {type(problem).__name__}: {problem}"
    )


def lists_are_saved(contents: Contents, slots: NDArray[np.int32]) -> None:
    """Remembers how much of each window's elements is saved."""
    for slot in slots.tolist():
        elements = _at(contents.objects, slot)
        if elements is not None:
            contents.saved_lists[slot] = (elements, len(elements))


def _at(objects: list[Any], slot: int) -> Any:
    """Returns what a list by slot holds, which may be shorter than there are rows."""
    return objects[slot] if slot < len(objects) else None


def load_elements(operator: GeneralOperator, saved: pa.Table, slots: Sequence[int] | NDArray[np.int32]) -> None:
    """Puts saved elements behind those that windows have. slots: of the windows, by their row in the tables."""
    objects, schema = operator.contents.objects, operator.program.rows
    assert schema is not None
    kind, handed = row_type(schema.names), operator.contents.handed
    columns = [in_one(saved[f"e{i}"]) for i in range(len(schema))]
    if operator.contents.keeps_places:
        rows = Rows(kind, pa.RecordBatch.from_arrays(columns, names=schema.names))
        for i, at in enumerate(saved["row"].to_pylist()):
            slot = int(slots[at])
            if objects[slot] is None:
                objects[slot] = window_rows([], handed)
            keep_rows(objects[slot], rows, (i,))
        operator.elements.leave(rows)
        return
    values_of = [exact_values(column) for column in columns]
    values = zip(*values_of, strict=True) if values_of else [()] * saved.num_rows
    # State saved before there were arrivals does not tell them: those of a window have arrived as they stand there.
    arrivals = saved["arrival"].to_pylist() if "arrival" in saved.column_names else [-1] * saved.num_rows
    times = saved["time"].to_pylist()
    for at, time, arrival, row in zip(saved["row"].to_pylist(), times, arrivals, values, strict=True):
        slot = int(slots[at])
        if objects[slot] is None:
            objects[slot] = []
        objects[slot].append(TimedRow(row_of(kind, row), time, arrival))
