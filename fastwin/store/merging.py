"""Panes put together: the fields' own merge, by the same operator that fires windows, and columns made of them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.aggregates.extremes import Max, Min
from fastwin.aggregates.numbers import Count, Sum
from fastwin.columns.buffers import int64_values
from fastwin.core.accumulators.basic import int_means
from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.run.windowspec import key_by
from fastwin.store.layout import Field, Layout
from fastwin.store.unions import union_windows
from fastwin.windows.sliding import SlidingEventTimeWindows

__all__ = ["merge_windows", "outputs"]

_AGGREGATES: dict[str, Any] = {"sum": Sum, "min": Min, "max": Max}
_GROUP, _TIME = "group", "time"


def merge_windows(
    fields: Sequence[Field],
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    columns: Sequence[pa.Array],
    window: tuple[int, int, int],
    counted: Collection[str] = (),
) -> tuple[NDArray[np.int32], NDArray[np.int64], list[pa.Array]]:
    """Merges the panes of each (group, window).

    groups: int32[n], what is kept apart. times: int64[n], starts of the panes, ms. columns: one for each field.
    window: size, slide and offset, ms. counted: names of sketches that leave as what they count, int64.
    Returns groups and starts of the windows that have panes, in their order, and the merged columns. O(panes + windows)
    for each field. Raises AggregateOverflowError for an int sum outside int64, SketchError for what is no sketch.
    """
    size, slide, offset = window
    aggregates: dict[str, Any] = {"there": Count()}
    data: dict[str, Any] = {_GROUP: groups, _TIME: times}
    for i, (field, column) in enumerate(zip(fields, columns, strict=True)):
        if field.merge != "union":
            aggregates[f"f{i}"] = _AGGREGATES[field.merge](f"f{i}")
            data[f"f{i}"] = column
    windows = SlidingEventTimeWindows(size, slide, offset % slide)
    merged = key_by(_GROUP).event_time(_TIME).window(windows).aggregate(**aggregates).run(pa.table(data)).main
    merged = merged.sort_by([(_GROUP, "ascending"), ("window_start", "ascending")])
    where = merged[_GROUP].to_numpy().astype(np.int32)
    starts = merged["window_start"].cast(pa.int64()).to_numpy()
    found = []
    for i, field in enumerate(fields):
        if field.merge == "union":
            sketches = union_windows(groups, times, columns[i].to_pylist(), where, starts, size)
            found.append(_leaving(sketches, field.name in counted))
        else:
            found.append(merged[f"f{i}"].combine_chunks())
    return where, starts, found


def _leaving(sketches: Iterator[Sketch | None], counted: bool) -> pa.Array:
    if counted:
        return pa.array([None if sketch is None else sketch.estimate() for sketch in sketches], pa.int64())
    return pa.array([None if sketch is None else sketch.to_bytes() for sketch in sketches], pa.binary())


def outputs(layout: Layout, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Returns the columns of results from merged fields, one array for each field of the layout."""
    by_name = {field.name: column for field, column in zip(layout.fields, columns, strict=True)}
    made = []
    for output in layout.outputs:
        parts = [by_name[name] for name in output.fields]
        if output.how == "mean":
            made.append(_mean(*parts))
        else:  # sketches that are estimated were counted when they were merged
            made.append(parts[0])
    return made


def _mean(total: pa.Array, count: pa.Array) -> pa.Array:
    """Returns sums over counts, null for a count of 0."""
    if pa.types.is_integer(total.type):
        means = int_means(int64_values(total), int64_values(count))
        return pa.array(means, mask=int64_values(count) == 0)
    some = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
    return pc.divide(total.cast(pa.float64()), some.cast(pa.float64()))
