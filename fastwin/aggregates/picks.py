"""One value picked from a column: the first or last in time, or the one at the extreme of another column."""

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from fastwin.aggregates.aggregate import (
    ARRIVALS,
    EVENT_TIMES,
    ROWS,
    TOLD_IF_SET,
    Aggregate,
    Input,
    given_back,
    kept_as,
    stored_type,
)
from fastwin.columns.expressions import Operand
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.accumulators.picks import Pick
from fastwin.errors import SpecError

__all__ = ["ArgMax", "ArgMin", "First", "FirstArrived", "Last", "LastArrived"]


@dataclass(frozen=True)
class _InOrder(Aggregate):
    ignore_nulls: bool = field(default=True, kw_only=True, metadata=TOLD_IF_SET)
    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates, times, lists or structs"
    last: ClassVar[bool]
    order: ClassVar[Input] = EVENT_TIMES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.ignore_nulls, bool):
            raise SpecError(f"{self.name}: ignore_nulls must be True or False, got {self.ignore_nulls!r}")

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        value = (self.columns[0], kept_as(self, self.columns[0], kinds[0])[0])
        return (value, self.order) if self.ignore_nulls else (value, self.order, ROWS)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return given_back(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        time, arrival = (at[1], -1) if self.order == EVENT_TIMES else (-1, at[1])
        rows = -1 if self.ignore_nulls else at[2]
        _, stored = kept_as(self, self.columns[0], kinds[0])
        return Pick(stored, at[0], time, last=self.last, arrival=arrival, rows=rows)


@dataclass(frozen=True)
class First(_InOrder):
    """The value of the element that is first in event time (ms), of the column's own type.

    Of elements at the same time, the one that arrived first.

    ignore_nulls: True, the default, passes over elements without a value; False takes them: the result is null where
        the first element has no value, as SQL's FIRST_VALUE with RESPECT NULLS.
    """

    last: ClassVar[bool] = False


@dataclass(frozen=True)
class Last(_InOrder):
    """The value of the element that is last in event time (ms), of the column's own type.

    Of elements at the same time, the one that arrived last. ignore_nulls: as of First.
    """

    last: ClassVar[bool] = True


@dataclass(frozen=True)
class FirstArrived(_InOrder):
    """The value of the element that arrived first, whatever its time, of the column's own type; Flink's FIRST_VALUE.

    Elements arrive in the order of the rows that a stream or a run is given; on Spark those of a micro-batch in the
    order of its tasks. ignore_nulls: as of First.

    >>> import pyarrow as pa, fastwin as fw
    >>> day = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    >>> table = pa.table({"ts": [3, 1, 2], "v": [None, 7, 8]})
    >>> spec = day.aggregate(a=fw.FirstArrived("v"), b=fw.FirstArrived("v", ignore_nulls=False), c=fw.LastArrived("v"))
    >>> spec.run(table).main.select(["a", "b", "c"]).to_pylist()
    [{'a': 7, 'b': None, 'c': 8}]
    """

    last: ClassVar[bool] = False
    order: ClassVar[Input] = ARRIVALS


@dataclass(frozen=True)
class LastArrived(_InOrder):
    """The value of the element that arrived last, whatever its time, of the column's own type; Flink's LAST_VALUE.

    Otherwise as FirstArrived.
    """

    last: ClassVar[bool] = True
    order: ClassVar[Input] = ARRIVALS


@dataclass(frozen=True)
class _AtExtreme(Aggregate):
    by: Operand | None = None
    takes: ClassVar[str] = "a column of values, lists and structs too, and one of values that can be compared"
    largest: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._take("by")

    @property
    def columns(self) -> tuple[Operand, ...]:
        assert self.column is not None
        assert self.by is not None
        return self.column, self.by

    def _told(self) -> list[str]:
        return [repr(self.column), f"by={self.by!r}"]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        stored_type(self, self.columns[1], kinds[1])
        reading, _ = kept_as(self, self.columns[0], kinds[0])
        return ((self.columns[0], reading), EVENT_TIMES, (self.columns[1], "sortable"))

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return given_back(kinds[0])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        _, value = kept_as(self, self.columns[0], kinds[0])
        by = stored_type(self, self.columns[1], kinds[1])
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
