"""PaneState: what an aggregate keeps of a pane, as a result that can be merged with that of other panes."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input
from fastwin.columns.decoding import decoded_type
from fastwin.columns.expressions import Operand
from fastwin.core.accumulators.basic import Accumulator

__all__ = ["PaneState", "kinds_in"]


@dataclass(frozen=True)
class PaneState(Aggregate):
    """The state of another aggregate, of a fast operator's own form.

    The result is a struct: ``state``, bytes, and ``of``, which is always null and has the types of the columns that
    the other one reads.
    """

    inner: Aggregate | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        assert self.inner is not None
        object.__setattr__(self, "where", self.inner.where)

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def _inner(self) -> Aggregate:
        assert self.inner is not None
        return self.inner

    @property
    def columns(self) -> tuple[Operand, ...]:
        return self._inner.columns

    def __str__(self) -> str:
        return str(self.inner)

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        return self._inner.inputs(*kinds)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        of = pa.struct([(f"column{i}", decoded_type(kind)) for i, kind in enumerate(kinds)])
        return pa.struct([("state", pa.binary()), ("of", of)])

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        inner = self._inner
        if getattr(inner, "on_overflow", "null") != "null":  # what does not fit in a pane may fit in a window
            inner = replace(inner, on_overflow="null")  # type: ignore[call-arg]
        return inner.accumulator(kinds, at)

    def shared(self) -> Hashable:
        return None

    def of_states(self, states: pa.Array, kind: pa.DataType) -> pa.Array:
        """Returns states, a binary column, as a column of results of type ``kind``."""
        of = pa.nulls(len(states), kind.field("of").type)
        return pa.StructArray.from_arrays([states, of], fields=list(kind))


def kinds_in(kind: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """Returns the types of the columns of which a result of type ``kind`` holds the state; None if it holds none."""
    if not pa.types.is_struct(kind) or [part.name for part in kind] != ["state", "of"]:
        return None
    of = kind.field("of").type
    return tuple(part.type for part in of) if pa.types.is_struct(of) else None
