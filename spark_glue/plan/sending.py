"""A spec on its way to Spark's workers: whether it can be sent, and can stay there."""

import io
import sys

from pyspark import cloudpickle

import fastwin as fw
from fastwin.errors import SpecError

__all__ = ["check_stays", "check_travels"]


def check_travels(spec: fw.WindowSpec | fw.JoinSpec) -> None:
    """Raises SpecError for a spec that cannot travel to Spark's workers."""
    try:
        cloudpickle.dumps(spec)
    except Exception as problem:
        raise SpecError(f"spec: it cannot be sent to Spark's workers: {type(problem).__name__}: {problem}") from problem


def check_stays(spec: fw.WindowSpec | fw.JoinSpec) -> None:
    """Raises SpecError for a spec whose functions cannot stay with a worker between micro-batches."""
    seeker = _Seeker()
    seeker.dump(spec)
    if seeker.found:
        raise SpecError(
            "spec: it holds an accumulator of Spark's, and what functions of a stream add to one is lost: they stay "
            "with their worker for many micro-batches, and Spark asks accumulators of the task at hand alone; count in "
            "the result, or in a side output"
        )


class _Seeker(cloudpickle.CloudPickler):
    """Pickles as usual, and notes whether it has met one of Spark's accumulators."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        module = sys.modules.get("pyspark.accumulators")
        self._kind = () if module is None else module.Accumulator
        self.found = False

    def persistent_id(self, met: object) -> None:
        self.found = self.found or isinstance(met, self._kind)
