"""Sessions as polars says them, in two forms, of which the faster one is chosen for a table.

By key: rows in order of time, and for each key a running number of its sessions. At once: rows in order of key and
time, and a running number of all sessions, by which rows are grouped. The second one is faster where keys have few
rows; where these are out of order, also with some more.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["at_once", "polars_sessions"]

FEW, FEW_OUT_OF_ORDER = 20, 100
"""Rows a key, in the mean, below which all sessions are numbered at once: where times are in order, and where not."""


def at_once(table: pa.Table, keys: Sequence[str]) -> bool:
    """Returns the form for a table with the times ``ts``. O(rows)."""
    times = table["ts"].cast(pa.int64()).to_numpy()
    in_order = bool(np.all(times[1:] >= times[:-1]))
    distinct = table.select(keys).group_by(list(keys)).aggregate([]).num_rows
    return len(table) < (FEW if in_order else FEW_OUT_OF_ORDER) * distinct


def polars_sessions(
    polars: Any, frame: Any, keys: Sequence[str], gap_ms: int, aggregates: Sequence[Any], at_once: bool
) -> Any:
    """Returns a lazy frame with the sessions: the keys, ``window_start`` and ``window_end``, ms, and the aggregates.

    A row that is ``gap_ms`` after the one before it is still of its session.
    """
    time = polars.col("ts")
    bounds = [time.first().alias("window_start"), (time.last() + gap_ms).alias("window_end")]
    rows, later = frame.lazy().with_columns(time.cast(polars.Int64)), time.diff() > gap_ms
    if at_once:
        others = (polars.col(key).ne_missing(polars.col(key).shift()) for key in keys)
        session = polars.any_horizontal(*others, later).cum_sum().alias("session")
        numbered = rows.sort(*keys, "ts").with_columns(session).set_sorted("session")
        found = numbered.group_by("session").agg(polars.col(*keys).first(), *bounds, *aggregates)
    else:
        session = later.fill_null(True).cum_sum().over(*keys).alias("session")
        found = rows.sort("ts").with_columns(session).group_by(*keys, "session").agg(*bounds, *aggregates)
    return found.drop("session")
