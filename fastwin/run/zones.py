"""Zones of event times and of calendars: results bear them, and days that are not the zone's are warned of."""

from __future__ import annotations

import warnings

import pyarrow as pa

from fastwin.callers import callers_level
from fastwin.columns.decoding import without_run_ends
from fastwin.operators.config import TIME_TYPE
from fastwin.spec.builder import SpecBuilder
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.localclock import is_utc
from fastwin.windows.named_windows import each_of
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["bound_type", "warn_of_utc_days"]

# Results keep other names of it.
_UTC = (None, "UTC", "Etc/UTC", "Z", "+00:00")
_DAY_MS = 86_400_000


def bound_type(spec: SpecBuilder, schema: pa.Schema) -> pa.DataType:
    """Returns the type of window bounds in results: timestamp[ms], in the zone of the calendar or of the event time.

    Without one, in UTC.
    """
    zones = {one.time_zone for one in each_of(spec.assigner) if isinstance(one, CalendarEventTimeWindows)}
    if len(zones) == 1:
        return pa.timestamp("ms", tz=zones.pop())
    if spec.time_column is None:
        return TIME_TYPE
    kind = without_run_ends(schema.field(spec.time_column).type)
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    return TIME_TYPE if zone in _UTC else pa.timestamp("ms", tz=zone)


def warn_of_utc_days(spec: SpecBuilder, bounds: pa.DataType) -> None:
    """Warns if windows of whole days begin at midnight in UTC, though the results have another zone."""
    for assigner in each_of(spec.assigner):
        _warn_of_utc_days(spec, assigner, bounds)


def _warn_of_utc_days(spec: SpecBuilder, assigner: WindowAssigner | None, bounds: pa.DataType) -> None:
    match assigner:
        case TumblingEventTimeWindows(size_ms=every, offset_ms=offset):
            pass
        case SlidingEventTimeWindows(slide_ms=every, offset_ms=offset):
            pass
        case CumulativeEventTimeWindows(max_size_ms=every, offset_ms=offset):
            pass
        case _:
            return
    if not is_utc(bounds.tz) and every % _DAY_MS == 0 and offset == 0:
        warnings.warn(
            f"window: {assigner} begin at midnight in UTC, but {_whose(spec, bounds)}; "
            f"CalendarEventTimeWindows.of('1 day', time_zone={bounds.tz!r}) has the days of that zone",
            stacklevel=callers_level(),
        )


def _whose(spec: SpecBuilder, bounds: pa.DataType) -> str:
    calendar = any(isinstance(one, CalendarEventTimeWindows) for one in each_of(spec.assigner))
    return f"{'the calendar' if calendar else f'event_time {spec.time_column!r}'} is in {bounds.tz}"
