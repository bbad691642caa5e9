"""Which times a spec takes elements of, and where the gaps of its sessions are."""

from __future__ import annotations

from dataclasses import replace

from fastwin.columns.checking import Limits
from fastwin.columns.units import Unit
from fastwin.errors import StateError
from fastwin.run.reading import gap_column
from fastwin.spec.builder import SpecBuilder
from fastwin.windows.assigner import ProcessingTimeWindows
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.named_windows import each_of

__all__ = ["check_clock", "time_limits"]


def time_limits(spec: SpecBuilder, unit: Unit | None, limits: Limits) -> Limits:
    """Returns the bounds on the rows of a spec with windows. Those that go by the clock need no event times.

    unit: what int64 times count; None: ms, as plain numbers. limits: of the runner.
    """
    assert spec.assigner is not None
    if any(isinstance(one, CalendarEventTimeWindows) for one in each_of(spec.assigner)):
        unit = unit or "ms"  # calendars have years 1 to 9999 alone
    return replace(limits, nulls=not spec.assigner.is_event_time(), unit=unit, gap=gap_column(spec))


def check_clock(spec: SpecBuilder) -> None:
    """Raises StateError where windows end past the end of time, as those of elements do that come when the clock is at
    int64 max."""
    if isinstance(spec.assigner, ProcessingTimeWindows):
        raise StateError(
            f"stream: its clock is at the end of time, so {spec.assigner} take no elements; "
            "advance_processing_time() sets the clock"
        )
