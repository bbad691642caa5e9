"""Inputs: what all aggregates of a spec are fed with; of a batch, each column and each condition is read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import truths
from fastwin.columns.decoding import decoded
from fastwin.columns.expressions import Computed, Operand, columns_read, compute
from fastwin.columns.values import Reading, ValueColumn, value_column

__all__ = ["Inputs", "Source"]


class Source(NamedTuple):
    """What a kernel is fed with: a column, how it is read, and the condition under which its values count.

    column: "" for what is none of the columns, such as event times. where: None: all values count. Where the condition
    is not true, a value is null.
    """

    column: Operand
    reading: Reading
    where: Operand | None = None


@dataclass(frozen=True)
class Inputs:
    """The sources of a spec, each once, and the names of the columns that they are made of."""

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    computed_from: tuple[str, ...] = ()
    """Those of the names that expressions read."""

    @classmethod
    def of(cls, sources: Iterable[Source], schema: pa.Schema) -> Inputs:
        """Returns the inputs for rows of a schema, against which all sources have been checked."""
        sources = tuple(sources)
        operands = [operand for one in sources for operand in (one.column, one.where) if operand]
        read = {one: columns_read(one, schema) for one in operands if isinstance(one, Computed)}
        names = [name for one in operands for name in ([one] if isinstance(one, str) else read[one])]
        computed_from = [name for found in read.values() for name in found]
        return cls(sources, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(computed_from)))

    @cached_property
    def computed(self) -> tuple[Computed, ...]:
        """The expressions, each once."""
        operands = (operand for one in self.sources for operand in (one.column, one.where))
        return tuple(dict.fromkeys(one for one in operands if isinstance(one, Computed)))

    @cached_property
    def arrival(self) -> int | None:
        """Which of the sources is that of arrivals, if there is one."""
        return next((i for i, one in enumerate(self.sources) if one.reading == "arrival"), None)

    @cached_property
    def _conditions(self) -> tuple[Operand, ...]:
        return tuple(dict.fromkeys(one.where for one in self.sources if one.where is not None))

    @cached_property
    def _plain(self) -> bool:
        """Whether sources are columns and event times alone."""
        others = any(one.reading in ("rows", "arrival") for one in self.sources)
        return not (self.computed or self._conditions or others)

    def read(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> list[ValueColumn]:
        """Returns what kernels are fed with, of rows and their times in ms (int64[n]), in the order of the sources."""
        if self._plain:
            return [
                (times, None) if reading == "time" else value_column(rows.column(column), reading)
                for column, reading, _ in self.sources
            ]
        made = dict(zip(self.computed, compute(self.computed, rows, self.computed_from), strict=True))

        def array(operand: Operand) -> pa.Array:
            return made[operand] if isinstance(operand, Computed) else rows.column(operand)

        marks = {where: truths(decoded(array(where))) for where in self._conditions}
        values: dict[tuple[Operand, Reading], ValueColumn] = {}
        found = []
        for column, reading, where in self.sources:
            if (column, reading) not in values:
                values[column, reading] = (
                    _not_of_columns(reading, times) if column == "" else value_column(array(column), reading)
                )
            found.append(_masked(values[column, reading], None if where is None else marks[where]))
        return found


def _not_of_columns(reading: Reading, times: NDArray[np.int64]) -> ValueColumn:
    if reading == "arrival":
        return np.arange(len(times), dtype=np.int64), None
    return times if reading == "time" else None, None


def _masked(column: ValueColumn, marks: NDArray[np.bool_] | None) -> ValueColumn:
    """Returns a column in which only marked values are not null."""
    if marks is None:
        return column
    return (*column[:-1], marks if column[-1] is None else column[-1] & marks)
