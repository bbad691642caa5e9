"""Why a window has fired or has not: looks at a stream's operator and says it in words. Nothing changes by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fastwin.columns.objects import table_of_rows
from fastwin.columns.pythonvalues import told_values
from fastwin.errors import SpecError
from fastwin.operators.heldwindows import NEVER, HeldWindows
from fastwin.operators.protocol import Operator
from fastwin.run.datawatermark import DataWatermark
from fastwin.run.planner import Plan
from fastwin.run.results import Metrics
from fastwin.run.why.asked import asked, firings_of, known_of
from fastwin.run.why.journal import Fired, Journal
from fastwin.run.why.report import WhyReport, WhyWindow
from fastwin.run.why.windowsat import window_bounds
from fastwin.run.why.words import Words
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.joinending import TIME as JOINED_TIME
from fastwin.times import MIN_TIMESTAMP
from fastwin.windows.timetext import TimeText, time_text_of

__all__ = ["Subject", "key_columns", "time_text_for", "why", "why_nothing"]


@dataclass(frozen=True)
class Subject:
    """What is asked about: a stream, as far as that needs to be known.

    watermark: ms, where it is known to be further than the operator's. follows: None: the caller moves the watermark.
    journal: None: there is none. time_text: how times are shown; None: as the plan says. said_of_time: what is to be
    said of the watermark; None: what follows from the others.
    """

    plan: Plan
    operator: Operator
    metrics: Metrics
    watermark: int
    follows: DataWatermark | None = None
    journal: Journal | None = None
    time_text: TimeText | None = None
    said_of_time: tuple[str, ...] | None = None


def why(subject: Subject, key: Any, at: Any = None, window: Any = None) -> WhyReport:
    """Returns a report about the windows of a key, at a time, or of one window; see ``Stream.why``."""
    plan, operator = subject.plan, subject.operator
    time_text = subject.time_text or time_text_for(plan)
    question = asked(plan.spec.assigner, time_text, at, window)
    columns = key_columns(plan, key)
    values = [told_values(column)[0] for column in columns]
    plain = values[0] if len(values) == 1 else tuple(values)
    day = question.day(subject.watermark)
    shortened = time_text if day is None else time_text.on_the_day_of(day)
    words = Words(plan, shortened, subject.watermark, subject.follows, subject.metrics, operator.cleaned)
    held = operator.look(plan.config.codec.encode(columns, 1))
    places, absent = question.of(held)
    known = known_of(question, subject.journal, plain)
    fired, late = ((), ()) if known is None else known
    windows = [_window(held, place) for place in places]
    firings = firings_of(question, fired, [(one.start, one.end, one.name) for one in windows])
    shown = [
        _in_words(one, held, place, words, told) for one, place, told in zip(windows, places, firings, strict=True)
    ]
    told = {id(one) for some in firings for one in some}
    if absent:
        bounds = [(*window_bounds(one.window), one.name) for one in absent]
        missed = [list(fired)] if question.merges else firings_of(question, fired, bounds)
        told |= {id(one) for some in missed for one in some}
        near = [(one.start, one.end) for one in windows if question.merges]
        near = near or question.joined(held, plan.spec.lateness_ms, subject.watermark)
        shown += [words.absent(one, near, question.others, some) for one, some in zip(absent, missed, strict=True)]
    elif not shown and question.time is not None:
        shown.append(words.none_at(len(held)))
    shown.sort(key=lambda one: (one.end is None, one.end or 0, one.start or 0))
    newest = operator.newest if operator.newest > MIN_TIMESTAMP else None
    if subject.said_of_time is None:
        said = words.time(newest, subject.journal)
    else:
        said = (*subject.said_of_time, *words.mover(subject.journal))
    rows = words.rows(None if known is None else late, [one for one in fired if id(one) not in told], subject.journal)
    return WhyReport(
        key=plain,
        question=words.question(time_text, values, question.time, question.window),
        operator=operator.name,
        watermark=subject.watermark,
        newest=newest,
        processing_time=subject.metrics.processing_time,
        time=(*said, words.zone()) if said else (),
        windows=tuple(shown),
        rows=(*words.key_rows(len(held), len(places)), *rows),
        late=None if known is None else late,
        fired=None if known is None else fired,
    )


def why_nothing(spec: SpecBuilder, key: Any, watermark: int, clock: int) -> WhyReport:
    """Returns the report of a stream that has seen no row and no schema."""
    key = _given(key, spec.keys)
    question = f"{', '.join(spec.keys) or 'the one key'} = {key!r}, in {spec.assigner}"
    said = "No row has come yet, and no schema was given: there are no windows, and nothing that could fire."
    return WhyReport(key, question, None, watermark, None, clock, (said,), (), ())


def time_text_for(plan: Plan) -> TimeText:
    """Returns how a plan's times are shown."""
    column = plan.spec.time_column
    if column == JOINED_TIME:
        return TimeText()
    kind = None if column is None else plan.input_schema.field(column).type
    return time_text_of(plan.config.bound_type, kind, plan.spec.time_unit)


