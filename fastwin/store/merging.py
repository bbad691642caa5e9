"""Panes put together: the fields' own merge, by the same operator that fires windows, and columns made of them."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.aggregates.extremes import Max, Min
from fastwin.aggregates.numbers import Count, Sum
from fastwin.columns.buffers import in_one
from fastwin.errors import AggregateOverflowError
from fastwin.hyperloglog import merge as merged_sketch
from fastwin.run.planner import Plan
from fastwin.run.planner import plan as planned
from fastwin.run.windowspec import key_by
from fastwin.spec.resultcolumns import WINDOW_START
from fastwin.store.layout import Field, Layout, Output
from fastwin.store.means import means_of
from fastwin.store.states import merged_states, values_of_states
from fastwin.store.unions import unions
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.windows.sliding import SlidingEventTimeWindows

__all__ = ["merge_windows", "outputs", "outputs_of_nothing"]

_AGGREGATES: dict[str, Any] = {"sum": Sum, "min": Min, "max": Max}
_GROUP, _TIME = "group", "time"
_ORDER: Any = [(_GROUP, "ascending"), (WINDOW_START, "ascending")]


def merge_windows(
    fields: Sequence[Field],
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    columns: Sequence[pa.Array],
    window: tuple[int, int, int],
    counted: Collection[str] = (),
    within: tuple[int, int] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int64], list[pa.Array]]:
    """Merges the panes of each (group, window).

    groups: int32[n], what is kept apart. times: int64[n], starts of the panes, ms. columns: one for each field, of a
    state its bytes.
    window: size, slide and offset, ms. counted: names of sketches that leave as what they count, int64. within: the
        first and the last start of a window that is wanted, ms; None: all are.
    Returns groups and starts of the windows that have panes, in their order, and the merged columns. O(panes + windows)
    for each field. Raises AggregateOverflowError for an int sum outside int64, SketchError for what is no sketch.
    """
    size, slide, offset = window
    windows = SlidingEventTimeWindows(size, slide, offset % slide)
    data: dict[str, Any] = {_GROUP: groups, _TIME: times}
    names = [f"panes of {field.name}" for field in fields]  # as errors tell them
    numbers = [i for i, field in enumerate(fields) if field.merge in _AGGREGATES]
    data |= {names[i]: columns[i] for i in numbers}
    merges = tuple(fields[i].merge for i in numbers)
    # Windows before those that are wanted have passed when the first pane comes.
    passed, until = (
        (MIN_TIMESTAMP, MAX_TIMESTAMP) if within is None else (within[0] + size - slide - 1, within[1] + size - 1)
    )
    merged = _merged_numbers(pa.record_batch(data), merges, windows, passed, until).sort_by(_ORDER)
    where = merged[_GROUP].to_numpy().astype(np.int32)
    starts = merged[WINDOW_START].cast(pa.int64()).to_numpy()
    held = [i for i, field in enumerate(fields) if field.merge == "state"]
    states = {}
    if held:
        some = [fields[i] for i in held]
        kinds, made = [field.kind for field in some], [field.made for field in some]
        table = merged_states([columns[i] for i in held], kinds, made, groups, times, windows, passed, until)
        table = table.sort_by(_ORDER)
        states = {i: in_one(table[f"s{at}"]) for at, i in enumerate(held)}
    found = []
    for i, field in enumerate(fields):
        if field.merge == "union":
            found.append(unions(groups, times, columns[i], where, starts, size, field.name in counted))
        elif field.merge == "state":
            found.append(states[i])
        else:
            found.append(_as_kept(in_one(merged[names[i]]), field))
    return where, starts, found


def _merged_numbers(
    panes: pa.RecordBatch, merges: tuple[str, ...], windows: SlidingEventTimeWindows, passed: int, until: int
) -> pa.Table:
    """Returns group, window_start and merged columns of each (group, window).

    panes: group, time, and a column for each of ``merges``. passed, until: watermarks; of the windows that pass in
    between.
    """
    plan = _plan(panes.schema, merges, windows)
    operator = plan.new_operator()
    operator.advance_watermark(passed)
    fired = operator.process(plan.batch(panes, panes[_TIME].to_numpy())).main
    return pa.Table.from_batches(fired + operator.advance_watermark(until), plan.config.main_schema)


@lru_cache(maxsize=256)  # a page asks for the same windows again and again
def _plan(schema: pa.Schema, merges: tuple[str, ...], windows: SlidingEventTimeWindows) -> Plan:
    names = schema.names[2:]
    aggregates: Any = {name: _AGGREGATES[merge](name) for name, merge in zip(names, merges, strict=True)}
    spec = key_by(_GROUP).event_time(_TIME).window(windows).aggregate(there=Count(), **aggregates)
    return planned(spec, schema)


def _as_kept(column: pa.Array, field: Field) -> pa.Array:
    """Returns merged values in the type of the field: a sum of decimals has got more digits."""
    if column.type == field.kind or not pa.types.is_decimal(field.kind):
        return column
    try:
        return column.cast(field.kind)
    except pa.ArrowInvalid:
        raise AggregateOverflowError(f"store: a sum of panes of {field.name!r} does not fit {field.kind}") from None


def outputs(layout: Layout, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Returns the columns of results from merged fields, one array for each field of the layout."""
    by_name = {field.name: column for field, column in zip(layout.fields, columns, strict=True)}
    made = []
    for output in layout.outputs:
        parts = [by_name[name] for name in output.fields]
        if output.how == "mean":
            made.append(means_of(parts[0], parts[1], output.name))
        elif output.how == "state":
            made.append(values_of_states(parts[0], layout.first_field(output).kind, output.made))
        elif parts[0].null_count and (nothing := _of_nothing(layout, output)[0]).is_valid:
            made.append(parts[0].fill_null(nothing))
        else:  # sketches that are estimated were counted when they were merged
            made.append(parts[0])
    return made


def outputs_of_nothing(layout: Layout) -> list[pa.Array]:
    """Returns the columns of results of one window without panes: what each aggregate is over no value."""
    return [_of_nothing(layout, output) for output in layout.outputs]


def _of_nothing(layout: Layout, output: Output) -> pa.Array:
    field, kind = layout.first_field(output), layout.output_type(output)
    if output.how == "state":
        return values_of_states(pa.nulls(1, pa.binary()), field.kind, output.made)
    if output.how in ("count", "estimate"):
        return pa.array([0], kind)
    return pa.array([merged_sketch([])], kind) if field.merge == "union" else pa.nulls(1, kind)
