"""Arguments of stores, checked: revisions, panes, times and sizes."""

from collections.abc import Sequence
from datetime import datetime
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.errors import SpecError, StoreError
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.resultcolumns import WINDOW_END, WINDOW_START
from fastwin.store.layout import Layout
from fastwin.store.records import Meta, Revision
from fastwin.store.spans import FIRST_MS, LAST_MS, Span, time_text
from fastwin.times import Duration, Moment, format_ms, moment_text, to_ms
from fastwin.windows.timetext import TimeText

if TYPE_CHECKING:
    from fastwin.store.panestore import PaneStore

__all__ = [
    "check_size",
    "checked_bounds",
    "checked_revision",
    "checked_watermark",
    "checked_widths",
    "keys_at_once",
    "pane_starts",
    "with_checked_spec",
]

_MAX_PANES = 5_000_000
_Store = TypeVar("_Store", bound="PaneStore")


def with_checked_spec(store: _Store, spec: SpecBuilder | None) -> _Store:
    """Returns a store that was opened. Closes it and raises StoreError if it holds what is not of the spec."""
    try:
        if spec is not None and (meta := store.meta()) is not None:
            meta.layout.check_spec(spec)
    except BaseException:
        store.close()
        raise
    return store


def checked_revision(revision: Any) -> Revision:
    """Returns a revision. Raises SpecError for what is none."""
    try:
        epoch, batch = (index(part) for part in revision)
    except (TypeError, ValueError):
        raise SpecError(f"revision: must be two ints, an epoch and a batch, got {revision!r}") from None
    if not (0 <= epoch < 2**53 and 0 <= batch < 2**53):
        raise SpecError(f"revision: both parts must be from 0 to 2**53 - 1, got {revision!r}")
    return epoch, batch


def pane_starts(table: pa.Table, layout: Layout) -> np.ndarray:
    """Returns the starts of panes, ms, checked to be on the grid and in the calendar, and their ends, if they are told,
    to be as far away as a pane is wide."""
    if WINDOW_START not in table.column_names:
        raise SpecError(f"put: the panes have no column 'window_start'; they have {', '.join(table.column_names)}")
    starts = _bounds(table, WINDOW_START)
    beyond = (starts < FIRST_MS) | (starts >= LAST_MS)
    if beyond.any():
        raise SpecError(f"put: window_start must be in the years 1 to 9999, got {int(starts[beyond][0])} ms")
    off = (starts - layout.offset_ms) % layout.pane_ms != 0
    if off.any():
        raise SpecError(
            f"put: window_start {time_text(int(starts[off][0]))} starts no pane of {format_ms(layout.pane_ms)}"
        )
    if WINDOW_END in table.column_names:
        widths = _bounds(table, WINDOW_END) - starts
        other = widths != layout.pane_ms
        if other.any():
            raise SpecError(
                f"put: the panes must be {format_ms(layout.pane_ms)} wide, got a window of "
                f"{format_ms(int(widths[other][0]))} from {time_text(int(starts[other][0]))} on; put what "
                f"spec.panes() gives, of the spec and the width that the store was opened with"
            )
    return starts


def _bounds(table: pa.Table, name: str) -> np.ndarray:
    """Returns a column of times, ms. Raises SpecError where one is null."""
    column = table[name]
    if column.null_count:
        raise SpecError(f"put: {name} is null in {column.null_count} of {table.num_rows} rows")
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("ms", tz=column.type.tz)).cast(pa.int64())
    return column.to_numpy().astype(np.int64)


