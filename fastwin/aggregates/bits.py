"""Booleans and bits of a column, joined."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.accumulators.bitwise import Bitwise

__all__ = ["BitAnd", "BitOr", "BitXor", "BoolAnd", "BoolOr"]


@dataclass(frozen=True)
class _Joined(Aggregate):
    takes: ClassVar[str] = "a column of integers"
    operation: ClassVar[Literal["and", "or", "xor"]]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        if not self._suits(decoded_type(kinds[0])):
            raise self._refusal(kinds[0])
        return ((self.columns[0], "int64"),)

    @staticmethod
    def _suits(kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind))

    def _hint(self, kind: pa.DataType) -> str:
        castable = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind)
        return "cast it to int64" if castable or pa.types.is_boolean(kind) else ""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Bitwise("int64", at[0], self.operation)


@dataclass(frozen=True)
class _OfBooleans(_Joined):
    takes: ClassVar[str] = "a boolean column"

    @staticmethod
    def _suits(kind: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))

    def _hint(self, kind: pa.DataType) -> str:
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return "compare it, such as pyarrow.compute.field(name) != 0" if number else ""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.bool_()


@dataclass(frozen=True)
class BoolAnd(_OfBooleans):
    """Whether all values are true, as SQL's EVERY. Nulls are skipped; over no value it is null.

    >>> import pyarrow as pa, pyarrow.compute as pc, fastwin as fw
    >>> day = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    >>> spec = day.aggregate(all_paid=fw.BoolAnd("paid"), any_dear=fw.BoolOr(pc.field("price") > 8))
    >>> table = pa.table({"ts": [1, 2, 3], "paid": [True, None, False], "price": [5, 7, 9]})
    >>> spec.run(table).main.select(["all_paid", "any_dear"]).to_pylist()
    [{'all_paid': False, 'any_dear': True}]
    """

    operation: ClassVar[Literal["and", "or", "xor"]] = "and"


@dataclass(frozen=True)
class BoolOr(_OfBooleans):
    """Whether any value is true, as SQL's ANY. Nulls are skipped; over no value it is null."""

    operation: ClassVar[Literal["and", "or", "xor"]] = "or"


@dataclass(frozen=True)
class BitAnd(_Joined):
    """The bits that are set in all values, of the column's own type. Nulls are skipped."""

    operation: ClassVar[Literal["and", "or", "xor"]] = "and"


@dataclass(frozen=True)
class BitOr(_Joined):
    """The bits that are set in any value, of the column's own type. Nulls are skipped."""

    operation: ClassVar[Literal["and", "or", "xor"]] = "or"


@dataclass(frozen=True)
class BitXor(_Joined):
    """The bits that are set in an odd number of values, of the column's own type. Nulls are skipped."""

    operation: ClassVar[Literal["and", "or", "xor"]] = "xor"
