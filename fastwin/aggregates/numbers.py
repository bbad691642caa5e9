"""Counts, sums and means."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from fastwin.aggregates.aggregate import ROWS, TOLD_IF_SET, Aggregate, Input
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators import basic
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.accumulators.decimals import DecimalTotal
from fastwin.core.bags.bag import DistinctSum, Listed
from fastwin.errors import SpecError

__all__ = ["Count", "Mean", "Sum"]


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(decoded_type(kind)))


def _wider(kind: pa.DataType, digits: int, more_scale: int = 0) -> pa.DataType:
    """Returns the type of decimals of so many more digits, of those behind the point, as far as they go."""
    kind = decoded_type(kind)
    make, most = (pa.decimal256, 76) if kind.bit_width == 256 else (pa.decimal128, 38)
    return make(min(kind.precision + digits, most), min(kind.scale + more_scale, most))


def _decimal_total(result: pa.DataType, at: int, shift: int, aggregate: "Sum | Mean") -> Accumulator:
    width = result.bit_width // 8
    return DecimalTotal("text", at, width, result.precision, shift, aggregate.on_overflow, str(aggregate))


def _is_unsigned(kind: pa.DataType) -> bool:
    return bool(decoded_type(kind) == pa.uint64())


def check_on_overflow(name: str, on_overflow: str) -> None:
    """Raises SpecError for what on_overflow cannot be."""
    if on_overflow not in ("raise", "null"):
        raise SpecError(f"{name}: on_overflow must be 'raise' or 'null', got {on_overflow!r}")


@dataclass(frozen=True)
class Count(Aggregate):
    """``Count()`` counts rows, ``Count(column)`` the values that are not null. int64."""

    def __post_init__(self) -> None:
        if self.column is not None:
            super().__post_init__()
        else:
            self._take_where()

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        if self.column is None:
            return () if self.where is None else (ROWS,)
        return ((self.column, "valid"),)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.int64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return basic.Count("int64", at[0] if at else -1)


@dataclass(frozen=True)
class _Total(Aggregate):
    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return ((self.columns[0], "decimal"),) if _is_decimal(kinds[0]) else super().inputs(*kinds)

    def _number(self, kind: pa.DataType) -> Literal["int64", "float64"]:
        return "int64" if self._counts_as_int(decoded_type(kind)) else super()._number(kind)

    def _counts_as_int(self, kind: pa.DataType) -> bool:
        """Whether values that are no numbers, or that int64 does not hold, are added all the same."""
        return bool(pa.types.is_boolean(kind))


@dataclass(frozen=True)
class Sum(_Total):
    """The sum: int64 for integers, float64 for floats, for decimals ten digits more than they have, at most 38.

    Of uint64 it is uint64, of durations a duration of the same unit, of booleans how many are true, int64; of
    decimal256 a decimal256 of at most 76 digits.

    Integers are summed in 128 bits, decimals in 192 or 320. on_overflow: what a sum outside int64 (or uint64), or of
    more digits than the result has, does: ``"raise"`` AggregateOverflowError or give ``"null"``. Floats carry their
    rounding error along, and a sum may leave the range of float64 and come back.

    distinct: adds each value once, however often it occurs; a window keeps them then, as for CountDistinct.
    """

    distinct: bool = field(default=False, metadata=TOLD_IF_SET, kw_only=True)
    on_overflow: Literal["raise", "null"] = "raise"
    takes: ClassVar[str] = "an int, float, boolean, duration or decimal column"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_on_overflow(self.name, self.on_overflow)
        if not isinstance(self.distinct, bool):
            raise SpecError(f"Sum: distinct must be True or False, got {self.distinct!r}")

    def _told(self) -> list[str]:
        return [*super()._told(), "distinct=True"] if self.distinct else super()._told()

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        found = super().inputs(*kinds)
        # As CountDistinct reads them, so that both can share what they keep.
        return ((found[0][0], "sortable"),) if self.distinct and found[0][1] != "decimal" else found

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        kind = decoded_type(kinds[0])
        if _is_decimal(kind):
            return _wider(kind, 10)
        if pa.types.is_floating(kind):
            return pa.float64()
        return kind if kind == pa.uint64() or pa.types.is_duration(kind) else pa.int64()

    def _counts_as_int(self, kind: pa.DataType) -> bool:
        return bool(kind == pa.uint64() or pa.types.is_boolean(kind) or pa.types.is_duration(kind))

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        decimals = _is_decimal(kinds[0])
        if self.distinct:
            return Listed("text", at[0], "hashed") if decimals else self._distinct(kinds[0], at[0])
        if decimals:
            return _decimal_total(self.result_type(*kinds), at[0], -1, self)
        return basic.Sum(self._number(kinds[0]), at[0], self.on_overflow, str(self), _is_unsigned(kinds[0]))

    def _distinct(self, kind: pa.DataType, at: int, owner: Any = None) -> Accumulator:
        return DistinctSum(self._number(kind), at, self.on_overflow, str(self), owner, _is_unsigned(kind))

    def shared(self) -> str | None:
        return "distinct" if self.distinct else None

    def reader(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], owner: Any) -> Accumulator:
        if _is_decimal(kinds[0]):
            return self.accumulator(kinds, at)
        return self._distinct(kinds[0], at[0], owner)

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        if len(result) != 4:
            return super().to_arrow(result, kind)
        # Distinct decimals, in lists: these are added up.
        offsets, _, values, data = result
        total = basic.AccumulatorSet([_decimal_total(kind, 0, -1, self)])
        rows, n = total.new_rows(), len(offsets) - 1
        slots = rows.fresh(np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int64))
        total.add_rows(rows, np.repeat(slots, np.diff(offsets)), [(values, data, None)])
        return super().to_arrow(total.results(rows, slots)[0], kind)


@dataclass(frozen=True)
class Mean(_Total):
    """The mean: exact sum over count. float64; of booleans the share that is true; of decimals a decimal with four
    more digits, behind the point, at most 38 in all (of decimal256 76), halves rounded away from zero, as in Spark.

    Of integers it is the float64 nearest to the exact mean. on_overflow: what a decimal mean of more digits than the
    result has does: ``"raise"`` AggregateOverflowError or give ``"null"``.
    """

    takes: ClassVar[str] = "an int (uint64 excepted), float, boolean or decimal column"
    # Not told of state: what is kept of a window is the same.
    on_overflow: Literal["raise", "null"] = field(default="raise", metadata={"describe": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_on_overflow(self.name, self.on_overflow)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return _wider(kinds[0], 4, 4) if _is_decimal(kinds[0]) else pa.float64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        if _is_decimal(kinds[0]):
            result = self.result_type(*kinds)
            shift = result.scale - decoded_type(kinds[0]).scale
            return _decimal_total(result, at[0], shift, self)
        return basic.Mean(self._number(kinds[0]), at[0])