def checked_watermark(value: Any, layout: Layout, newest: int | None) -> int | None:
    """Returns where a store's watermark goes to, ms: the last point of the panes' grid up to ``value``.

    value: ms, exclusive; None, or beyond the calendar as after the end of a stream: ``newest``, the end of the last
    pane. Before the calendar, as for a stream that has none yet: None. Raises SpecError for what is no int.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise SpecError(f"watermark: must be an int of milliseconds, got {value!r}")
    if value is None or value >= LAST_MS:
        return newest
    return None if value < FIRST_MS else layout.fine.start_of(int(value))


def _on_grid(name: str, value: Any, layout: Layout) -> int:
    """Returns a time that somebody gives, in ms. Raises SpecError unless it is in the calendar, between two panes."""
    ms = TimeText().read(name, value, exact=True)
    if not FIRST_MS <= ms < LAST_MS:
        raise SpecError(f"{name}: must be in the years 1 to 9999, got {ms} ms")
    below = layout.fine.start_of(ms)
    if below != ms:
        near = [below, below + layout.pane_ms]
        shown = [moment_text(one, "Z") if isinstance(value, str | datetime | np.datetime64) else one for one in near]
        raise SpecError(
            f"{name}: {value} is within a pane of {format_ms(layout.pane_ms)}; next to it are {shown[0]} and {shown[1]}"
        )
    return ms


def checked_bounds(
    what: str, meta: Meta, start: Moment | None, end: Moment | None, step_ms: int | None = None, window_ms: int = 0
) -> tuple[int, int]:
    """Returns the bounds of a question, ms: by default one window, up to the watermark.

    what: the method that was asked. step_ms: what divides the time between them; window_ms: of the windows that end
    then. start, end: None is the default. Raises SpecError unless both are times on the panes' grid and in order, and
    all windows in the calendar; StoreError where the store has no watermark to end at.
    """
    end = meta.watermark if end is None else end
    if end is None:
        raise StoreError(f"{what}: the store has no watermark yet, so name the end")
    end = _on_grid("end", end, meta.layout)
    start = _on_grid("start", end - meta.layout.window_ms if start is None else start, meta.layout)
    if end <= start:
        raise SpecError(f"{what}: end must be after start, got start={start} end={end}")
    if step_ms is not None and (end - start) % step_ms:
        raise SpecError(
            f"{what}: end must be one or more steps of {format_ms(step_ms)} after start, got start={start} end={end}"
        )
    if step_ms is not None and start + step_ms - window_ms < FIRST_MS:
        raise SpecError(
            f"{what}: windows must begin in the years 1 to 9999, got a first one at {start + step_ms - window_ms} ms"
        )
    return start, end


def checked_widths(layout: Layout, window: Duration | None, step: Duration | None) -> tuple[int, int]:
    """Returns how long the windows of a series are, and how far from each other, ms; by default the spec's, and a pane.

    Raises SpecError unless both are whole panes.
    """
    window_ms = layout.window_ms if window is None else to_ms(window, argument="window")
    step_ms = layout.pane_ms if step is None else to_ms(step, argument="step")
    for name, length in (("window", window_ms), ("step", step_ms)):
        if length < 1 or length % layout.pane_ms:
            raise SpecError(
                f"series: {name} must be a multiple of a pane, {format_ms(layout.pane_ms)}, got {format_ms(length)}"
            )
    return window_ms, step_ms


def keys_at_once(layout: Layout, spans: Sequence[Span]) -> int:
    """Returns of how many keys a question may read these spans; at least 1."""
    return max(1, _MAX_PANES // max(1, _panes_of(layout, spans)))


def check_size(layout: Layout, spans: Sequence[Span], keys: int) -> None:
    """Raises SpecError for a question that reads too many panes."""
    panes = keys * _panes_of(layout, spans)
    if panes > _MAX_PANES:
        raise SpecError(
            f"query: at most {_MAX_PANES:,} panes in one go, got {panes:,}; ask for fewer keys or less time"
        )


def _panes_of(layout: Layout, spans: Sequence[Span]) -> int:
    """Returns how many panes a key has at most in some spans."""
    widths = layout.pane_ms, layout.coarse_ms or layout.pane_ms
    return sum((span.end - span.start) // widths[span.level] for span in spans)
