"""Replica: a stream of which several copies live, in processes that hand each other its input and its changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastwin.errors import StateError
from fastwin.run.guard import alone
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.run.stream import Stream
from fastwin.run.why.answer import why
from fastwin.run.why.report import WhyReport
from fastwin.run.why.timetext import TimeText
from fastwin.state.refresh import Refresh

__all__ = ["Replica", "open_replica"]


class Replica(Stream):
    """A stream that also takes elements as partial results, and the changes that another copy of it has made."""

    @alone
    def merge(self, partials: list[bytes]) -> Result:
        """Takes partial results of elements that a feeder has made; see ``Plan.new_feeder``.

        They count as one batch of elements without order. Raises StateError for chunks that are none, or of another
        spec; the stream is of no use then, and every call but restore() is refused.
        """
        operator = self._planned("merge")
        try:
            main, late = operator.merge(partials)
        except BaseException as problem:
            self._fail(problem)
            raise
        operator.counters.num_late_records_dropped += late
        return self._result(main, [], [])

    @alone
    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk.

        refresh: which unchanged rows to repeat, for a log that forgets its oldest deltas.
        """
        return self._planned("delta").delta(refresh)

    @alone
    def catch_up(self, deltas: list[bytes]) -> None:
        """Takes the deltas of a stream that went on from this one's state, and with them its watermark.

        A fresh stream takes all deltas from a fresh one's first. Raises StateError as restore() does; the state is
        of no use then, and every call but restore() is refused.
        """
        operator = self._planned("catch_up")
        try:
            operator.apply(deltas)
        except BaseException as problem:
            self._fail(problem)
            if isinstance(problem, StateError | MemoryError) or not isinstance(problem, Exception):
                raise
            raise StateError(f"catch_up: the state makes no sense: {problem}") from problem
        self._take_times(operator)

    @alone
    def why_as_of(
        self, watermark: int, said_of_time: tuple[str, ...], time_text: TimeText, key: Any, at: Any, window: Any
    ) -> WhyReport:
        """Answers as ``why`` does, for a stream whose watermark is known to be at least so far, ms.

        said_of_time: what the report says of the watermark. time_text: how it shows times.
        """
        operator = self._planned("why")
        assert self._plan is not None
        subject = replace(
            self._subject(self._plan, operator),
            watermark=max(watermark, self.watermark),
            said_of_time=said_of_time,
            time_text=time_text,
        )
        return why(subject, key, at, window)


def open_replica(plan: Plan, *, coalesce: bool = False) -> Replica:
    """Opens a replica for a plan. coalesce: what holds where the spec leaves it open."""
    return Replica(plan.spec, plan=plan, coalesce=coalesce)
