"""The event time of a frame's rows, as Spark computes it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_glue.plan.catalyst import quoted

__all__ = ["milliseconds", "newest_time"]

_FAR = 2**61  # ms; numbers further out are no times
_PER_MS = {"us": 1_000, "ns": 1_000_000}


def milliseconds(frame: DataFrame, name: str, unit: str | None) -> Column:
    """Returns the event time in a column in ms. unit: of whole numbers; None: ms."""
    column = F.col(quoted(name))
    if not isinstance(frame.schema[name].dataType, T.LongType):
        return F.unix_millis(column.cast("timestamp"))
    if unit == "s":
        return column * 1_000
    per = _PER_MS.get(unit or "ms")
    return column if per is None else ((column - F.pmod(column, F.lit(per))) / per).cast("long")


def newest_time(frame: DataFrame, name: str, unit: str | None) -> int | None:
    """Returns the newest good event time of a batch frame, ms; None: it has none. Runs a job."""
    time = milliseconds(frame, name, unit)
    row = frame.select(time.alias("ms")).where(F.col("ms").between(-_FAR, _FAR)).agg(F.max("ms")).first()
    return None if row is None or row[0] is None else int(row[0])
