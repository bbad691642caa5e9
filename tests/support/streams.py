"""A small spec and tables for tests of streams: key k, time t in ms, value v; windows of 10 ms."""

import pyarrow as pa

import fastwin as fw

__all__ = ["BASE", "COUNT", "SUM", "rows", "table"]

BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
COUNT = BASE.aggregate(n=fw.Count())
SUM = BASE.aggregate(s=fw.Sum("v"))


def table(*rows: tuple, names: str = "ktv") -> pa.Table:
    """Returns rows of k, t and v."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in names]
    kinds = {"k": pa.string(), "t": pa.int64(), "v": pa.int64()}
    return pa.table({name: pa.array(column, kinds[name]) for name, column in zip(names, columns, strict=True)})


def rows(result: fw.Result) -> list[tuple]:
    """Returns the rows of ``result.main``, bounds of windows in ms."""
    plain = [
        column.cast(pa.int64()) if name.startswith("window_") else column
        for name, column in zip(result.main.column_names, result.main.columns, strict=True)
    ]
    return list(zip(*(column.to_pylist() for column in plain), strict=True))
