"""Panes of aggregates that keep a state: merged by the operator that merges partial results, and made to values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.panestate import PaneState, kinds_in
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.errors import StateError, StoreError
from fastwin.operators.several.feeding import slicing_of
from fastwin.run.planner import plan
from fastwin.run.windowspec import key_by
from fastwin.spec.panes import STATES
from fastwin.spec.resultcolumns import WINDOW_START
from fastwin.state.members import empty_member, load_members
from fastwin.state.rows import fill_rows

__all__ = ["aggregate_from_text", "aggregate_to_text", "merged_states", "reading_of", "values_of_states"]

_GROUP, _TIME = "group", "time"
_OPERANDS = ("column", "by", "other")
_LEFT_OUT = (*_OPERANDS, "where")


def aggregate_to_text(aggregate: Aggregate) -> str:
    """Returns which aggregate it is, without what it reads."""
    arguments = {
        one.name: getattr(aggregate, one.name)
        for one in dataclasses.fields(aggregate)
        if one.init and one.name not in _LEFT_OUT
    }
    return json.dumps({"name": aggregate.name, **arguments})


def reading_of(aggregate: Aggregate) -> str:
    """Returns the name of an aggregate, what it reads and its condition, the same in every process.

    >>> import fastwin as fw
    >>> reading_of(fw.ArgMax("page", by="hits", where="paid"))
    "ArgMax('page', 'hits', where='paid')"
    """
    read = [repr(column) for column in aggregate.columns]
    read += [] if aggregate.where is None else [f"where={aggregate.where!r}"]
    return f"{aggregate.name}({', '.join(read)})"


def aggregate_from_text(text: str, of: str) -> Aggregate:
    """Returns the aggregate that ``aggregate_to_text`` has told, of columns ``of + '0'`` and so on.

    Raises StoreError for one that this fastwin does not know.
    """
    arguments = json.loads(text)
    kind: Any = STATES.get(arguments.pop("name"))
    if kind is None:
        raise StoreError(f"store: its panes are of {text}, which this fastwin does not know")
    known = {one.name for one in dataclasses.fields(kind)}
    operands = {name: f"{of}{i}" for i, name in enumerate(name for name in _OPERANDS if name in known)}
    return kind(**operands, **arguments)


def merged_states(
    states: Sequence[pa.Array],
    kinds: Sequence[pa.DataType],
    told: Sequence[str],
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    windows: Any,
    passed: int,
    until: int,
) -> pa.Table:
    """Merges the states of each (group, window).

    states: binary columns, null for a pane without elements, one for each of ``kinds``, the types of fields, and
    ``told``, which aggregates they are of. groups, times: of the panes, times in ms. windows: an assigner of theirs.
    passed, until: watermarks; of the windows that pass in between.

    Returns columns group, window_start, s0, s1 ..., these binary, of the windows that have panes. Raises StoreError for
    bytes that are no state.
    """
    fields = [pa.field(_GROUP, pa.int32()), pa.field(_TIME, pa.int64())]
    aggregates: dict[str, Aggregate] = {}
    for i, (kind, text) in enumerate(zip(kinds, told, strict=True)):
        fields += [pa.field(f"s{i}_{k}", of) for k, of in enumerate(kinds_in(kind) or ())]
        aggregates[f"s{i}"] = PaneState(inner=aggregate_from_text(text, f"s{i}_"))
    spec = key_by(_GROUP).event_time(_TIME).window(windows).aggregate(**aggregates)
    planned = plan(spec, pa.schema(fields), coalesce=True)
    slicing = slicing_of(windows)
    assert slicing is not None
    starts, outside = slicing.assign(times)
    if outside is not None and outside.any():
        inside = pa.array(~outside)
        states, groups, starts = [one.filter(inside) for one in states], groups[~outside], starts[~outside]
    operator = planned.new_operator()
    operator.advance_watermark(passed)
    if len(groups):
        accumulators = planned.config.new_accumulators()
        cells = _loaded(accumulators, states)
        rows: dict[str, Any] = {"bits": cells.pop("bits"), "start": starts}
        rows |= sorted(cells.items(), key=lambda cell: int(cell[0][1:]))
        known, at = np.unique(groups, return_inverse=True)
        keys = pa.table({"_": np.zeros(len(known), dtype=np.int8), "k0": known})
        held = {"key": at.astype(np.int32), **rows, "elements": np.ones(len(groups), dtype=np.int64)}
        chunk = planned.config.encode_partial({"keys": keys, "rows": pa.table(held)})
        try:
            operator.merge([chunk])
        except StateError as problem:
            raise _no_state(problem) from None
    table = pa.Table.from_batches(operator.advance_watermark(until), planned.config.main_schema)
    names = [f"s{i}" for i in range(len(states))]
    plain = [pc.struct_field(table[name], "state") for name in names]
    return pa.table([table[_GROUP], table[WINDOW_START], *plain], names=[_GROUP, WINDOW_START, *names])


def _loaded(accumulators: AccumulatorSet, states: Sequence[pa.Array]) -> dict[str, Any]:
    """Returns the cells of states; null is the state of no element."""
    whole = [one.fill_null(empty_member(accumulators, i)) if one.null_count else one for i, one in enumerate(states)]
    try:
        return load_members(accumulators, whole)
    except StateError as problem:
        raise _no_state(problem) from None


def _no_state(problem: Exception) -> StoreError:
    return StoreError(f"store: a pane holds what is no state of its aggregate: {problem}")


def values_of_states(states: pa.Array, kind: pa.DataType, told: str) -> pa.Array:
    """Returns the results of states, a binary column. kind, told: as in ``merged_states``, of one."""
    kinds = kinds_in(kind) or ()
    aggregate = aggregate_from_text(told, "v")
    at = tuple(range(len(aggregate.inputs(*kinds))))
    accumulators = AccumulatorSet([aggregate.accumulator(kinds, at)])
    n = len(states)
    rows = accumulators.new_rows()
    slots = rows.fresh(np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int64))
    if n:
        cells = _loaded(accumulators, [states])
        try:
            fill_rows(accumulators, rows, slots, cells, accumulators.head_cells)
        except StateError as problem:
            raise _no_state(problem) from None
    return aggregate.to_arrow(accumulators.results(rows, slots)[0], aggregate.result_type(*kinds))
