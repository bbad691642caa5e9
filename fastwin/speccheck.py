"""What the parts of a spec have to be to each other."""

from __future__ import annotations

from typing import Any

from fastwin.aggregates import Aggregate
from fastwin.assigners import MergingWindowAssigner
from fastwin.errors import SpecError
from fastwin.functions import AggregateFunction
from fastwin.triggers import Trigger

__all__ = ["PANE_COLUMNS", "check_complete", "check_parts"]

PANE_COLUMNS = ("pane_index", "pane_timing", "pane_is_last")
_BOUNDS = ("window_start", "window_end")


def check_parts(spec: Any) -> None:
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
        if not trigger.can_merge():
            raise SpecError(
                f"trigger: {type(trigger).__name__} cannot merge, so it does not go with {assigner}, whose windows do"
            )
        functions = [function for _, function in spec.aggregates if isinstance(function, AggregateFunction)]
        for function in [*functions, *([spec.function] if spec.function else [])]:
            if not function.can_merge() and spec.eviction is None:
                raise SpecError(
                    f"aggregate: {type(function).__name__} has no merge(a, b), which {assigner} needs: windows merge"
                )
    tags = [tag for tag, _ in spec.sides]
    for tag in tags:
        if tags.count(tag) > 1:
            raise SpecError(f"side_output: the tag {tag!r} is given twice")


def check_complete(spec: Any) -> None:
    """Raises SpecError if a part without which nothing runs is missing, or if columns are at odds."""
    needs_time = spec.assigner is None or spec.assigner.is_event_time()
    ends = spec.aggregates or spec.function or spec.reducer or spec.processor
    missing = [
        call
        for call, there in (
            (".event_time(column)", spec.time_column is not None or spec.arrival or not needs_time),
            (".window(assigner)", spec.assigner is not None),
            (".aggregate(name=...)", ends),
        )
        if not there
    ]
    if missing:
        raise SpecError(f"spec: incomplete without {' and '.join(missing)}")
    check_parts(spec)
    _check_output(spec)
    taken = [*spec.keys, *_BOUNDS, *(PANE_COLUMNS if spec.pane_info else ())]
    names = [name for name, _ in spec.aggregates] if spec.processor is None else []
    if spec.output is not None:
        names += [name for name in spec.output.names if name not in names]
    for name in names:
        if name in taken:
            raise SpecError(f"aggregate: the name {name!r} is taken by a key column or a bound of the window")


def _check_output(spec: Any) -> None:
    """Checks that ``output`` names the columns that Python code fills."""
    if spec.reducer is not None or (spec.processor is not None and spec.output is not None):
        return
    users = [name for name, aggregate in spec.aggregates if not isinstance(aggregate, Aggregate)]
    if spec.processor is not None or spec.function is not None or users:
        what = "then" if spec.processor is not None else ", ".join(users) or type(spec.function).__name__
        if spec.output is None:
            raise SpecError(f"aggregate: {what} needs output=, the columns that it fills, such as output='n bigint'")
    if spec.output is None:
        return
    built_in = [name for name, aggregate in spec.aggregates if isinstance(aggregate, Aggregate)]
    for name in users:
        if name not in spec.output.names:
            raise SpecError(f"aggregate: output= must name the type of {name!r}, it has {', '.join(spec.output.names)}")
    for name in built_in:
        if name in spec.output.names:
            raise SpecError(f"aggregate: output= has the column {name!r}, which a built-in aggregate fills")
    rest = [name for name in spec.output.names if name not in users]
    if rest and spec.function is None:
        raise SpecError(f"aggregate: output= has the column {rest[0]!r}, which nothing fills")
    if spec.function is not None and not rest:
        raise SpecError(f"aggregate: {type(spec.function).__name__} needs a column in output= to fill")
