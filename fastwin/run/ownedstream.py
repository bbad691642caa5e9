"""OwnedStream: a stream that is a part of another object, which feeds it and knows more of time than it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastwin.operators.protocol import Operator
from fastwin.run.guard import alone
from fastwin.run.results import Metrics
from fastwin.run.stream import Stream
from fastwin.run.why.answer import why
from fastwin.run.why.report import WhyReport
from fastwin.state.identity import StateSpec
from fastwin.times import MIN_TIMESTAMP
from fastwin.windows.timetext import TimeText

__all__ = ["OwnedStream"]


class OwnedStream(Stream):
    """A stream with what its owner needs beside: a join, a harness, a task of Spark."""

    @property
    def operator(self) -> Operator:
        """What runs the spec. The plan must be known."""
        assert self._operator is not None
        return self._operator

    @property
    def state_spec(self) -> StateSpec:
        """What its state depends on. The plan must be known."""
        assert self._plan is not None
        return self._plan.config.state

    def refuse_if_failed(self) -> None:
        """Raises StateError after an error in the middle of a batch, until restore()."""
        self._refuse_if_failed()

    def fail(self, problem: BaseException) -> None:
        """Says that results are lost by an error of the owner's: every call but restore() is refused from now on."""
        self._fail(problem)

    def check_invariants(self) -> None:
        """Raises AssertionError where the operator's parts contradict each other. O(state)."""
        self._check_invariants()

    @alone
    def why_as_of(
        self,
        said_of_time: tuple[str, ...],
        key: Any,
        at: Any,
        window: Any,
        *,
        watermark: int = MIN_TIMESTAMP,
        time_text: TimeText | None = None,
        metrics: Metrics | None = None,
    ) -> WhyReport:
        """Answers as ``why`` does, for an owner that knows more of time.

        said_of_time: what the report says of the watermark. watermark: which one is known to be reached at least, ms.
        time_text: how the report shows times; None: as the plan says. metrics: of the owner; None: of this stream.
        """
        operator = self._planned("why")
        assert self._plan is not None
        subject = replace(
            self._subject(self._plan, operator),
            watermark=max(watermark, self.watermark),
            said_of_time=said_of_time,
            time_text=time_text,
            metrics=metrics or self.metrics,
        )
        return why(subject, key, at, window)
