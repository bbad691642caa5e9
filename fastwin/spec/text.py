"""A spec in words: the calls that make it, which its fingerprint is made of, and what changes no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastwin.spec.describe import describe, shown
from fastwin.spec.ending import types_text
from fastwin.times import format_ms

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["outputs_text", "parts_text", "spec_text", "state_parts"]


def spec_text(spec: SpecBuilder) -> str:
    """Returns the calls that make a spec, as far as its state depends on them."""
    return ".".join(f"{name}({text})" for name, text in _calls(spec, state_only=False))


def parts_text(spec: SpecBuilder) -> dict[str, str]:
    """Returns the parts of a spec, to read, as far as they are there, by what they are for."""
    told = {"keys": ", ".join(spec.keys) or "none, all rows are one stream"}
    if spec.time_column is not None:
        unit = "" if spec.time_unit is None else f", in {spec.time_unit}"
        told["time"] = f"event time {spec.time_column!r}{unit}"
    elif spec.arrival:
        told["time"] = "processing time"
    if spec.assigner is not None:
        told["windows"] = shown(spec.assigner)
        told["fires"] = shown(spec.firing if spec.firing is not None else spec.assigner.get_default_trigger())
    if spec.eviction is not None:
        told["evicts"] = shown(spec.eviction)
    for line in outputs_text(spec):
        name, _, text = line.partition(": ")
        told[name] = text
    extra = {"side outputs": ", ".join(tag for tag, _ in spec.sides), "pane info": spec.pane_info}
    extra |= {"changelog": spec.changelog, "window time": spec.window_time}
    told |= {name: value if isinstance(value, str) else "yes" for name, value in extra.items() if value}
    if spec.ending is not None:
        told["result"] = f"{spec.ending.method}({spec.ending.arguments(state_only=False)})"
    return told


def state_parts(spec: SpecBuilder) -> tuple[tuple[str, str], ...]:
    """Returns what these methods are given, by their names; without allowed lateness and built-in aggregates."""
    parts: dict[str, str] = {}
    for name, text in _calls(spec, state_only=True):
        parts[name] = f"{parts[name]}; {text}" if name in parts else text
    return tuple(parts.items())


def outputs_text(spec: SpecBuilder) -> list[str]:
    """Returns what a spec says of empty windows, late elements and bad rows, for ``explain``, but for the defaults."""
    told = []
    if spec.fill_ms is not None:
        gap = ", ".join(map(format_ms, dict.fromkeys(spec.fill_ms)))
        told.append(f"empty windows: a row each, where the windows with elements on both sides end up to {gap} apart")
    timeless = spec.assigner is not None and not spec.assigner.is_event_time()
    if timeless and (spec.lateness_ms or spec.late_output or spec.coalesce is not None):
        told.append("late elements: these windows know none, so what the spec says of them has no effect")
    elif spec.lateness_ms or spec.coalesce is not None:
        kept = f"allowed lateness: windows are kept for {format_ms(spec.lateness_ms)} after their end"
        told.append(f"{kept}, and late elements fire them again, {_COALESCE[spec.coalesce]}")
    if spec.late_output and not timeless:
        told.append("late elements: handed out in result.late, where no window takes them any more")
    if spec.bad_row_policy != "raise":
        told.append(f"bad rows: {_BAD_ROWS[spec.bad_row_policy]}")
    return told


_COALESCE = {
    None: "one by one in this process, once for each (key, window) and micro-batch on Spark; coalesce=True or False "
    "makes them the same",
    False: "one by one",
    True: "once for each (key, window) and batch",
}
_BAD_ROWS = {"divert": "handed out in result.bad", "drop": "counted and dropped"}


def _calls(spec: SpecBuilder, *, state_only: bool) -> list[tuple[str, str]]:
    calls = [("key_by", ", ".join(map(repr, spec.keys)))]
    if spec.time_column is not None:
        # The unit that is meant where none is given is the same as none.
        unit = f", unit={spec.time_unit!r}" if spec.time_unit not in (None, "ms") else ""
        calls.append(("event_time", f"{spec.time_column!r}{unit}"))
    if spec.arrival:
        calls.append(("processing_time", ""))
    gaps = sorted(set(spec.fill_ms or ()))  # of several that were not given, each window has its own
    fill = "" if not gaps else ", fill='empty'" + (f", longest_gap={format_ms(gaps[0])!r}" if len(gaps) == 1 else "")
    calls.append(("window", f"{describe(spec.assigner)}{fill}"))
    if spec.firing is not None:
        calls.append(("trigger", describe(spec.firing)))
    if spec.eviction is not None:
        calls.append(("evictor", describe(spec.eviction)))
    if spec.lateness_ms and not state_only:
        calls.append(("allowed_lateness", repr(format_ms(spec.lateness_ms))))
    calls += [("side_output", f"{tag!r}, {types_text(schema)}") for tag, schema in spec.sides]
    if spec.pane_info:
        calls.append(("with_pane_info", ""))
    if spec.changelog:
        calls.append(("with_changelog", ""))
    if spec.ending is not None:
        calls.append((spec.ending.method, spec.ending.arguments(state_only=state_only)))
    return calls
