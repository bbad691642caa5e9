"""The aggregates a spec names: which column they read, what they return, and the kernel that computes them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from fastwin.core import accumulators
from fastwin.errors import SpecError

__all__ = ["Aggregate", "Count", "Max", "Mean", "Min", "Sum"]


def _dtype_of(kind: pa.DataType) -> Literal["int64", "float64"] | None:
    """The kernel's number type for values of an Arrow type; None for those that are no numbers."""
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "int64"
    if pa.types.is_floating(kind):
        return "float64"
    return None


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


@dataclass(frozen=True)
class Aggregate:
    """One result column, computed from one input column. Use its subclasses.

    column: name of the column to read. Null values are skipped, as SQL does; over no value the
        result is null (a count: 0).
    """

    column: str | None = None
    takes: ClassVar[str] = "an int (uint64 excepted) or float column"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SpecError(f"{self.name}: column must be the name of a column, got {self.column!r}")

    @property
    def name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.name}({self.column!r})" if self.column else f"{self.name}()"

    def dtype(self, kind: pa.DataType) -> Literal["int64", "float64"] | None:
        """Returns the kernel's number type for an input of type ``kind``.

        Raises SpecError if the aggregate cannot take such a column.
        """
        return self._number(kind)

    def _number(self, kind: pa.DataType | None) -> Literal["int64", "float64"]:
        dtype = _dtype_of(kind)
        if dtype is None:
            raise SpecError(f"{self}: takes {self.takes}, but column {self.column!r} is {kind}")
        return dtype

    def result_type(self, kind: pa.DataType | None) -> pa.DataType:
        """Returns the type of the result for an input of type ``kind`` (None: no column)."""
        raise NotImplementedError

    def accumulator(self, kind: pa.DataType | None, index: int) -> accumulators.Accumulator:
        """Returns a fresh kernel that reads column number ``index``, which has type ``kind``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Count(Aggregate):
    """``Count()`` counts rows, ``Count(column)`` the values that are not null. int64."""

    def __post_init__(self) -> None:
        if self.column is not None:
            super().__post_init__()

    def dtype(self, kind: pa.DataType) -> None:
        return None

    def result_type(self, kind: pa.DataType | None) -> pa.DataType:
        return pa.int64()

    def accumulator(self, kind: pa.DataType | None, index: int) -> accumulators.Accumulator:
        return accumulators.Count("int64", index)


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum: int64 for integers, float64 for floats.

    Integers are summed in 128 bits. on_overflow: what a sum outside int64 does, ``"raise"``
    AggregateOverflowError or give ``"null"``. Floats carry their rounding error along.
    """

    on_overflow: Literal["raise", "null"] = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_overflow not in ("raise", "null"):
            raise SpecError(f"Sum: on_overflow must be 'raise' or 'null', got {self.on_overflow!r}")

    def result_type(self, kind: pa.DataType | None) -> pa.DataType:
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def accumulator(self, kind: pa.DataType | None, index: int) -> accumulators.Accumulator:
        return accumulators.Sum(self._number(kind), index, self.on_overflow, str(self))


@dataclass(frozen=True)
class _Extreme(Aggregate):
    takes: ClassVar[str] = "an int (uint64 excepted), float, date, time or timestamp column"
    kernel: ClassVar[Any]

    def dtype(self, kind: pa.DataType) -> Literal["int64", "float64"] | None:
        return "int64" if _is_time(kind) else super().dtype(kind)

    def result_type(self, kind: pa.DataType | None) -> pa.DataType:
        assert kind is not None
        return kind

    def accumulator(self, kind: pa.DataType | None, index: int) -> accumulators.Accumulator:
        return self.kernel(self.dtype(kind), index)


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value, of the column's own type; NaN only where all values are NaN."""

    kernel: ClassVar[Any] = accumulators.Min


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value, of the column's own type; NaN is above all others, as in Spark."""

    kernel: ClassVar[Any] = accumulators.Max


@dataclass(frozen=True)
class Mean(Aggregate):
    """The mean, float64: exact sum over count."""

    def result_type(self, kind: pa.DataType | None) -> pa.DataType:
        return pa.float64()

    def accumulator(self, kind: pa.DataType | None, index: int) -> accumulators.Accumulator:
        return accumulators.Mean(self._number(kind), index)
