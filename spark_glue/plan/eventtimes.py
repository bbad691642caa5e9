"""The event time of a frame's rows, as Spark computes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin.columns.units import PER_SECOND
from fastwin.times import FIRST_DATE_MS, LAST_DATE_MS, MAX_TIMESTAMP, MIN_TIMESTAMP, MOST_MS
from spark_glue.plan.catalyst import quoted

__all__ = ["milliseconds", "newest_time", "time_where_ahead"]

_PER_MS = {"us": 1_000, "ns": 1_000_000}
_DAY_S = 86_400


def milliseconds(frame: DataFrame, name: str, unit: str | None) -> Column:
    """Returns the event time in a column in ms. unit: of whole numbers; None: ms.

    A time that is no int64 in ms is the first or the last one. That is a bad row as well.
    """
    column = F.col(quoted(name))
    if not isinstance(frame.schema[name].dataType, T.LongType):
        return F.unix_millis(column.cast("timestamp"))
    if unit == "s":
        most = MAX_TIMESTAMP // 1_000
        far = F.when(column > most, F.lit(MAX_TIMESTAMP)).when(column < -most, F.lit(MIN_TIMESTAMP))
        return far.otherwise(column * 1_000)
    per = _PER_MS.get(unit or "ms")
    if per is None:
        return column
    # Floored. A division by "/" is one of doubles.
    return F.call_function("div", column, F.lit(per)) - F.when(column % per < 0, 1).otherwise(0)


def newest_time(frame: DataFrame, name: str, unit: str | None) -> int | None:
    """Returns the newest good event time of a batch frame, ms; None: it has none. Runs a job."""
    plain = unit is None and isinstance(frame.schema[name].dataType, T.LongType)
    first, last = (-MOST_MS, MOST_MS) if plain else (FIRST_DATE_MS, LAST_DATE_MS)
    times = frame.select(milliseconds(frame, name, unit).alias("ms"))
    row = times.where(F.col("ms").between(first, last)).agg(F.max("ms")).first()
    return None if row is None or row[0] is None else int(row[0])


def time_where_ahead(frame: DataFrame, name: str, unit: str | None, skew_ms: int) -> Column:
    """Returns the time of the micro-batch; null in rows that are surely not ahead of it by more than skew_ms.

    unit: of whole numbers; None: ms. Spark writes a time as a number into the code that it makes of a plan, and
    compiles the code anew when the number is another one: in each micro-batch, on the driver and on each executor. So
    here the code has the day alone. Rows from there on ask for the time through a function of arrays that Spark does
    not compile; if it did in another version, that would cost what the time itself does. Where a row of this moment may
    be such a row, which costs more, it is the time itself.
    """
    now = F.current_timestamp()
    column, kind = F.col(quoted(name)), frame.schema[name].dataType
    most = _most_offset_s(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    if most is None or skew_ms < _DAY_S * 1_000 or not isinstance(kind, T.TimestampType | T.LongType):
        return now
    if isinstance(kind, T.TimestampType):
        column, unit = F.unix_micros(column), "us"
    per = PER_SECOND[unit or "ms"]
    ahead = skew_ms * per // 1_000 - most * per
    if ahead > MOST_MS:
        return now
    # Of the session's time zone; it began no later than now.
    day = F.unix_date(F.current_date()).cast("bigint") * F.lit(_DAY_S * per)
    asked = F.zip_with(F.array(now), F.array(F.lit(0)), lambda time, _: time)
    return F.when(column >= day + F.lit(ahead), F.element_at(asked, 1))


def _most_offset_s(time_zone: str | None) -> int | None:
    """Returns how far the clocks of a time zone are ahead of UTC at most, s, since 1970; None if that is not known."""
    weeks = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(weeks=week) for week in range(52 * 80)]
    try:
        instants = pa.array(weeks, pa.timestamp("s", tz=time_zone))
        local = pc.local_timestamp(instants)
    except (pa.ArrowException, TypeError):
        return None
    return int(pc.max(pc.subtract(local.cast(pa.int64()), instants.cast(pa.int64()))).as_py())
