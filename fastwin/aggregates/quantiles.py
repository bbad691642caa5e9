"""Quantiles and medians, within a relative error."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.bags import quantile
from fastwin.errors import SpecError

__all__ = ["Median", "Quantile"]


@dataclass(frozen=True)
class Quantile(Aggregate):
    """The value below which a share ``q`` of all values lies, as float64, within a relative error.

    Of n values in order it is the one at place floor(q * (n - 1)), counted from 0: q=0 is the smallest, q=1 the
    largest, and these two are exact. Others differ from the true one by at most ``relative_error`` times its size. The
    result depends on no order of the elements, and on no division into partial results.

    q: from 0 to 1. relative_error: from 0.00001 to below 1.

    NaN is above all other values, as in Max; infinities are what they are; numbers nearer to zero than 2.3e-308 count
    as zero. Takes integers, floats and decimals. Several quantiles of a column with the same error share their state.

    A window keeps counts by bucket, at most 32 bytes for each, or about 300 for few: values that span a factor of ten
    fall into 2.3 / (2 * relative_error) buckets, 115 at 1 %. Adding is O(1) where values lie close together, else
    O(log buckets), and two windows are merged in O(buckets), all amortised.

    >>> import pyarrow as pa, fastwin as fw
    >>> spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute"))
    >>> table = pa.table({"ts": range(1_000), "ms": range(1_000)})
    >>> p99 = spec.aggregate(p99=fw.Quantile("ms", 0.99)).run(table).main["p99"][0].as_py()
    >>> abs(p99 - 989) <= 0.01 * 989
    True
    """

    q: float = 0.5
    relative_error: float = 0.01
    takes: ClassVar[str] = "a column of integers, floats or decimals"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _is_number(self.q) or not 0 <= self.q <= 1:
            hint = (
                "; give each an aggregate of its own: they share one sketch" if isinstance(self.q, list | tuple) else ""
            )
            raise SpecError(f"{self.name}: q must be a number from 0 to 1, got {self.q!r}{hint}")
        if not _is_number(self.relative_error) or not 0.00001 <= self.relative_error < 1:
            raise SpecError(
                f"{self.name}: relative_error must be a number from 0.00001 to below 1, got {self.relative_error!r}"
            )
        object.__setattr__(self, "q", float(self.q))
        object.__setattr__(self, "relative_error", float(self.relative_error))

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        kind = decoded_type(kinds[0])
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise self._refusal(kinds[0])
        return ((self.columns[0], "float64" if pa.types.is_floating(kind) else "number"),)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.float64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return quantile.Quantile("float64", at[0], self.q, self.relative_error)

    def shared(self) -> tuple[str, float]:
        return "quantile", self.relative_error

    def reader(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], owner: Any) -> Accumulator:
        return quantile.Quantile("float64", at[0], self.q, self.relative_error, owner)

    def _told(self) -> list[str]:
        return [*super()._told(), repr(self.q)]


@dataclass(frozen=True)
class Median(Quantile):
    """The value in the middle, within a relative error: the Quantile at 0.5. Of two in the middle, the smaller one."""

    q: float = field(default=0.5, init=False)

    def _told(self) -> list[str]:
        return super()._told()[:1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
