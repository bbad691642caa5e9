"""The aggregates a spec names: which columns they read, what they return, and the kernel that computes them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from fastwin.arrowbuffers import decoded_type
from fastwin.core import accumulators, hyperloglog
from fastwin.core.decimals import DecimalTotal
from fastwin.core.picks import Pick
from fastwin.core.variance import Variance as VarianceKernel
from fastwin.errors import SpecError
from fastwin.valuecolumns import Reading, can_hash, stored_as

__all__ = [
    "Aggregate",
    "ArgMax",
    "ArgMin",
    "Count",
    "First",
    "HyperLogLog",
    "Input",
    "Last",
    "Max",
    "Mean",
    "Min",
    "StdDev",
    "Sum",
    "Variance",
]

Input = tuple[str, Reading]
"""A column by name, and how it is read; the name is "" for the event times."""

_TIMES: Input = ("", "time")


def _number_of(kind: pa.DataType) -> Literal["int64", "float64"] | None:
    """The kernel's number type for values of an Arrow type; None for those that are no numbers."""
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "int64"
    if pa.types.is_floating(kind):
        return "float64"
    return None


def _ordered_number(kind: pa.DataType) -> Literal["int64", "float64"] | None:
    """The same for types whose values are at least stored as numbers, and in the order of these."""
    temporal = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return "int64" if temporal else _number_of(kind)


def _is_decimal(kind: pa.DataType) -> bool:
    """Whether values are decimals of up to 38 digits, also in a dictionary."""
    kind = decoded_type(kind)
    return pa.types.is_decimal(kind) and kind.bit_width <= 128


@dataclass(frozen=True)
class Aggregate:
    """One result column, computed from input columns. Use its subclasses.

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

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns it reads."""
        return () if self.column is None else (self.column,)

    def __str__(self) -> str:
        return f"{self.name}({self.column!r})" if self.column else f"{self.name}()"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        """Returns what the kernel is fed with, for columns of these types.

        Raises SpecError if the aggregate cannot take such columns.
        """
        return ((self.columns[0], self._number(kinds[0])),)

    def _number(self, kind: pa.DataType) -> Literal["int64", "float64"]:
        number = _number_of(kind)
        if number is None:
            raise self._refusal(kind)
        return number

    def _refusal(self, kind: pa.DataType) -> SpecError:
        hint = "; cast it to int64 or float64" if pa.types.is_integer(kind) or pa.types.is_decimal(kind) else ""
        return SpecError(f"{self}: takes {self.takes}, but column {self.column!r} is {kind}{hint}")

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        """Returns the type of the result for columns of these types."""
        raise NotImplementedError

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        """Returns a fresh kernel. at: where its inputs are among those of the whole spec."""
        raise NotImplementedError


@dataclass(frozen=True)
class Count(Aggregate):
    """``Count()`` counts rows, ``Count(column)`` the values that are not null. int64."""

    def __post_init__(self) -> None:
        if self.column is not None:
            super().__post_init__()

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return tuple((column, "valid") for column in self.columns)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.int64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        return accumulators.Count("int64", at[0] if at else -1)


@dataclass(frozen=True)
class _Total(Aggregate):
    takes: ClassVar[str] = "an int (uint64 excepted), float or decimal (of up to 38 digits) column"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return ((self.columns[0], "decimal"),) if _is_decimal(kinds[0]) else super().inputs(*kinds)


@dataclass(frozen=True)
class Sum(_Total):
    """The sum: int64 for integers, float64 for floats, for decimals ten digits more than they have, at most 38.

    Integers are summed in 128 bits, decimals in 192. on_overflow: what a sum outside int64, or of more digits than the
    result has, does: ``"raise"`` AggregateOverflowError or give ``"null"``. Floats carry their rounding error along.
    """

    on_overflow: Literal["raise", "null"] = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_overflow not in ("raise", "null"):
            raise SpecError(f"Sum: on_overflow must be 'raise' or 'null', got {self.on_overflow!r}")

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        kind = decoded_type(kinds[0])
        if _is_decimal(kind):
            return pa.decimal128(min(kind.precision + 10, 38), kind.scale)
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        if _is_decimal(kinds[0]):
            return DecimalTotal("text", at[0], self.result_type(*kinds).precision, -1, self.on_overflow, str(self))
        return accumulators.Sum(self._number(kinds[0]), at[0], self.on_overflow, str(self))


@dataclass(frozen=True)
class _Extreme(Aggregate):
    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates or times"
    kernel: ClassVar[Any]
    largest: ClassVar[bool]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        number = _ordered_number(kinds[0])
        if number is not None:
            return ((self.columns[0], number),)
        # What is no number is picked by itself.
        return ((self.columns[0], _stored(self, self.columns[0], kinds[0])), _TIMES, (self.columns[0], "sortable"))

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        number = _ordered_number(kinds[0])
        if number is not None:
            return self.kernel(number, at[0])
        stored = _stored(self, self.columns[0], kinds[0])
        return Pick(stored, at[0], at[1], stored, at[2], self.largest)


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value, of the column's own type; NaN only where all values are NaN. Text goes by its bytes."""

    kernel: ClassVar[Any] = accumulators.Min
    largest: ClassVar[bool] = False


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value, of the column's own type; NaN is above all others, as in Spark. Text goes by its bytes."""

    kernel: ClassVar[Any] = accumulators.Max
    largest: ClassVar[bool] = True


