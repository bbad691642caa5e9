"""Who holds Spark's watermark back: the input whose own watermark is the least, by what the micro-batches have told."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_glue.stages.counters import INPUT_DELAYS, INPUT_TIMES

__all__ = ["Holder", "Holders", "inputs_of"]

Frames = Mapping[str, Mapping[str, int | None]]  # the counters of a micro-batch, by the names of its frames


@dataclass(frozen=True)
class Holder:
    """An input that holds time back: which one of a frame, from 0 on."""

    frame: str
    input: int


def inputs_of(frames: Frames) -> dict[Holder, int]:
    """Returns the inputs whose watermark Spark makes, with the delay of each, ms."""
    found = {}
    for name, counted in frames.items():
        for number, key in enumerate(INPUT_DELAYS):
            if delay := counted.get(key):  # 1 more than it is
                found[Holder(name, number)] = delay - 1
    return found


@dataclass
class _Run:
    """What is known of a run: each input's own watermark, and the query's when it was first seen, ms; 0: none yet.

    whole: whether it was seen from its start on.
    """

    whole: bool
    marks: dict[Holder, int] = field(default_factory=dict)
    begun: int | None = None


class Holders:
    """Keeps what the micro-batches of all runs tell, and says who holds time back.

    Spark's watermark is the least of those of all inputs of a query, and an input that has had no row since the start
    of the run has none. It forgets these when a query stops, and so does this. What is said is checked: if the
    watermark is another one than follows from the inputs that are known, there are more, and nothing is said.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def begin(self, run_id: str) -> None:
        """A run begins."""
        self._runs[run_id] = _Run(whole=True)

    def end(self, run_id: str) -> None:
        """A run has ended."""
        self._runs.pop(run_id, None)

    def take(self, run_id: str, frames: Frames, watermark: int) -> Holder | None:
        """Takes a micro-batch; returns who holds back the watermark of the next one, None where that is not known.

        watermark: of this micro-batch, ms; 0: none yet.
        """
        run, inputs = self._runs.setdefault(run_id, _Run(whole=False)), inputs_of(frames)
        first = run.begun is None
        if run.begun is None:
            run.begun = watermark
        follows = watermark == max(run.begun, min((run.marks.get(one, 0) for one in inputs), default=0))
        for one, delay in inputs.items():
            newest = frames[one.frame].get(INPUT_TIMES[one.input])
            if newest:
                run.marks[one] = max(run.marks.get(one, 0), newest - 1 - delay)
        if not follows:
            return None
        if len(inputs) == 1 == len(frames):
            return next(iter(inputs))
        if first or not (run.whole or all(one in run.marks for one in inputs)):
            return None
        return min(inputs, key=lambda one: run.marks.get(one, 0), default=None)
