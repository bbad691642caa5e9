"""Panes put together: the fields' own merge, by the same operator that fires windows, and columns made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.aggregates import Max, Min, Sum
from fastwin.assigners import SlidingEventTimeWindows
from fastwin.spec import key_by
from fastwin.store.layout import Field, Layout

__all__ = ["merge_windows", "outputs"]

_AGGREGATES: dict[str, Any] = {"sum": Sum, "min": Min, "max": Max}
_GROUP, _TIME = "group", "time"


def merge_windows(
    fields: Sequence[Field],
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    columns: Sequence[pa.Array],
    window: tuple[int, int, int],
) -> tuple[NDArray[np.int32], NDArray[np.int64], list[pa.Array]]:
    """Merges the panes of each (group, window).

    groups: int32[n], what is kept apart. times: int64[n], starts of the panes, ms. columns: one for each field.
    window: size, slide and offset, ms. Returns groups and starts of the windows that have panes, in any order, and the
    merged columns. Raises AggregateOverflowError for an int sum outside int64.
    """
    size, slide, offset = window
    aggregates: dict[str, Any] = {f"f{i}": _AGGREGATES[field.merge](f"f{i}") for i, field in enumerate(fields)}
    table = pa.table(
        {_GROUP: groups, _TIME: times} | {f"f{i}": column for i, column in enumerate(columns)},
    )
    windows = SlidingEventTimeWindows(size, slide, offset % slide)
    merged = key_by(_GROUP).event_time(_TIME).window(windows).aggregate(**aggregates).run(table).main
    starts = merged["window_start"].cast(pa.int64()).to_numpy()
    found = [merged[f"f{i}"].combine_chunks() for i in range(len(fields))]
    return merged[_GROUP].to_numpy().astype(np.int32), starts, found


def outputs(layout: Layout, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Returns the columns of results from merged fields, one array for each field of the layout."""
    by_name = {field.name: column for field, column in zip(layout.fields, columns, strict=True)}
    made = []
    for output in layout.outputs:
        parts = [by_name[name] for name in output.fields]
        if output.how == "mean":
            count = pc.if_else(pc.equal(parts[1], 0), pa.scalar(None, pa.int64()), parts[1])
            made.append(pc.divide(parts[0].cast(pa.float64()), count.cast(pa.float64())))
        else:
            made.append(parts[0])
    return made
