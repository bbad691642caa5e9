"""Panes as they were read, made to a table of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import from_values
from fastwin.columns.decoding import decoded_type
from fastwin.columns.validtext import valid_text
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.store.cells import from_cells
from fastwin.store.keytext import column_from_text
from fastwin.store.layout import Layout
from fastwin.store.merging import merge_windows, outputs, outputs_of_nothing
from fastwin.store.records import Scan, TooManyBytesError, check_results, windows_at_once

__all__ = ["in_portions", "merged_scan", "series_table", "whole_window"]

_TIME = pa.timestamp("ms", tz="UTC")

Windows = tuple[np.ndarray, np.ndarray, list[pa.Array]]
"""The index of the key and the start of each window, and the columns of results."""


def merged_scan(
    layout: Layout, scan: Scan, window: tuple[int, int, int], within: tuple[int, int] | None = None
) -> Windows:
    """Returns the group and the start of each window that has panes, and the columns of its results.

    window: size, slide and offset, ms. within: the first and the last start of a window that is wanted; None: all are.
    States and sketches are merged some windows at a time, and are values when the next ones are merged. Raises as
    ``merge_windows``, and TooManyBytesError where the results have too many.
    """
    columns = [
        from_cells(cells, field.kind, field.name) for cells, field in zip(scan.cells, layout.fields, strict=True)
    ]
    groups = np.array(scan.groups, dtype=np.int32)
    times = np.array(scan.times, dtype=np.int64)
    counted = [output.fields[0] for output in layout.outputs if output.how == "estimate"]
    held = sum(
        column.nbytes
        for column, field in zip(columns, layout.fields, strict=True)
        if field.merge in ("state", "union") and field.name not in counted
    )
    made: list[Windows] = []
    nbytes = 0
    for some in _portions(held, window, within):
        panes = groups, times, columns
        if some is not None and some != within:
            inside = (times >= some[0]) & (times < some[1] + window[0])
            panes = groups[inside], times[inside], [column.filter(pa.array(inside)) for column in columns]
        found, starts, merged = merge_windows(layout.fields, *panes, window, counted, some)
        results = outputs(layout, merged)
        made.append((found, starts, results))
        nbytes += sum(column.nbytes for column in results)
        check_results(nbytes, sum(len(each) for each, _, _ in made))
    if len(made) == 1:
        return made[0]
    of_groups, of_starts, of_results = zip(*made, strict=True)
    together = [pa.concat_arrays(parts) for parts in zip(*of_results, strict=True)]
    return np.concatenate(of_groups), np.concatenate(of_starts), together


def _portions(
    held: int, window: tuple[int, int, int], within: tuple[int, int] | None
) -> Iterator[tuple[int, int] | None]:
    """Yields the first and the last start of the windows that are merged at a time; None: all are. held: bytes of the
    panes' states and sketches."""
    if within is None:
        yield None
        return
    _, slide, _ = window
    first, last = within
    at_once = windows_at_once(held)
    for start in range(first, last + 1, at_once * slide):
        yield start, min(start + (at_once - 1) * slide, last)


def whole_window(layout: Layout, texts: Sequence[str], scan: Scan, start: int, end: int) -> pa.Table:
    """Returns the table of the window ``[start, end)``, ms, of those keys that have panes. texts: of the keys read."""
    groups, _, columns = merged_scan(layout, scan, (end - start, end - start, start))
    found = [texts[group] for group in groups.tolist()]
    return _window_table(layout, found, [start] * len(found), [end] * len(found), columns)


def in_portions(make: Callable[[Sequence[str]], pa.Table], texts: Sequence[str], most: int) -> pa.Table:
    """Returns the tables that ``make`` returns for portions of the keys, one below the other.

    most: how many keys are in a portion; fewer where these have too many bytes. One portion at a time is in memory.
    Raises TooManyBytesError where one key has too many.
    """
    made: list[pa.Table] = []
    first = 0
    while first < len(texts) or not made:
        some = texts[first : first + most]
        try:
            made.append(make(some))
        except TooManyBytesError:
            if len(some) < 2:
                raise
            most = len(some) // 2
        else:
            first += most
    return pa.concat_tables(made)


def series_table(layout: Layout, texts: list[str], found: Windows, ends: range, window_ms: int) -> pa.Table:
    """Returns the table of a series: for each key the windows of ``window_ms`` that end then, also without panes.

    Raises TooManyBytesError where these have too many.
    """
    groups, starts, columns = found
    points, first = len(ends), ends[0] - window_ms
    where = np.full(len(texts) * points, len(groups), dtype=np.int64)  # behind the windows is one without panes
    where[groups * np.int64(points) + (starts - first) // ends.step] = np.arange(len(groups))
    if len(groups) < len(where):
        nothing = outputs_of_nothing(layout)
        held, empty = (sum(column.nbytes for column in some) for some in (columns, nothing))
        check_results(held + empty * (len(where) - len(groups)), len(where))
        columns = [pa.concat_arrays(parts) for parts in zip(columns, nothing, strict=True)]
    columns = [column.take(pa.array(where)) for column in columns]
    times = np.tile(np.arange(ends.start, ends.stop, ends.step, dtype=np.int64), len(texts))
    return _window_table(layout, [text for text in texts for _ in ends], times - window_ms, times, columns)


def _window_table(layout: Layout, texts: list[str], starts: Any, ends: Any, columns: list[pa.Array]) -> pa.Table:
    """Returns the table of results: key columns, window_start, window_end, aggregates."""
    bounds = [from_values(np.asarray(values, dtype=np.int64), None, _TIME) for values in (starts, ends)]
    fields = [
        *(pa.field(field.name, decoded_type(field.type)) for field in layout.keys),
        *(pa.field(name, _TIME) for name in BOUNDS),
        *(pa.field(output.name, layout.output_type(output)) for output in layout.outputs),
    ]
    results = map(valid_text, columns)  # states hold text as it came
    return pa.Table.from_arrays([*column_from_text(texts, layout.keys), *bounds, *results], schema=pa.schema(fields))
