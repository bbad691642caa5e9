"""What aggregates have in common that keep values: which columns they take, and columns of lists from kernels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate, Input, stored_type
from fastwin.columns.packed import unpacked
from fastwin.columns.values import from_sortable
from fastwin.errors import SpecError

__all__ = ["ValuesKept", "check_count", "lists_of"]


def check_count(name: str, argument: str, value: Any) -> None:
    """Raises SpecError unless a value is an int from 1 up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(f"{name}: {argument} must be an int of at least 1, got {value!r}")
    if value >= 2**63:
        raise SpecError(f"{name}: {argument} must be an int below 2**63, got {value!r}")


@dataclass(frozen=True)
class ValuesKept(Aggregate):
    """The base of aggregates that keep values of a column, of any type but lists, structs and maps."""

    takes: ClassVar[str] = "a column of numbers, text, bytes, booleans, dates or times"

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        self._stored(kinds)
        return ((self.columns[0], "sortable"),)

    def _stored(self, kinds: tuple[pa.DataType, ...]) -> Any:
        """As what the kernel keeps the values."""
        return stored_type(self, self.columns[0], kinds[0])


def lists_of(result: tuple, kind: pa.DataType) -> pa.Array:
    """Returns what kernels that keep values give, see ``core.bags.bag.Giving``, as a column.

    kind: a list of values; a list of structs, of a value and its count; or a value, which is the first one, or null.
    """
    offsets, counts, values, data = result
    if not pa.types.is_list(kind):
        first = np.where(offsets[1:] > offsets[:-1], offsets[:-1], -1)
        return from_sortable(values, data, kind).take(pa.array(first, mask=first < 0))
    inner = kind.value_type
    if counts is None and pa.types.is_nested(inner):
        items = unpacked(values, data, None, inner)
    elif counts is None:
        items = from_sortable(values, data, inner)
    else:
        columns = [from_sortable(values, data, inner.field(0).type), pa.array(counts)]
        items = pa.StructArray.from_arrays(columns, fields=list(inner))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=kind)
