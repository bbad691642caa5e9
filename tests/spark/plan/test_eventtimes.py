"""Event times as Spark computes them: as the process does, also where numbers are far out."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from fastwin.columns.checking import Limits, check_rows
from spark_glue.plan.eventtimes import milliseconds, newest_time

EXTREMES = [-(2**63), -(2**63) + 1, -(2**61) - 1, -(2**61), 2**61, 2**61 + 1, 2**63 - 1, -(2**63) // 1_000 - 1]
PER_SECOND = {None: 1_000, "s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@pytest.fixture(params=[True, False], ids=["ansi", "no ansi"])
def session(spark, request) -> Iterator:
    key = "spark.sql.ansi.enabled"
    before = spark.conf.get(key)
    spark.conf.set(key, request.param)
    yield spark
    spark.conf.set(key, before)


def numbers(unit: str | None) -> list[int | None]:
    """Returns times around whole milliseconds, around the first and the last year, and at the ends of int64."""
    per, of_ms = PER_SECOND[unit], max(PER_SECOND[unit] // 1_000, 1)
    ours = [1_700_000_000_250 * of_ms + odd for odd in range(-2, 3)] + [1_700_000_000_248 * of_ms + 2, 0, -1, -of_ms]
    edges = [edge + odd for edge in (-62_135_596_800 * per, 253_402_300_800 * per) for odd in (-1, 0, 1)]
    return [None, *(one for one in [*ours, *edges, *EXTREMES] if -(2**63) <= one < 2**63)]


@pytest.mark.parametrize("unit", [None, "s", "ms", "us", "ns"])
def test_whole_numbers(session, unit):
    column = pa.array(numbers(unit), pa.int64())
    check(session, session.createDataFrame(pa.table({"ts": column})), column, unit)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_timestamps(session, kind):
    values = pa.array([one for one in numbers("us") if one is None or abs(one) < 2**58], pa.int64())
    frame = session.createDataFrame(pa.table({"us": values})).selectExpr("timestamp_micros(us) ts")
    if kind == "timestamp_ntz":
        frame = frame.selectExpr("cast(ts as timestamp_ntz) ts")
    check(session, frame, values.cast(pa.timestamp("us")), None)


def check(session, frame, column: pa.Array, unit: str | None) -> None:
    times, reasons = check_rows(pa.record_batch({"ts": column}), "ts", "drop", Limits(unit=unit))
    assert reasons is not None
    found = [row[0] for row in frame.select(milliseconds(frame, "ts", unit)).collect()]
    assert [one for one, reason in zip(found, reasons, strict=True) if not reason] == times[reasons == 0].tolist()
    first, last = (-62_135_596_800_000, 253_402_300_799_999) if unit or column.type != pa.int64() else (-(2**61), 2**61)
    assert [one is not None for one in found] == column.is_valid().to_pylist()
    bad = [one for one, reason in zip(found, reasons, strict=True) if reason]
    assert all(one is None or not first <= one <= last for one in bad)
    assert newest_time(frame, "ts", unit) == times[reasons == 0].max()