@dataclass(frozen=True)
class Mean(_Total):
    """The mean: exact sum over count. float64; of decimals a decimal with four more digits, behind the point, at most
    38 in all, halves rounded away from zero, as in Spark. One of more digits raises AggregateOverflowError.
    """

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        kind = decoded_type(kinds[0])
        if _is_decimal(kind):
            return pa.decimal128(min(kind.precision + 4, 38), min(kind.scale + 4, 38))
        return pa.float64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        if _is_decimal(kinds[0]):
            result = self.result_type(*kinds)
            shift = result.scale - decoded_type(kinds[0]).scale
            return DecimalTotal("text", at[0], result.precision, shift, "raise", str(self))
        return accumulators.Mean(self._number(kinds[0]), at[0])


@dataclass(frozen=True)
class HyperLogLog(Aggregate):
    """How many distinct values a column has, about: the standard error is 0.81 %.

    Registers, hash and estimate are those of Redis: the estimate is what PFCOUNT gives after PFADD of the same
    values. What of a value is hashed, ``fastwin.hyperloglog`` says.

    output: ``"estimate"``, int64, over no value 0; or ``"sketch"``, the string that Redis keeps under a key (binary),
        which ``SET`` hands to Redis and ``fastwin.hyperloglog`` reads.
    """

    output: Literal["estimate", "sketch"] = "estimate"
    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates or times"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output not in ("estimate", "sketch"):
            raise SpecError(f"HyperLogLog: output must be 'estimate' or 'sketch', got {self.output!r}")

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        if not can_hash(kinds[0]):
            raise self._refusal(kinds[0])
        return ((self.columns[0], "hash"),)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.int64() if self.output == "estimate" else pa.binary()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        return hyperloglog.HyperLogLog("int64", at[0], self.output)


@dataclass(frozen=True)
class Variance(Aggregate):
    """The variance, float64, with Welford's and Chan's formulas: values far from zero cost no accuracy.

    ddof: what the number of values is lessened by in the denominator: 1, the default, estimates the variance of what
        the values are a sample of, as SQL's VARIANCE and polars do; 0 takes them for the whole, as numpy does. Over no
        more values than that the result is null.
    """

    ddof: int = 1
    root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.ddof, bool) or not isinstance(self.ddof, int) or not 0 <= self.ddof < 2**31:
            raise SpecError(f"{self.name}: ddof must be an int of at least 0, got {self.ddof!r}")

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.float64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        return VarianceKernel(self._number(kinds[0]), at[0], self.ddof, self.root)


@dataclass(frozen=True)
class StdDev(Variance):
    """The standard deviation, float64: the square root of the Variance with the same ``ddof``."""

    root: ClassVar[bool] = True


@dataclass(frozen=True)
class _InTime(Aggregate):
    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates or times"
    last: ClassVar[bool]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return ((self.columns[0], _stored(self, self.columns[0], kinds[0])), _TIMES)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        return Pick(_stored(self, self.columns[0], kinds[0]), at[0], at[1], last=self.last)


@dataclass(frozen=True)
class First(_InTime):
    """The value of the element that is first in event time (ms), of the column's own type.

    Of elements at the same time, the one that arrived first. Elements without a value are passed over.
    """

    last: ClassVar[bool] = False


@dataclass(frozen=True)
class Last(_InTime):
    """The value of the element that is last in event time (ms), of the column's own type.

    Of elements at the same time, the one that arrived last. Elements without a value are passed over.
    """

    last: ClassVar[bool] = True


@dataclass(frozen=True)
class _AtExtreme(Aggregate):
    by: str | None = None
    takes: ClassVar[str] = "columns of numbers, text, bytes, booleans, dates or times"
    largest: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.by, str) or not self.by:
            raise SpecError(f"{self.name}: by must be the name of a column, got {self.by!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        assert self.column is not None
        assert self.by is not None
        return self.column, self.by

    def __str__(self) -> str:
        return f"{self.name}({self.column!r}, by={self.by!r})"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        value, _ = (_stored(self, column, kind) for column, kind in zip(self.columns, kinds, strict=True))
        return ((self.columns[0], value), _TIMES, (self.columns[1], "sortable"))

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> accumulators.Accumulator:
        value, by = (_stored(self, column, kind) for column, kind in zip(self.columns, kinds, strict=True))
        return Pick(value, at[0], at[1], by, at[2], self.largest)


@dataclass(frozen=True)
class ArgMin(_AtExtreme):
    """``ArgMin(column, by)``: the value of ``column`` where ``by`` is smallest, of the column's own type.

    Of equal ones, the first in event time, and of those the first to arrive. Elements that lack one of both are passed
    over. ``by`` may be of any type that can be compared: text and bytes are by their bytes, NaN is above all others.
    """

    largest: ClassVar[bool] = False


@dataclass(frozen=True)
class ArgMax(_AtExtreme):
    """``ArgMax(column, by)``: the value of ``column`` where ``by`` is largest; otherwise as ArgMin."""

    largest: ClassVar[bool] = True


def _stored(aggregate: Aggregate, column: str, kind: pa.DataType) -> Literal["int64", "float64", "text"]:
    stored = stored_as(kind)
    if stored is None:
        raise SpecError(f"{aggregate}: takes {aggregate.takes}, but column {column!r} is {kind}")
    return stored
