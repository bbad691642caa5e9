"""How many distinct values a column has."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input
from fastwin.aggregates.bags import ValuesKept
from fastwin.columns.values import can_hash
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.bags.bag import Distinct
from fastwin.core.sketches import hyperloglog
from fastwin.errors import SpecError

__all__ = ["CountDistinct", "HyperLogLog"]


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

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return hyperloglog.HyperLogLog("int64", at[0], self.output)


@dataclass(frozen=True)
class CountDistinct(ValuesKept):
    """How many distinct values a column has, exactly; int64, over no value 0. NaN is one value, and -0.0 is 0.0.

    A window keeps each distinct value, of numbers 8 to 16 bytes, of text its bytes and 24 to 48 more; HyperLogLog keeps
    at most 16 KiB. Adding is O(log distinct), amortised; two windows are merged in one pass over their values.
    ``Sum(column, distinct=True)`` shares the state, but not of decimals.
    """

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.int64()

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Distinct(self._stored(kinds), at[0])

    def shared(self) -> str:
        return "distinct"

    def reader(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], owner: Any) -> Accumulator:
        return Distinct(self._stored(kinds), at[0], owner)
