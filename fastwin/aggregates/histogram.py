"""How many values lie between each two of some edges."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input, number_of
from fastwin.columns.buffers import from_values
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators import histogram
from fastwin.core.accumulators.basic import Accumulator
from fastwin.errors import SpecError

__all__ = ["Histogram"]

_MOST_EDGES = 1_000


@dataclass(frozen=True)
class Histogram(Aggregate):
    """``Histogram(column, edges)``: how many values there are below, between and above some edges; a list of int64.

    edges: numbers, ascending, from 1 to 1,000. Of n edges the result has n + 1 counts, so that no value is lost: the
        first is of values below the first edge, the last of values from the last edge on, and the others of values
        from one edge up to, without, the next. NaN is above all edges.

    Over no value all counts are 0. State is eight bytes for each count. A value costs O(log n).

    >>> import pyarrow as pa, fastwin as fw
    >>> day = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    >>> table = pa.table({"ts": [1, 2, 3, 4], "ms": [3, 10, 12, 250]})
    >>> day.aggregate(latency=fw.Histogram("ms", [10, 100])).run(table).main["latency"].to_pylist()
    [[1, 2, 1]]
    """

    edges: Sequence[float] = ()
    takes: ClassVar[str] = "an int (of any width), float or decimal column"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "edges", _checked(self.edges))

    def _told(self) -> list[str]:
        return [*super()._told(), repr(list(self.edges))]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        kind, number = decoded_type(kinds[0]), number_of(kinds[0])
        if number is None and not (pa.types.is_decimal(kind) or kind == pa.uint64()):
            raise self._refusal(kinds[0])
        for edge in self.edges if number == "int64" else ():
            if not -(2**63) <= edge < 2**63:
                raise SpecError(f"{self.name}: edges must lie in int64, as column {self.column!r} does, got {edge!r}")
        return ((self.columns[0], number or "number"),)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.list_(pa.int64())

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        number = number_of(kinds[0])
        if number is None:  # both values and edges count as the nearest float64
            return histogram.Histogram("float64", at[0], np.array(self.edges, dtype=np.float64))
        # A number is at or above an edge if it is at or above the next one of its kind: exact, whatever the edge is.
        above: Callable[[float], float] = math.ceil if number == "int64" else _next_float
        return histogram.Histogram(number, at[0], np.array([above(edge) for edge in self.edges], dtype=number))

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        """Returns results, bytes of int64, as lists."""
        counts = from_values(result[1].view(np.int64), None, pa.int64())
        return pa.ListArray.from_arrays(pa.array((result[0] // 8).astype(np.int32)), counts)


def _next_float(edge: float) -> float:
    """Returns the smallest float64 that is not below an edge, which may be an int that float64 does not hold."""
    found = float(edge)
    return math.nextafter(found, math.inf) if found < edge else found


def _checked(edges: Any) -> tuple[float, ...]:
    """Returns edges as plain numbers. Raises SpecError for what cannot be edges."""
    told = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if not isinstance(told, list | tuple | range) or not 1 <= len(told) <= _MOST_EDGES:
        raise SpecError(f"Histogram: edges must be a list of 1 to {_MOST_EDGES:,} numbers, got {edges!r}")
    for edge in told:
        if isinstance(edge, bool) or not isinstance(edge, int | float) or not abs(edge) <= sys.float_info.max:
            raise SpecError(f"Histogram: edges must be finite numbers, got {edge!r}")
    for low, high in pairwise(told):
        if not low < high:
            raise SpecError(f"Histogram: edges must ascend, got {high!r} behind {low!r}")
    return tuple(told)
