"""State as a table that people can read: a row for each (key, window)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import from_values
from fastwin.operators.heldwindows import NEVER, HeldWindows
from fastwin.operators.protocol import Operator
from fastwin.run.planner import Plan
from fastwin.spec.joinending import free_name
from fastwin.spec.resultcolumns import WINDOW_COLUMN, WINDOW_END, WINDOW_START
from fastwin.times import MAX_TIMESTAMP

__all__ = ["inspected"]

_TIMER = pa.struct([pa.field("time", pa.int64()), pa.field("clock", pa.string())])


def inspected(plan: Plan, operator: Operator) -> pa.Table:
    """Returns what an operator knows of its windows: see ``Stream.inspect``. O(windows)."""
    held = operator.look()
    bound, keys = plan.config.bound_type, plan.config.codec.out_fields
    columns: dict[str, pa.Array | pa.ChunkedArray] = dict(zip([field.name for field in keys], held.keys, strict=True))
    if held.names is not None:
        columns[WINDOW_COLUMN] = pa.array(held.names, pa.string())
    is_global = held.starts == held.ends
    columns[WINDOW_START] = _times(held.starts, is_global, bound)
    columns[WINDOW_END] = _times(held.ends, is_global, bound)
    for name, column in (*held.values.items(), *_about(held, bound).items()):
        columns[free_name(name, columns, "_")] = column
    return pa.table(columns)


def _about(held: HeldWindows, bound: pa.DataType) -> dict[str, pa.Array]:
    clocks = np.where(held.by_clock, "clock", "watermark")
    fires = held.fires_at == NEVER
    timers = [[]] * len(held) if held.timers is None else held.timers
    told = [[{"time": at, "clock": "clock" if by_clock else "watermark"} for at, by_clock in some] for some in timers]
    return {
        "fired": pa.array(held.fired),
        "firings": pa.array(held.firings, mask=held.firings < 0),
        "fires_at": _times(held.fires_at, fires | (held.fires_at == MAX_TIMESTAMP), bound),
        "fires_by": pa.array(clocks.astype(object), pa.string(), mask=fires),
        "gone_at": _times(held.gone_at, held.gone_at == NEVER, bound),
        "timers": pa.array(told, pa.list_(_TIMER)),
        "bytes": pa.array(held.nbytes),
    }


def _times(times: NDArray[np.int64], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    return from_values(times, None if not missing.any() else ~missing, kind)
