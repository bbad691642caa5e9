"""Words: what a report says of windows, of time and of rows, in short sentences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from typing import Any

from fastwin import hyperloglog
from fastwin.errors import SketchError
from fastwin.operators.kept.firsts import FirstsOperator
from fastwin.run.choice import trigger_of
from fastwin.run.datawatermark import DataWatermark
from fastwin.run.planner import Plan
from fastwin.run.results import Metrics
from fastwin.run.why.journal import Fired, Journal
from fastwin.run.why.past import MOST, PastWords, element_of
from fastwin.run.why.report import WhyWindow
from fastwin.run.why.windowsat import Wanted, are_apart
from fastwin.spec.joinending import SIDES, JoinEnding, Side
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, format_ms
from fastwin.triggers import CountTrigger, NeverTrigger, PurgingTrigger
from fastwin.windows.apart import RowsApart
from fastwin.windows.timetext import TimeText, span
from fastwin.windows.timewindow import GlobalWindow, TimeWindow

__all__ = ["Words"]

_LONGEST = 120  # characters of a value


class Words(PastWords):
    """What is said about a stream. follows: None: the caller moves the watermark. cleaned: see ``Operator``."""

    def __init__(
        self,
        plan: Plan,
        time_text: TimeText,
        watermark: int,
        follows: DataWatermark | None,
        metrics: Metrics,
        cleaned: int,
    ) -> None:
        super().__init__(plan, time_text, metrics)
        self._watermark, self._follows, self._cleaned = watermark, follows, cleaned
        assert plan.spec.assigner is not None
        self._event_time = plan.spec.assigner.is_event_time()
        self._lateness = plan.spec.lateness_ms if self._event_time else 0

    # --- what was asked ---

    def question(
        self, time_text: TimeText, values: Sequence[Any], time: int | None, window: TimeWindow | GlobalWindow | None
    ) -> str:
        """Returns what was asked. time_text: with all dates."""
        spec = self._plan.spec
        key = self._named(values) or "all rows, no key"
        asked = "" if time is None else f", at {time_text.text(time)}"
        if isinstance(window, TimeWindow):
            asked = f", the window from {time_text.text(window.start)} to {time_text.text(window.end)}"
        return f"{key}{asked}, in {spec.assigner}"

    def zone(self) -> str:
        """Returns what is to be said of times in the report."""
        day = self._time_text.day
        told = "" if day is None else f"; those without a date are of {day}"
        return f"Times are in {self._time_text.zone_told}{told}."

    # --- time ---

    def time(self, newest: int | None, journal: Journal | None) -> tuple[str, ...]:
        """Returns what is to be said of watermark and clock."""
        said = []
        if self._plan.spec.time_column is not None and (self._event_time or not _counts(trigger_of(self._plan.spec))):
            said += self._of_watermark(newest)
            said += self.mover(journal)
        if self._plan.waits_for_clock:
            clock = self._metrics.processing_time
            said.append(
                f"The stream's clock is at {self._at(clock)}; only advance_processing_time() moves it."
                if clock
                else "The stream's clock has not been set; nothing fires by it before advance_processing_time()."
            )
        return tuple(said)

    def mover(self, journal: Journal | None) -> list[str]:
        """Returns what is to be said of what moved the watermark, where there is a journal."""
        return [] if journal is None or journal.moved is None else [self._mover(journal.moved)]

    def _of_watermark(self, newest: int | None) -> list[str]:
        follows, watermark = self._follows, self._watermark
        if watermark == MIN_TIMESTAMP:
            why = "no good row has come yet" if follows else "advance_watermark() has not been called"
            more = "" if follows else ", and the stream was opened without watermark=, so it does not follow the data"
            return [f"There is no watermark yet: {why}{more}."]
        if follows is None:
            return [f"The watermark is at {self._at(watermark)}; only advance_watermark() moves it."]
        behind = f"{format_ms(follows.delay_ms)} " if follows.delay_ms else "right "
        said = [f"The watermark is at {self._at(watermark)}; it follows the data, {behind}behind the newest element."]
        if newest is not None:
            said.append(f"The newest element is of {self._at(newest)}.")
            if watermark > newest - follows.delay_ms - 1:
                said.append("So something else moved it further: advance_watermark(), idle=, or a restored state.")
        return said

    # --- windows ---

    def held(
        self,
        window: WhyWindow,
        filled: bool,
        fired: bool,
        kept: dict[str, Any],
        asks: bool,
        firings: Sequence[Fired],
    ) -> tuple[str, ...]:
        """Returns what is to be said of a window that the state knows.

        kept: by its trigger. asks: see HeldWindows. firings: as the journal tells.
        """
        if self._hands_out_at_once:
            return (
                "A row of it was handed out. Other rows of this key and window are dropped.",
                *self._going(window, "This is forgotten"),
            )
        said = [self._contents(window, filled)]
        if fired and window.firings is None:
            said.append("It has fired: the watermark has passed its end.")
        elif window.firings:
            said.append(f"It has fired {_times(window.firings)}.")
        else:
            told = "" if window.firings == 0 else " since it has grown; while it was shorter, it may have"
            said.append(f"It has not fired{told}.")
        said += self._fired_before(firings, window.start, window.end)
        said += self._next_firing(window, filled, fired, kept, asks)
        shown = {name: value for name, value in kept.items() if name != "count"}
        said += [f"Its trigger keeps {_values(shown)}."] if shown else []
        said += self._going(window, "It goes")
        return tuple(said)

    @property
    def _hands_out_at_once(self) -> bool:
        return self._plan.operator_type is FirstsOperator

    def _contents(self, window: WhyWindow, filled: bool) -> str:
        if not filled:
            return "It holds nothing: its contents were purged, or no element has stayed in it."
        return f"It holds {_values(window.holds)}." if window.holds else "It holds elements."

    def _next_firing(self, window: WhyWindow, filled: bool, fired: bool, kept: dict[str, Any], asks: bool) -> list[str]:
        trigger = trigger_of(self._plan.spec)
        if window.fires_at is None:
            if "count" in kept:
                return [f"Its trigger fires {trigger}: {kept['count']} have come."]
            if fired and not self._plan.is_general:
                return [self._fires_late(window)] if self._lateness else []
            if isinstance(trigger, NeverTrigger):
                return ["Its trigger never fires."]
            if type(trigger).__str__ is object.__str__:
                return [f"Only an element makes it fire, where its trigger, {type(trigger).__qualname__}, says so."]
            return [f"Only an element makes it fire; its trigger fires {trigger}."]
        verb = "Its trigger is asked" if asks else "It fires"
        if window.fires_by == "clock":
            clock = self._metrics.processing_time
            passed = ": as soon as it moves" if window.fires_at <= clock else ""
            left = f", {span(window.fires_at - clock)} from now" if 0 < clock < window.fires_at else passed
            said = [f"{verb} when the clock reaches {self._at(window.fires_at)}{left}."]
        else:
            said = [f"{verb} when the watermark reaches {self._at(window.fires_at)}{self._missing(window.fires_at)}."]
            said += self._element_needed(window.fires_at) if window.fires_at > self._watermark else []
        if "count" in kept:
            said.append(f"It also counts elements: {kept['count']} have come.")
        if not filled:
            said.append("Without contents, that gives no result.")
        return said

    def _fires_late(self, window: WhyWindow) -> str:
        """Says which late elements fire a window that has fired and is still kept."""
        once = "once for each call" if self._plan.config.coalesce else "once more"
        closed = self._closed_to(window.end)
        if closed is None:
            return f"Each late element fires it {once}."
        return f"Each late {element_of(_other(closed))} fires it {once}; {_comes_too_late(closed)}"

    def _closed_to(self, end: int | None) -> Side:
        """Returns the input of a join whose elements come too late for a window that is kept; None: there is none."""
        ending = self._plan.spec.ending
        if end is None or not isinstance(ending, JoinEnding):
            return None
        for side, lateness in enumerate(ending.lateness):
            if end - 1 + lateness <= self._watermark:
                return SIDES[side]
        return None

    def _missing(self, watermark: int) -> str:
        if self._watermark == MIN_TIMESTAMP:
            return ", and there is none yet"
        if watermark <= self._watermark:
            return ": as soon as it moves"
        return f"; {span(watermark - self._watermark)} are missing" if watermark < MAX_TIMESTAMP else ""

    def _element_needed(self, watermark: int) -> list[str]:
        if self._follows is None:
            return []
        needed = watermark + self._follows.delay_ms + 1
        if needed > MAX_TIMESTAMP:
            return ["Only advance_watermark(fw.MAX_TIMESTAMP) brings it there."]
        return [f"An element of {self._at(needed)} or later, of any key, brings it there."]

    def _going(self, window: WhyWindow, what: str) -> list[str]:
        if window.gone_at is None:
            return ["It never goes: a global window has no end."] if what == "It goes" else []
        clock = "watermark" if self._event_time else "clock"
        if window.gone_at == window.fires_at and not self._lateness:
            return []
        late = f", {format_ms(self._lateness)} after its end ({self._whose_lateness()})" if self._lateness else ""
        return [f"{what} when the {clock} reaches {self._at(window.gone_at)}{late}."]

    def _whose_lateness(self) -> str:
        """Returns what windows are kept for, in words: of a join, the greater lateness of both inputs."""
        ending = self._plan.spec.ending
        if not isinstance(ending, JoinEnding) or ending.lateness[0] == ending.lateness[1]:
            return "allowed lateness"
        return f"allowed lateness of the {SIDES[ending.lateness[1] == self._lateness]} input"

    def absent(
        self,
        wanted: Wanted,
        near: Sequence[tuple[int | None, int | None]],
        others: Sequence[TimeWindow | GlobalWindow] | None,
        fired: Sequence[Fired],
    ) -> WhyWindow:
        """Returns what is to be said of a window that the state does not know.

        near: the bounds of sessions that have some of its time, or that an element of it would join. others: see
        ``Asked.others``. fired: as the journal tells.
        """
        window = wanted.window
        start, end = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
        gone_at = None if end is None else end - 1 + self._lateness
        now = self._watermark if self._event_time else self._metrics.processing_time
        gone = gone_at is not None and gone_at <= now
        before = end is not None and self._event_time and end - 1 <= self._cleaned
        if before and not gone:
            gone_at, gone = None, True
        if others is not None:
            said = [self._no_such_window(others)]
        elif near and wanted.is_session:
            said = [self._joined_sessions(near)]
            start = end = gone_at = None  # those of an element alone mean nothing then
        elif near:
            between = " and ".join(self._from_to(*bounds) for bounds in near[:MOST])
            said = [f"No session of this key has these bounds now. Sessions grow and merge: there is one {between}."]
        elif wanted.is_session:
            said = [self._absent_session(window, gone)]
        else:
            said = [self._absent_window(end, gone_at, gone, bool(fired))]
        title = "No session" if wanted.is_session else self.title(start, end, wanted.name)
        said += self._fired_before(fired, start, end)
        return WhyWindow(start, end, wanted.name, title, False, {}, None, None, None, gone_at, (), tuple(said))

    def _no_such_window(self, others: Sequence[TimeWindow | GlobalWindow]) -> str:
        bounds = [self._from_to(one.start, one.end) for one in others if isinstance(one, TimeWindow)]
        if others and not bounds:
            return "There is no such window: there is the global one alone."
        if not bounds:
            has = "have none that begins there"
        elif len(bounds) == 1:
            has = f"have one {bounds[0]} there"
        else:
            has = f"have {len(bounds):,} there, such as one {bounds[0]}"
        return f"There is no such window: {self._plan.spec.assigner} {has}."

    def _joined_sessions(self, sessions: Sequence[tuple[int | None, int | None]]) -> str:
        between = " and the one ".join(self._from_to(*bounds) for bounds in sessions)
        return f"No session of this key is at that time. An element at that time would join the one {between}."

    def _absent_session(self, window: TimeWindow | GlobalWindow, gone: bool) -> str:
        assert isinstance(window, TimeWindow)
        alone = self._from_to(*window)
        if gone and not self._event_time:
            return "No session of this key is at that time, or none any more: the clock has passed it."
        if gone:
            return (
                f"No session of this key is at that time, or none any more. An element at that time, alone {alone}, "
                f"would be late: the watermark has passed that."
            )
        return f"No session of this key is at that time. An element at that time would begin one, {alone}."

    def _absent_window(self, end: int | None, gone_at: int | None, gone: bool, fired: bool) -> str:
        what = ""
        if self._event_time:  # an element with other windows beside it may be in time for those
            what = (
                " An element of it would be late now."
                if are_apart(self._plan.spec.assigner)
                else " It takes no element any more."
            )
        if gone and gone_at is None:
            there = "" if fired else ", if it ever was there"
            return f"It is gone{there}: it went before a restart, when the allowed lateness was shorter.{what}"
        if gone:
            assert gone_at is not None
            clock = "watermark" if self._event_time else "clock"
            late = f" and {format_ms(self._lateness)} of allowed lateness" if self._lateness else ""
            return (
                f"It is gone{'' if fired else ', if it ever was there'}: the {clock} has passed its end{late}, at "
                f"{self._at(gone_at)}.{what}"
            )
        if self._plan.keeps_rows:
            closed = self._closed_to(end)
            if closed is None and isinstance(self._plan.spec.assigner, RowsApart):
                return (
                    f"No row of this key was handed out for it. One that is not late is handed out, unless another one "
                    f"of its key, less than {format_ms(self._plan.spec.assigner.within_ms)} away, was."
                )
            if closed is None:
                return "No row of this key is in it. One that comes now is taken."
            return f"No row of this key is in it. An {element_of(_other(closed))} is taken; {_comes_too_late(closed)}"
        if fired:
            return "No element of this key is in it now: a firing took what it held. One that comes now is taken."
        purged = ", or a firing took it" if _purges(trigger_of(self._plan.spec)) else ""
        return (
            f"No element of this key is in it: none has come that was good and in time{purged}. One that comes now is "
            f"taken."
        )

    def none_at(self, held: int) -> WhyWindow:
        """Returns what is to be said where nobody can tell which windows a time has, and no held one has it.

        held: how many windows the key has.
        """
        which = "The window" if held == 1 else f"None of the {held:,} windows"
        said = f"{which} that this key has is{' not' if held == 1 else ''} at that time." if held else "It has none."
        return WhyWindow(None, None, None, "No window", False, {}, None, None, None, None, (), (said,))

    # --- rows ---

    def key_rows(self, held: int, shown: int) -> list[str]:
        """Returns what is to be said of a key. held: how many windows it has. shown: how many of them are told of."""
        if held == 0:
            return ["This key has no window now."]
        others = held - shown
        if not others:
            return []
        return [f"This key has {others:,} other window{'s' if others > 1 else ''}; why(key) tells of each."]


def _other(side: Side) -> Side:
    return SIDES[side == SIDES[0]]


def _comes_too_late(side: Side) -> str:
    return f"one of the {side} input comes too late for it."


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count:,} times"


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_shortened(value)}" for name, value in values.items())


def _counts(trigger: Any) -> bool:
    """Whether time means nothing to a trigger."""
    inner = trigger.trigger if isinstance(trigger, PurgingTrigger) else trigger
    return isinstance(inner, CountTrigger | NeverTrigger)


def _purges(trigger: Any) -> bool:
    """Whether a trigger may empty a window that it fires."""
    return isinstance(trigger, PurgingTrigger) or not type(trigger).__module__.startswith("fastwin.")


def _shortened(value: Any) -> str:
    text = _shown(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _shown(value: Any) -> str:
    """Returns a value as text: times as they are read, floats with six digits."""
    match value:
        case float():
            return f"{value:.6g}"
        case bytes() if value.startswith(b"HYLL"):
            with suppress(SketchError):
                return f"a sketch of about {hyperloglog.estimate(value):,} values"
        case datetime() | date() | time():
            return str(value)
        case list():
            return f"[{', '.join(map(_shown, value[:MOST]))}{', ...' if len(value) > MOST else ''}]"
        case dict():
            return f"({', '.join(f'{name} = {_shown(part)}' for name, part in value.items())})"
    return repr(value)
