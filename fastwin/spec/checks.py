"""What the parts of a spec have to be to each other."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from fastwin.callers import callers_level
from fastwin.errors import SpecError
from fastwin.spec.describe import shown
from fastwin.spec.filling import check_fill
from fastwin.spec.resultcolumns import BOUNDS, CHANGE, WINDOW_COLUMN, WINDOW_TIME, added_columns
from fastwin.triggers import EventTimeTrigger, NeverTrigger, Trigger
from fastwin.windows.assigner import MergingWindowAssigner
from fastwin.windows.named_windows import NamedWindows

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["check_complete", "check_parts", "warn_if_never_fires"]


def check_parts(spec: SpecBuilder) -> None:
    """Raises SpecError for parts that do not go together, as far as they are there."""
    assigner, trigger = spec.assigner, spec.firing
    if assigner is not None and trigger is None:
        trigger = assigner.get_default_trigger()
        if not isinstance(trigger, Trigger):
            raise SpecError(
                f"window: {type(assigner).__name__}.get_default_trigger() must return a trigger, returned {trigger!r}"
            )
    if assigner is not None and spec.arrival and assigner.is_event_time():
        raise SpecError(f"window: {assigner} needs .event_time(column), but the spec says .processing_time()")
    if isinstance(assigner, MergingWindowAssigner):
        assert trigger is not None
        if not trigger.can_merge():
            raise SpecError(
                f"trigger: {type(trigger).__name__} cannot merge, so it does not go with {assigner}, whose windows do"
            )
        if spec.ending is not None and spec.eviction is None:
            spec.ending.check_merging(assigner)
    if isinstance(assigner, NamedWindows):
        _check_named(spec)
    if spec.fill_ms is not None:
        check_fill(spec)
    if spec.changelog and spec.ending is not None and not spec.ending.one_row:
        raise SpecError(
            f"with_changelog: goes with aggregates and reductions, which have one result for each window; "
            f"{spec.ending.method} may have any number"
        )
    for name in added_columns(spec):
        if name in spec.keys:
            call = "with_changelog" if name == CHANGE else "with_pane_info"
            raise SpecError(f"{call}: adds the column {name!r}, which is a key; rename the key")
    tags = [tag for tag, _ in spec.sides]
    for tag in tags:
        if tags.count(tag) > 1:
            raise SpecError(f"side_output: the tag {tag!r} is given twice")


def _check_named(spec: SpecBuilder) -> None:
    """Raises SpecError for what goes with no several windows: they share rows of aggregates."""
    python = spec.ending is not None and spec.ending.python is not None
    for asked, what in (
        (spec.firing is not None and spec.firing != EventTimeTrigger(), f"trigger {spec.firing}"),
        (spec.eviction is not None, f"evictor {spec.eviction}"),
        (spec.pane_info, "with_pane_info()"),
        (spec.changelog, "with_changelog()"),
        (bool(spec.sides), "side_output(...)"),
        (python, "functions written in Python"),
        (spec.ending is not None and spec.ending.method != "aggregate", f"{spec.ending and spec.ending.method}(...)"),
    ):
        if asked:
            raise SpecError(f"windows: several take built-in aggregates alone, got {what}; use specs with .window(...)")


def check_complete(spec: SpecBuilder) -> None:
    """Raises SpecError if a part without which nothing runs is missing, or if columns are at odds."""
    needs_time = spec.assigner is None or spec.assigner.is_event_time()
    missing = [
        call
        for call, there in (
            (".event_time(column)", spec.time_column is not None or spec.arrival or not needs_time),
            (".window(assigner)", spec.assigner is not None),
            (".aggregate(name=...)", spec.ending is not None),
        )
        if not there
    ]
    if missing:
        raise SpecError(f"spec: incomplete without {' and '.join(missing)}")
    assert spec.ending is not None
    check_parts(spec)
    spec.ending.check(spec)
    taken = [*spec.keys, *BOUNDS, *added_columns(spec)]
    if spec.window_time:
        taken.append(WINDOW_TIME)
        if WINDOW_TIME in spec.keys:
            raise SpecError(f"with_window_time: {WINDOW_TIME!r} is the name of a result column; rename the key")
    if isinstance(spec.assigner, NamedWindows):
        taken.append(WINDOW_COLUMN)
        if WINDOW_COLUMN in spec.keys:
            raise SpecError(f"windows: {WINDOW_COLUMN!r} is the name of a result column; rename the key")
    for name in spec.ending.columns:
        if name in taken:
            raise SpecError(
                f"{spec.ending.method}: the name {name!r} is taken: it is a key, or a column that every result has"
            )


def warn_if_never_fires(spec: SpecBuilder) -> None:
    """Warns of windows that fire nothing and keep all that comes, unless a trigger says that this is meant."""
    if spec.firing is not None or spec.assigner is None:
        return
    if isinstance(spec.assigner.get_default_trigger(), NeverTrigger):
        warnings.warn(
            f"window: {shown(spec.assigner)} never fires by itself, and keeps all that comes: give a trigger, such as "
            "CountTrigger.of(100), or NeverTrigger() if that is meant",
            stacklevel=callers_level(),
        )
