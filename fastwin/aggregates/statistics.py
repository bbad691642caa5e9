"""Variance and standard deviation, the shape of a distribution, and how two columns go together."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input, number_of
from fastwin.columns.decoding import decoded_type
from fastwin.columns.expressions import Operand
from fastwin.columns.values import Reading
from fastwin.core.accumulators import moments
from fastwin.core.accumulators.basic import Accumulator
from fastwin.errors import SpecError

__all__ = ["Corr", "Covar", "Kurtosis", "Skewness", "StdDev", "Variance"]


def check_ddof(name: str, ddof: int) -> None:
    """Raises SpecError for what ddof cannot be."""
    if isinstance(ddof, bool) or not isinstance(ddof, int) or not 0 <= ddof < 2**31:
        raise SpecError(f"{name}: ddof must be an int of at least 0, got {ddof!r}")


@dataclass(frozen=True)
class _OfMoments(Aggregate):
    takes: ClassVar[str] = "an int (of any width), float or decimal column"

    def _reading(self, kind: pa.DataType, column: Operand | None = None) -> Reading:
        """Returns how a column is read: exactly, or where it does not fit into int64 as the nearest float64."""
        number = number_of(kind)
        if number is None and not (pa.types.is_decimal(decoded_type(kind)) or decoded_type(kind) == pa.uint64()):
            raise self._refusal(kind, column)
        return number or "number"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return tuple((column, self._reading(kind, column)) for column, kind in zip(self.columns, kinds, strict=True))

    def _dtype(self, kind: pa.DataType) -> Literal["int64", "float64"]:
        return "int64" if self._reading(kind) == "int64" else "float64"

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.float64()


@dataclass(frozen=True)
class Variance(_OfMoments):
    """The variance, float64, with Welford's and Chan's formulas: values far from zero cost no accuracy.

    ddof: what the number of values is lessened by in the denominator: 1, the default, estimates the variance of what
        the values are a sample of, as SQL's VARIANCE and polars do; 0 takes them for the whole, as numpy does. Over no
        more values than that the result is null.

    Integers up to int64 and floats are exact on the way in; a decimal or uint64 counts as the nearest float64. The
    relative error is within about n * 1e-16 over n values, mostly far less.
    """

    ddof: int = 1
    root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ddof(self.name, self.ddof)

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return moments.Variance(self._dtype(kinds[0]), at[0], self.ddof, self.root)


@dataclass(frozen=True)
class StdDev(Variance):
    """The standard deviation, float64: the square root of the Variance with the same ``ddof``."""

    root: ClassVar[bool] = True


@dataclass(frozen=True)
class _Shape(_OfMoments):
    fourth: ClassVar[bool]

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return moments.Shape(self._dtype(kinds[0]), at[0], self.fourth)


@dataclass(frozen=True)
class Skewness(_Shape):
    """How lopsided the values are, float64: the third standardized moment, of the values taken for the whole.

    As Spark's ``skewness`` and scipy's ``skew``; null over no value, and where all values are the same. Moments are
    kept as differences to the first value and merged with Pebay's formulas (2008): values far from zero cost no
    accuracy. The error is within about n * 1e-15 of the third moment of the differences' sizes, over n values.

    >>> import pyarrow as pa, fastwin as fw
    >>> day = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    >>> table = pa.table({"ts": [1, 2, 3, 4, 5], "x": [1, 1, 1, 1, 6], "y": [2, 2, 2, 2, -8]})
    >>> spec = day.aggregate(skew=fw.Skewness("x"), tails=fw.Kurtosis("x"), corr=fw.Corr("x", "y"))
    >>> [round(value, 12) for value in spec.run(table).main.select(["skew", "tails", "corr"]).to_pylist()[0].values()]
    [1.5, 0.25, -1.0]
    """

    fourth: ClassVar[bool] = False


@dataclass(frozen=True)
class Kurtosis(_Shape):
    """How heavy the tails are, float64: the fourth standardized moment less 3, which is 0 for a normal distribution.

    As Spark's ``kurtosis`` and scipy's. Method, error and nulls as of Skewness, for the fourth moment.
    """

    fourth: ClassVar[bool] = True


@dataclass(frozen=True)
class _OfTwo(_OfMoments):
    other: Operand | None = None
    takes: ClassVar[str] = "int (of any width), float or decimal columns"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._take("other")

    @property
    def columns(self) -> tuple[Operand, ...]:
        assert self.column is not None
        assert self.other is not None
        return self.column, self.other

    def _kernel(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], ddof: int, scaled: bool) -> Accumulator:
        return moments.Comoment(self._dtype(kinds[0]), at[0], self._dtype(kinds[1]), at[1], ddof, scaled)


@dataclass(frozen=True)
class Covar(_OfTwo):
    """``Covar(column, other)``: the covariance of two columns, float64. Elements that lack one of both are passed over.

    ddof: as of Variance: 1 is SQL's COVAR_SAMP, 0 COVAR_POP. Over no more pairs than that the result is null.

    Method and error as of Variance, relative to the product of both standard deviations (Pebay 2008).
    """

    ddof: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ddof(self.name, self.ddof)

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return self._kernel(kinds, at, self.ddof, False)


@dataclass(frozen=True)
class Corr(_OfTwo):
    """``Corr(column, other)``: Pearson's correlation of two columns, float64, from -1 to 1.

    Elements that lack one of both are passed over. It is null over no pair, and where one of the columns has one value
    alone. Method and error as of Covar.
    """

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return self._kernel(kinds, at, 0, True)
