"""What ``why`` answers: a report that reads as text, shows itself in a notebook, and gives its data as a dict."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastwin.run.why.journal import Fired, Late

__all__ = ["WhyReport", "WhyWindow"]

_MOST = 20  # windows that the text tells of
_WIDE = 110  # characters of a line


@dataclass(frozen=True)
class WhyWindow:
    """A window in a report.

    start, end: ms; None for a global window. name: of several windows. held: whether the state knows it. holds: its
    contents by name: aggregates as they stand, or how many rows. firings: how often it has fired; None: not known.
    fires_at: the watermark, or the clock, ms, at which it fires next; None: only an element makes it fire.
    fires_by: ``"watermark"`` or ``"clock"``. gone_at: when it goes or went, ms; None: it stays, or went before a
    restart. timers: (time, clock), those that are registered; clock as in ``fires_by``. sentences: all of that in
    words.
    """

    start: int | None
    end: int | None
    name: str | None
    title: str
    held: bool
    holds: dict[str, Any]
    firings: int | None
    fires_at: int | None
    fires_by: str | None
    gone_at: int | None
    timers: tuple[tuple[int, str], ...]
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain values, times in ms."""
        return {**vars(self), "timers": list(self.timers), "sentences": list(self.sentences)}


@dataclass(frozen=True, repr=False)
class WhyReport:
    """Why a window of a key has fired or has not, and what is missing. ``print`` it, or look at its fields.

    key: a scalar for one key column, else a tuple. question: in words. operator: which one runs. watermark: ms, int64
    min for none yet. newest: the newest event time, ms; None: not known. processing_time: the stream's clock, ms.
    time: what is to be said of these, in words. windows: those that were asked for, held or not. late: late elements
    of the key, fired: firings of these windows, the oldest first; both as far as the journal knows, None: there is no
    journal. rows: what is to be said of rows that are in no window, in words.
    """

    key: Any
    question: str
    operator: str | None
    watermark: int
    newest: int | None
    processing_time: int
    time: tuple[str, ...]
    windows: tuple[WhyWindow, ...]
    rows: tuple[str, ...]
    late: tuple[Late, ...] | None = None
    fired: tuple[Fired, ...] | None = None

    @property
    def text(self) -> str:
        """The report as text."""
        lines = [self.question]
        for title, sentences in self._parts():
            lines += ["", title]
            lines += [line for sentence in sentences for line in _wrapped(sentence)]
        return "\n".join(lines)

    def _parts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.time:
            yield "Time", self.time
        for window in self.windows[:_MOST]:
            yield window.title, window.sentences
        if len(self.windows) > _MOST:
            yield f"and {len(self.windows) - _MOST:,} more windows", ("Ask with at= or window= for one of them.",)
        if self.rows:
            yield "Rows", self.rows

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain values, times in ms."""
        plain = {name: value for name, value in vars(self).items() if name not in ("windows", "late", "fired")}
        plain |= {"time": list(self.time), "rows": list(self.rows)}
        plain["windows"] = [window.to_dict() for window in self.windows]
        for name in ("late", "fired"):
            told = getattr(self, name)
            plain[name] = None if told is None else [_plain(one) for one in told]
        return plain

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        parts = []
        for title, sentences in self._parts():
            lines = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
            parts.append(f"<p><b>{html.escape(title)}</b></p><ul>{lines}</ul>")
        return f"<div><p><code>{html.escape(self.question)}</code></p>{''.join(parts)}</div>"


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence, _WIDE, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _plain(decision: Late | Fired) -> dict[str, Any]:
    told = {name: getattr(decision, name) for name in decision.__slots__}
    moved = told.get("moved")
    if moved is not None:
        told["moved"] = {name: getattr(moved, name) for name in moved.__slots__}
    return told
