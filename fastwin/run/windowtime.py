"""The column ``window_time`` of results: the last millisecond of each window."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.spec.resultcolumns import WINDOW_END, WINDOW_TIME

__all__ = ["timed", "timed_schema"]


def timed_schema(schema: pa.Schema, wanted: bool) -> pa.Schema:
    """Returns the schema of main results, with ``window_time`` behind the bounds if that is wanted."""
    if not wanted:
        return schema
    end = schema.get_field_index(WINDOW_END)
    return schema.insert(end + 1, pa.field(WINDOW_TIME, schema.field(end).type))


def timed(main: pa.Table, wanted: bool) -> pa.Table:
    """Returns main results, with ``window_time`` behind the bounds if that is wanted. O(rows)."""
    if not wanted:
        return main
    end = main.schema.get_field_index(WINDOW_END)
    kind = main.schema.field(end).type
    last = pc.subtract(main[WINDOW_END].cast(pa.int64()), 1).cast(kind)
    return main.add_column(end + 1, pa.field(WINDOW_TIME, kind), last)
