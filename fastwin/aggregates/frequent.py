"""The most frequent values of a column."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fastwin.aggregates.bags import ValuesKept, check_count, lists_of
from fastwin.columns.decoding import decoded_type
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.bags.bag import Ranked

__all__ = ["Mode", "TopK"]


@dataclass(frozen=True)
class _Frequent(ValuesKept):
    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        return Ranked(self._stored(kinds), at[0], self._ranks)

    def shared(self) -> str:
        return "counts"

    def reader(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...], owner: Any) -> Accumulator:
        return Ranked(self._stored(kinds), at[0], self._ranks, owner)

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        return lists_of(result, kind)

    @property
    def _ranks(self) -> int:
        """How many values are given."""
        return 1


@dataclass(frozen=True)
class TopK(_Frequent):
    """``TopK(column, k)``: the k most frequent values and how often each occurs, as a list of structs ``value`` and
    ``count`` (int64), the most frequent first.

    The counts are exact: the error is 0, whatever the order of the elements and the division into partial results. Of
    equally frequent values the smaller one comes first; text goes by its bytes. Nulls are left out. Over no value the
    list is empty.

    A window keeps each distinct value, of numbers 16 to 32 bytes. Adding is O(log distinct), amortised; a result is
    O(distinct log k). Several of a column, Mode too, share their state.

    >>> import pyarrow as pa, fastwin as fw
    >>> spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute"))
    >>> table = pa.table({"ts": [1, 2, 3, 4], "page": ["home", "cart", "home", "help"]})
    >>> spec.aggregate(top=fw.TopK("page", 2)).run(table).main["top"].to_pylist()
    [[{'value': 'home', 'count': 2}, {'value': 'cart', 'count': 1}]]
    """

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.name, "k", self.k)

    def _told(self) -> list[str]:
        return [*super()._told(), str(self.k)]

    @property
    def _ranks(self) -> int:
        assert self.k is not None
        return self.k

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.list_(pa.struct([("value", decoded_type(kinds[0])), ("count", pa.int64())]))


@dataclass(frozen=True)
class Mode(_Frequent):
    """The most frequent value, of the column's own type; of equally frequent ones the smallest. It is the first of
    TopK, exact as that one; over no value null."""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return decoded_type(kinds[0])
