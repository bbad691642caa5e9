"""What a journal tells of the past, in short sentences: firings, late elements, and what moved the watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from fastwin.run.planner import Plan
from fastwin.run.results import Metrics
from fastwin.run.why.journal import Fired, Journal, Late, Moved
from fastwin.run.why.windowsat import late_from
from fastwin.spec.joinending import JoinEnding, Side
from fastwin.windows.timetext import TimeText

__all__ = ["MOST", "PastWords", "element_of"]

MOST = 10
"""Firings or late elements that are told one by one."""


class PastWords:
    """What is said of a stream's past, and how its windows, keys and times are called."""

    def __init__(self, plan: Plan, time_text: TimeText, metrics: Metrics) -> None:
        self._plan, self._time_text, self._metrics = plan, time_text, metrics

    @property
    def _is_join(self) -> bool:
        return isinstance(self._plan.spec.ending, JoinEnding)

    # --- names ---

    def title(self, start: int | None, end: int | None, name: str | None) -> str:
        """Returns how a window is called."""
        named = "Window" if name is None else f"Window {name!r}"
        if start is None or end is None:
            return f"{named}: the global one"
        whole = replace(self._time_text, day=None)
        return f"{named} from {whole.text(start)} to {whole.on_the_day_of(start).text(end)}"

    def _from_to(self, start: int | None, end: int | None) -> str:
        return "for all time" if start is None or end is None else f"from {self._at(start)} to {self._at(end)}"

    def _at(self, ms: int) -> str:
        return self._time_text.text(ms)

    def _key(self, key: Any) -> str:
        return self._named(key if len(self._plan.config.codec.fields) != 1 else (key,)) or "the one key"

    def _named(self, values: Sequence[Any]) -> str:
        """Returns the values of key columns as text."""
        names = [field.name for field in self._plan.config.codec.fields]
        shown = [str(value) if isinstance(value, datetime | date | time) else repr(value) for value in values]
        return ", ".join(f"{name} = {value}" for name, value in zip(names, shown, strict=True))

    # --- what moved the watermark, and what fired ---

    def _mover(self, moved: Moved) -> str:
        return f"It was moved there in call {moved.call:,}, {self._by(moved)}."

    def _by(self, moved: Moved) -> str:
        if moved.by == "element":
            assert moved.time is not None
            return f"by the {element_of(moved.side)} of {self._at(moved.time)} of {self._key(moved.key)}"
        who = "no element had come" if not self._is_join else "an input had had no element"
        return {
            "caller": "by advance_watermark()",
            "idle": f"because {who} for so long (idle=)",
            "restore": "by the state that was restored",
        }[moved.by]

    def _fired_before(self, firings: Sequence[Fired], start: int | None, end: int | None) -> list[str]:
        """Returns what a journal tells of the firings of a window, or of a session while it was shorter."""
        said = [self._firing(one, (one.start, one.end) != (start, end)) for one in firings[-MOST:]]
        more = len(firings) - MOST
        return [f"{more:,} earlier firings of it are in report.fired.", *said] if more > 0 else said

    def _firing(self, fired: Fired, shorter: bool) -> str:
        as_it_was = f", {self._from_to(fired.start, fired.end)}" if shorter else ""
        if fired.by == "element":
            return f"In call {fired.call:,} an element fired it{as_it_was}."
        if fired.by == "clock":
            return f"In call {fired.call:,} it fired{as_it_was}: the clock came to {self._at(fired.processing_time)}."
        by = "" if fired.moved is None else f", {self._by(fired.moved)}"
        return (
            f"In call {fired.call:,} it fired{as_it_was}: the watermark was moved to {self._at(fired.watermark)}{by}."
        )

    # --- rows ---

    def rows(self, late: tuple[Late, ...] | None, fired: Sequence[Fired], journal: Journal | None) -> list[str]:
        """Returns what is to be said of rows that are in no window, and of the past. fired: nothing is said of yet."""
        found = self._metrics
        counts = {
            "late": found.late + found.num_late_records_dropped,
            "bad": found.bad,
            "in no window": found.unassigned,
        }
        told = [f"{count:,} {what}" for what, count in counts.items() if count]
        said = [f"Of all {found.events:,} rows of all keys so far: {', '.join(told)}."] if told else []
        if journal is None:
            return [*said, "Which rows were late is not recorded: open(trace=10_000) does."] if counts["late"] else said
        assert late is not None
        said += [self._last_firing(fired)] if fired else []
        said += [self._late(one, journal) for one in late[-MOST:]]
        if len(late) > MOST:
            said.append(f"{len(late) - MOST:,} earlier late elements are in report.late.")
        if not late and counts["late"]:
            said.append("None of the late ones that the journal knows is of this key and time.")
        if journal.lost:
            said.append(
                f"The journal begins at call {journal.first_call:,}; {journal.lost:,} decisions before it are lost "
                f"(trace={journal.most:,})."
            )
        return said

    def _last_firing(self, fired: Sequence[Fired]) -> str:
        last = fired[-1]
        window = "" if last.start is None or last.end is None else f"; the last one: {self._window(last)}"
        firings = f"{len(fired):,} firing{'s' if len(fired) > 1 else ''}"
        return f"The journal knows of {firings} of windows that are gone{window}."

    def _window(self, fired: Fired) -> str:
        assert fired.start is not None
        assert fired.end is not None
        title = self.title(fired.start, fired.end, fired.name)
        return f"{title[0].lower()}{title[1:]}, in call {fired.call:,}"

    def _late(self, late: Late, journal: Journal) -> str:
        """Says by which watermark an element was late, and what had moved it there."""
        said = f"The {element_of(late.side)} of {self._at(late.time)} came late, in call {late.call:,}"
        spec, lateness = self._plan.spec, None
        if isinstance(spec.ending, JoinEnding) and late.side is not None:
            lateness = spec.ending.lateness[late.side == "right"]
        limit = late_from(spec, late.time, lateness)
        gone = limit is not None and limit <= late.watermark
        windows = f", and its windows were gone from {self._at(limit)} on" if gone and limit is not None else ""
        said = f"{said}: the watermark was at {self._at(late.watermark)}{windows}"
        moved = (journal.mover_past(limit, late) if gone and limit is not None else None) or late.moved
        if moved is None:
            return f"{said}."
        if moved.by != "element":
            return f"{said}. {self._mover(moved).replace('It was moved there', 'It had been moved')}"
        assert moved.time is not None
        return (
            f"{said}. The {element_of(moved.side)} of {self._at(moved.time)} of {self._key(moved.key)} had moved it "
            f"past that, in call {moved.call:,}."
        )


def element_of(side: Side) -> str:
    """Returns how an element is called, of one input or of the only one."""
    return "element" if side is None else f"element of the {side} input"
