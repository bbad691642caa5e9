"""Aggregate: a result column that a spec names; which columns it reads, its type, and the kernel that computes it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import from_int64, from_text, from_values
from fastwin.columns.decoding import decoded_type, taken_type
from fastwin.columns.expressions import Operand, as_operand
from fastwin.columns.packed import can_pack, unpacked
from fastwin.columns.values import Reading, Stored, stored_as
from fastwin.core.accumulators.basic import Accumulator
from fastwin.errors import SpecError

__all__ = [
    "ARRIVALS",
    "EVENT_TIMES",
    "ROWS",
    "TOLD_IF_SET",
    "Aggregate",
    "Input",
    "given_back",
    "kept_as",
    "number_of",
    "stored_type",
]

Input = tuple[Operand, Reading]
"""A column, and how it is read; "" for what is none of the columns."""

EVENT_TIMES: Input = ("", "time")
"""The event times of the elements."""

ARRIVALS: Input = ("", "arrival")
"""Numbers that tell in which order the elements have arrived, over all batches."""

ROWS: Input = ("", "rows")
"""No values, only which elements count: all, or those for which the condition is true."""

TOLD_IF_SET: Final = {"describe": "if set"}
"""Metadata of a field that was added later: state and fingerprints do not tell it where it has its default."""


def number_of(kind: pa.DataType) -> Literal["int64", "float64"] | None:
    """Returns the kernel's number type for values of an Arrow type; None for those that are no numbers."""
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "int64"
    if pa.types.is_floating(kind):
        return "float64"
    return None


@dataclass(frozen=True)
class Aggregate:
    """One result column, computed from input columns. Use its subclasses.

    column: name of the column to read, or a ``pyarrow.compute`` Expression of columns, such as
        ``pc.field("price") * pc.field("sold")``, which is computed once for each batch, for all aggregates that have
        it. Null values are skipped, as SQL does; over no value the result is null (a count: 0).
    where: which elements count: the name of a boolean column, or an Expression such as ``pc.field("price") > 9``; null
        counts as false. None: all elements.

    Raises SpecError for another column or condition; whether they suit the input is told when that is known.

    >>> import pyarrow as pa, pyarrow.compute as pc, fastwin as fw
    >>> day = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    >>> spec = day.aggregate(n=fw.Count(where="paid"), total=fw.Sum(pc.field("price") * pc.field("sold"), where="paid"))
    >>> table = pa.table({"ts": [1, 2, 3], "price": [5, 7, 9], "sold": [2, 3, 1], "paid": [True, None, True]})
    >>> spec.run(table).main.select(["n", "total"]).to_pylist()
    [{'n': 2, 'total': 19}]
    """

    column: Operand | None = None
    where: Operand | None = field(default=None, kw_only=True, metadata=TOLD_IF_SET)
    takes: ClassVar[str] = "an int (uint64 excepted) or float column"

    def __post_init__(self) -> None:
        self._take("column")
        self._take_where()

    def _take(self, argument: str) -> None:
        """Makes an argument the name of a column, or an expression. Raises SpecError for other things."""
        object.__setattr__(self, argument, as_operand(getattr(self, argument), f"{self.name}: {argument}"))

    def _take_where(self) -> None:
        if self.where is not None:
            what = "the name of a boolean column"
            object.__setattr__(self, "where", as_operand(self.where, f"{self.name}: where", what))

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def columns(self) -> tuple[Operand, ...]:
        """The columns it reads, beside its condition."""
        return () if self.column is None else (self.column,)

    def __str__(self) -> str:
        told = self._told()
        return f"{self.name}({', '.join(told if self.where is None else [*told, f'where={self.where!r}'])})"

    def _told(self) -> list[str]:
        """Returns its arguments as errors tell them, without the condition."""
        return [repr(column) for column in self.columns]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        """Returns what the kernel is fed with, for columns of these types.

        Where there is a condition, values of elements that do not count are null; a kernel that needs to tell them
        from nulls asks for ROWS beside them. Raises SpecError if the aggregate cannot take such columns.
        """
        return ((self.columns[0], self._number(kinds[0])),)

    def _number(self, kind: pa.DataType) -> Literal["int64", "float64"]:
        number = number_of(kind)
        if number is None:
            raise self._refusal(kind)
        return number

    def _refusal(self, kind: pa.DataType, column: Operand | None = None) -> SpecError:
        column = self.column if column is None else column
        if pa.types.is_null(kind):
            told = "has only nulls, of no type; cast it, or give its type in open(schema=...)"
            return SpecError(f"{self}: takes {self.takes}, but column {column!r} {told}")
        hint = self._hint(decoded_type(kind))
        return SpecError(f"{self}: takes {self.takes}, but column {column!r} is {kind}{hint and f'; {hint}'}")

    def _hint(self, kind: pa.DataType) -> str:
        """Returns what to do about a column of a type that is refused, in words; "" where nothing helps."""
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            return "cast it to int64 or float64"
        return "cast it to int64" if pa.types.is_duration(kind) else ""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        """Returns the type of the result for columns of these types."""
        raise NotImplementedError

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        """Returns a fresh kernel. at: where its inputs are among those of the whole spec."""
        raise NotImplementedError

    def shared(self) -> Hashable:
        """Returns a name for what the kernel keeps: others of that name with the same inputs can read it. None: no one
        can."""
        return None

    def reader(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], owner: Accumulator) -> Accumulator:
        """Returns a kernel that reads what that of another aggregate of the same ``shared()`` and inputs keeps."""
        raise NotImplementedError

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        """Returns results of the kernel, see ``AccumulatorSet.results``, as a column of type ``kind``."""
        found, valid = result[0], result[-1]
        if pa.types.is_nested(kind):
            return unpacked(found, result[1], valid, kind)
        if len(result) == 3:
            return from_text(found, result[1], valid, kind)
        if pa.types.is_floating(kind):
            return from_values(found.astype(f"f{kind.bit_width // 8}", copy=False), valid, kind)
        return from_int64(found.view(np.int64), valid, kind)


def stored_type(aggregate: Aggregate, column: Operand, kind: pa.DataType) -> Stored:
    """Returns as what the kernels keep values of a column; raises SpecError for those that they cannot keep."""
    stored = stored_as(kind)
    if stored is None:
        raise SpecError(f"{aggregate}: takes {aggregate.takes}, but column {column!r} is {kind}")
    return stored


def kept_as(aggregate: Aggregate, column: Operand, kind: pa.DataType) -> tuple[Reading, Stored]:
    """Returns how values are read that are only kept and given back, and as what: those of lists and structs as bytes.

    Raises SpecError for those that cannot be kept.
    """
    if can_pack(taken_type(kind)):
        return "packed", "text"
    stored = stored_type(aggregate, column, kind)
    return stored, stored


def given_back(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which kept values of a type are given back."""
    return taken_type(kind) if pa.types.is_nested(kind) else decoded_type(kind)
