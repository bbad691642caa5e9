"""The smallest and the largest value of a column."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from fastwin.aggregates.aggregate import EVENT_TIMES, Aggregate, Input, number_of, stored_type
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators import basic
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.accumulators.picks import Pick

__all__ = ["Max", "Min"]


def ordered_number(kind: pa.DataType) -> Literal["int64", "float64"] | None:
    """The same for types whose values are at least stored as numbers, and in the order of these."""
    temporal = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return "int64" if temporal else number_of(kind)


@dataclass(frozen=True)
class _Extreme(Aggregate):
    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates or times"
    kernel: ClassVar[Any]
    largest: ClassVar[bool]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        number = ordered_number(kinds[0])
        if number is not None:
            return ((self.columns[0], number),)
        # What is no number is picked by itself.
        return (
            (self.columns[0], stored_type(self, self.columns[0], kinds[0])),
            EVENT_TIMES,
            (self.columns[0], "sortable"),
        )

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        number = ordered_number(kinds[0])
        if number is not None:
            return self.kernel(number, at[0])
        stored = stored_type(self, self.columns[0], kinds[0])
        return Pick(stored, at[0], at[1], stored, at[2], self.largest)


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value, of the column's own type; NaN only where all values are NaN. Text goes by its bytes."""

    kernel: ClassVar[Any] = basic.Min
    largest: ClassVar[bool] = False


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value, of the column's own type; NaN is above all others, as in Spark. Text goes by its bytes."""

    kernel: ClassVar[Any] = basic.Max
    largest: ClassVar[bool] = True