def key_columns(plan: Plan, key: Any) -> list[pa.Array]:
    """Returns a key as columns of one row. Raises SpecError where its values are not as many, or do not suit."""
    schema, values = pa.schema(plan.config.codec.out_fields), _values_of(plan, key)
    table = table_of_rows([dict(zip(schema.names, values, strict=True))], schema, None, "why: key")
    return [column.combine_chunks() for column in table.columns]


def _values_of(plan: Plan, key: Any) -> list[Any]:
    names = [field.name for field in plan.config.codec.fields]
    key = _given(key, names)
    if isinstance(key, Mapping):
        if set(key) != set(names):
            raise SpecError(f"why: key must have {', '.join(names) or 'no columns'}, got {', '.join(map(str, key))}")
        return [key[name] for name in names]
    values = list(key) if isinstance(key, tuple | list) else [] if key is None and not names else [key]
    if len(values) != len(names):
        told = ", ".join(names) or "no columns: leave it out"
        raise SpecError(f"why: key must be a value for each of {told}, got {key!r}")
    return values


def _given(key: Any, names: Sequence[str]) -> Any:
    """Returns a key that was given; ``...`` stands for none, which is the key of a spec without keys."""
    if key is not ...:
        return key
    if names:
        raise SpecError(f"why: key is missing; give the value of {', '.join(names)}, None for the key of nulls")
    return None


def _window(held: HeldWindows, place: int) -> WhyWindow:
    """Returns a window that is held, without words."""
    start, end, fires = int(held.starts[place]), int(held.ends[place]), int(held.fires_at[place])
    timers = () if held.timers is None else tuple(held.timers[place])
    return WhyWindow(
        start=None if start == end else start,
        end=None if start == end else end,
        name=None if held.names is None else held.names[place],
        title="",
        held=True,
        holds={name: told_values(column.slice(place, 1))[0] for name, column in held.values.items()},
        firings=int(held.firings[place]) if held.firings[place] >= 0 else None,
        fires_at=None if fires == NEVER else fires,
        fires_by=None if fires == NEVER else "clock" if held.by_clock[place] else "watermark",
        gone_at=None if int(held.gone_at[place]) == NEVER else int(held.gone_at[place]),
        timers=tuple((timer.time, "clock" if timer.by_clock else "watermark") for timer in timers),
        sentences=(),
    )


def _in_words(window: WhyWindow, held: HeldWindows, place: int, words: Words, firings: Sequence[Fired]) -> WhyWindow:
    kept = held.trigger_state[place] if held.trigger_state else {}
    sentences = words.held(window, bool(held.filled[place]), bool(held.fired[place]), kept, held.asks, firings)
    return replace(window, title=words.title(window.start, window.end, window.name), sentences=sentences)
