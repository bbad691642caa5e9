"""Values as lists: the largest and smallest ones, all of them, the distinct ones, and text put together."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.aggregates.aggregate import EVENT_TIMES, Input, given_back, kept_as
from fastwin.aggregates.bags import ValuesKept, check_count, lists_of
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.bags.bag import Listed
from fastwin.errors import SpecError

__all__ = ["Collect", "CollectSet", "Largest", "Smallest", "StringAgg"]


@dataclass(frozen=True)
class _List(ValuesKept):
    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.list_(decoded_type(kinds[0]))

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        return lists_of(result, kind)


@dataclass(frozen=True)
class _Ends(_List):
    n: int | None = None
    largest: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.name, "n", self.n)

    def _told(self) -> list[str]:
        return [*super()._told(), str(self.n)]

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Listed(self._stored(kinds), at[0], "all", self.n, self.largest)


@dataclass(frozen=True)
class Largest(_Ends):
    """``Largest(column, n)``: the n largest values, the largest first, as a list; equal ones as often as they occur.

    The order is that of Max: NaN is above all other floats, text goes by its bytes; -0.0 comes as 0.0. Over no value
    the list is empty. A window keeps up to 2 n values. Adding is O(log n), amortised, and O(1) for a value that is not
    among the n largest so far.
    """

    largest: ClassVar[bool] = True


@dataclass(frozen=True)
class Smallest(_Ends):
    """``Smallest(column, n)``: the n smallest values, the smallest first; otherwise as Largest."""

    largest: ClassVar[bool] = False


@dataclass(frozen=True)
class _Limited(_List):
    limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit is not None:
            check_count(self.name, "limit", self.limit)

    def _told(self) -> list[str]:
        return super()._told() if self.limit is None else [*super()._told(), f"limit={self.limit}"]


@dataclass(frozen=True)
class Collect(_Limited):
    """All values as a list, in order of event time (ms), and of arrival where that is the same. Nulls are left out.

    limit: only so many of the first. Over no value the list is empty. Values may be lists and structs. A window keeps
    all values, or up to twice the limit, with 16 bytes more for each. Adding is O(1) for elements in order of time,
    else O(log n), amortised.

    >>> import pyarrow as pa, fastwin as fw
    >>> spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute"))
    >>> table = pa.table({"ts": [2, 1, 3], "page": ["cart", "home", "paid"]})
    >>> spec.aggregate(path=fw.Collect("page")).run(table).main["path"].to_pylist()
    [['home', 'cart', 'paid']]
    """

    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates, times, lists or structs"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        reading, _ = kept_as(self, self.columns[0], kinds[0])
        return ((self.columns[0], "packed" if reading == "packed" else "sortable"), EVENT_TIMES)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.list_(given_back(kinds[0]))

    def _stored(self, kinds: tuple[pa.DataType, ...]) -> Any:
        return kept_as(self, self.columns[0], kinds[0])[1]

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Listed(self._stored(kinds), at[0], "elements", self.limit, time=at[1])


@dataclass(frozen=True)
class CollectSet(_Limited):
    """The distinct values as a list, the smallest first; text goes by its bytes. Nulls are left out.

    limit: only so many of the smallest. Over no value the list is empty. A window keeps each distinct value once or
    twice, or up to twice the limit. Adding is O(log n), amortised.
    """

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Listed(self._stored(kinds), at[0], "distinct", self.limit)


@dataclass(frozen=True)
class StringAgg(Collect):
    """The texts of a column put together, in the order of Collect, with a separator in between; over no value null.

    limit: only so many of the first texts.
    """

    takes: ClassVar[str] = "a column of text; cast others to string"
    separator: str = ","
    limit: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.separator, str):
            raise SpecError(f"StringAgg: separator must be a text, got {self.separator!r}")

    def _told(self) -> list[str]:
        column, *rest = super()._told()
        return [column, repr(self.separator), *rest]

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        kind = decoded_type(kinds[0])
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise self._refusal(kinds[0])
        return super().inputs(*kinds)

    def _hint(self, kind: pa.DataType) -> str:
        return ""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        texts = lists_of(result, pa.list_(kind))
        joined: Any = pc.binary_join(texts, pa.scalar(self.separator, kind))
        return pc.if_else(pc.equal(pc.list_value_length(texts), 0), pa.scalar(None, kind), joined)
