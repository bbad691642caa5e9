"""Config: what an operator is told by the planner, and how its results and its state are laid out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.distinct import HyperLogLog
from fastwin.aggregates.panestate import PaneState
from fastwin.columns.buffers import from_values, repeated
from fastwin.columns.keys import KeyCodec
from fastwin.core.accumulators.basic import Accumulator, AccumulatorSet
from fastwin.core.accumulators.exchange import tidy_rows
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import HEAD_CELLS, RowStore
from fastwin.errors import AggregateOverflowError, UserFunctionError
from fastwin.operators.parts import parts_within
from fastwin.spec.describe import describe
from fastwin.spec.resultcolumns import BOUNDS, CHANGE, DELETE, INSERT, UPDATE, WINDOW_COLUMN
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk, encode
from fastwin.state.identity import StateAggregate, StateSpec
from fastwin.state.members import block_sizes, save_member
from fastwin.state.refresh import Refresh
from fastwin.times import MIN_TIMESTAMP

__all__ = [
    "CHANGE_FIELD",
    "DELETE",
    "INSERT",
    "TIME_TYPE",
    "UPDATE",
    "WINDOW_FIELD",
    "Config",
    "ResultColumn",
    "members_of",
]

# Of the results of an aggregate, or of the states of panes, that go into one batch.
_MOST_BYTES = 1 << 30

CHANGE_FIELD = pa.field(CHANGE, pa.string())
"""What a result does to the table that a changelog makes."""

TIME_TYPE = pa.timestamp("ms", tz="UTC")
"""Type of window bounds in results, unless the event time has another zone."""

WINDOW_FIELD = pa.field(WINDOW_COLUMN, pa.string())
"""The result column that says which of several windows a row is of."""


@dataclass(frozen=True)
class ResultColumn:
    """An aggregate in a spec: its name in the result, the types of its columns, and where its inputs are.

    at: positions among the inputs of the whole spec, see ``Plan.inputs``.
    """

    name: str
    aggregate: Aggregate
    kinds: tuple[pa.DataType, ...]
    at: tuple[int, ...]

    @cached_property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.aggregate.result_type(*self.kinds))

    def to_arrow(self, result: tuple) -> pa.Array:
        """Returns results as Arrow's; result: see AccumulatorSet.results."""
        return self.aggregate.to_arrow(result, self.field.type)

    def for_state(self, member: Accumulator) -> StateAggregate:
        """Returns what state depends on; member: its kernel."""
        kinds = ", ".join(map(str, self.kinds)) or "none"
        return StateAggregate(self.name, describe(self.aggregate), kinds, member.cells)


def members_of(results: tuple[ResultColumn, ...]) -> list[Accumulator]:
    """Returns fresh kernels for the aggregates of a spec. Those that keep the same of the same columns share cells."""
    members: list[Accumulator] = []
    owners: dict[Any, Accumulator] = {}
    for column in results:
        shared = column.aggregate.shared()
        owner = owners.get((shared, column.at))
        if owner is not None:
            members.append(column.aggregate.reader(column.kinds, column.at, owner))
            continue
        members.append(column.aggregate.accumulator(column.kinds, column.at))
        if shared is not None:
            owners[shared, column.at] = members[-1]
    return members


@dataclass(frozen=True)
class Config:
    """All that an operator is told by the planner.

    lateness_ms: how long after its end a window is kept. coalesce: whether the elements of one
    ``process`` call have no order among each other, and late firings are one per (key, window) and call.
    fingerprint: 16 bytes that tell the spec; text: the spec in words, for errors. input_schema: the
    input's columns as ``schema_to_text`` gives them, kept in the state so that it can be read alone. state:
    what the state depends on, kept in it as well. bound_type: of window bounds in results. window:
    where there are several windows, the name of those that it is for; None: there is one kind. changelog: whether
    results say what they change. columns: the schema of the main result; None: keys, window bounds and aggregates.
    """

    codec: KeyCodec
    results: tuple[ResultColumn, ...]
    lateness_ms: int
    coalesce: bool
    fingerprint: bytes
    text: str
    input_schema: str
    state: StateSpec
    bound_type: pa.DataType = TIME_TYPE
    window: str | None = None
    changelog: bool = False
    columns: pa.Schema | None = None

    def parts(self) -> dict[str, Any]:
        """Returns all that a Config is told, by name, for one that is told more."""
        return {part.name: getattr(self, part.name) for part in fields(Config)}

    def encode_state(
        self,
        kind: Literal["snapshot", "delta"],
        watermark: int,
        tables: dict[str, pa.Table],
        objects: bytes | None = None,
        newest: int = MIN_TIMESTAMP,
        *,
        chain: Chain,
        complete: bool,
        refresh: Refresh | None,
        **more: Any,
    ) -> bytes:
        """Returns the next chunk of a chain; see ``state.chunks``.

        objects: pickled user state. newest: see ``Operator``. complete: whether nothing before it is needed. refresh:
        what it repeats. more: further small values.
        """
        if newest > MIN_TIMESTAMP:
            more["newest"] = newest
        meta = self._meta(watermark) | more
        chunk = Chunk(kind, meta, tables, objects, chain.link(kind, meta, complete, refresh))
        blob = encode(chunk, self.fingerprint)
        chain.wrote(blob, chunk)
        return blob

    def encode_partial(self, tables: dict[str, pa.Table]) -> bytes:
        """Returns partial results as a chunk, which belongs to no chain."""
        return encode(Chunk("delta", self._meta(MIN_TIMESTAMP), tables), self.fingerprint)

    def _meta(self, watermark: int) -> dict[str, Any]:
        return {"watermark": watermark, "spec": self.state.to_json(), "input_schema": self.input_schema}

    @cached_property
    def main_schema(self) -> pa.Schema:
        """Schema of the main result: key columns and window bounds, and what there is beside them."""
        if self.columns is not None:
            return self.columns
        bounds = [pa.field(name, self.bound_type) for name in BOUNDS]
        named = [] if self.window is None else [WINDOW_FIELD]
        changes = [CHANGE_FIELD] if self.changelog else []
        values = [column.field for column in self.results]
        return pa.schema([*self.codec.out_fields, *named, *bounds, *values, *changes])

    @property
    def main_names(self) -> list[str]:
        """Names of the result columns."""
        return self.main_schema.names

    def new_accumulators(self, head_cells: int = HEAD_CELLS) -> AccumulatorSet:
        """Returns fresh kernels for the aggregates."""
        return AccumulatorSet(members_of(self.results), head_cells)

    def results_of_rows(
        self, keys: KeyTable, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32], ends: NDArray
    ) -> Iterator[pa.RecordBatch]:
        """Yields the result rows of fired windows, those at ``slots``, ending at ``ends`` (int64[n], ms), in order."""
        for part, values in self.values_in_parts(accumulators, rows, slots):
            some = slots[part]
            yield self.result(keys, rows.keys(some), rows.starts(some), ends[part], values)

    def result(
        self, keys: KeyTable, ids: NDArray[np.int32], starts: NDArray, ends: NDArray, values: list[pa.Array]
    ) -> pa.RecordBatch:
        """Returns result rows, from key ids, bounds of windows (int64[n], ms) and the columns of the aggregates.

        With a changelog each is the first one of its window.
        """
        return self.result_of(self.codec.decode(keys, ids), starts, ends, values)

    def result_of(self, keys: list[pa.Array], starts: NDArray, ends: NDArray, values: list[pa.Array]) -> pa.RecordBatch:
        """Returns result rows as ``result`` does, from the key columns."""
        if self.changelog:
            values = [*values, repeated(INSERT, len(starts))]
        bounds = [from_values(bound, None, self.bound_type) for bound in (starts, ends)]
        named = [] if self.window is None else [repeated(self.window, len(starts))]
        return pa.RecordBatch.from_arrays([*keys, *named, *bounds, *values], schema=self.main_schema)

    def values_of(self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> list[pa.Array]:
        """Returns the columns of the aggregates for some rows."""
        self._tidy(accumulators, rows, slots)
        return self._columns(accumulators, rows, slots, accumulators.results(rows, slots))

    def values_by_name(
        self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]
    ) -> dict[str, pa.ChunkedArray]:
        """Returns the columns of the aggregates for some rows, however long they are together, to look at.

        Null where a window that fired now would raise, as one whose sum is outside its type's range for the moment.
        """
        parts = self._parts_or_nulls(accumulators, rows, slots)
        return {
            column.name: pa.chunked_array(list(values), column.field.type)
            for column, values in zip(self.results, zip(*parts, strict=True), strict=True)
        }

    def _parts_or_nulls(
        self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]
    ) -> list[list[pa.Array]]:
        try:
            return [values for _, values in self.values_in_parts(accumulators, rows, slots)]
        except (AggregateOverflowError, UserFunctionError):
            if len(slots) <= 1:
                return [[pa.nulls(len(slots), column.field.type) for column in self.results]]
            halves = slots[: len(slots) // 2], slots[len(slots) // 2 :]
            return [part for half in halves for part in self._parts_or_nulls(accumulators, rows, half)]

    def values_in_parts(
        self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]
    ) -> Iterator[tuple[slice, list[pa.Array]]]:
        """Yields the columns of the aggregates for some rows, with which of them these are: mostly all at once.

        Text, lists and states have offsets of 32 bits, so they go in parts where they are too long together.
        """
        for part, found in self.results_in_parts(accumulators, rows, slots):
            yield part, self._columns(accumulators, rows, slots[part], found)

    def results_in_parts(
        self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]
    ) -> Iterator[tuple[slice, list[tuple]]]:
        """Yields what kernels give for some rows, in the parts of ``values_in_parts``.

        What results are made of tells how long they are before they are made, or nearly: what is still too long goes by
        halves.
        """
        waiting = [slice(0, len(slots))]
        self._tidy(accumulators, rows, slots)
        if len(slots) > 1 and self._made_of_blocks:
            waiting = self.parts_of(block_sizes(accumulators, self._made_of_blocks, rows, slots))[::-1]
        while waiting:
            part = waiting.pop()
            some = slots[part]
            found = accumulators.results(rows, some)
            if len(some) > 1 and any(
                sum(one.nbytes for one in each if one is not None) > _MOST_BYTES for each in found
            ):
                del found  # before the halves are made
                middle = part.start + len(some) // 2
                waiting += [slice(middle, part.stop), slice(part.start, middle)]
                continue
            yield part, found

    @staticmethod
    def parts_of(sizes: NDArray[np.int64]) -> list[slice]:
        """Returns which rows go into one batch each, by their bytes."""
        return list(parts_within(sizes, _MOST_BYTES))

    def _tidy(self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> None:
        """Puts rows whose states are results into the form in which these are saved, which may take more room."""
        if self._gives_states:
            tidy_rows(accumulators, rows, slots)

    @cached_property
    def _gives_states(self) -> bool:
        return any(isinstance(column.aggregate, PaneState) for column in self.results)

    @cached_property
    def _made_of_blocks(self) -> list[int]:
        """The places of aggregates whose results are what blocks of rows hold, and not only counted from that.

        Sketches are none of them: they are short in any case.
        """
        found = []
        for i, (column, kernel) in enumerate(zip(self.results, members_of(self.results), strict=True)):
            made = kernel.gives_bytes and not isinstance(column.aggregate, HyperLogLog)
            if kernel.owned and (made or isinstance(column.aggregate, PaneState)):
                found.append(i)
        return found

    def _columns(
        self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32], found: list[tuple]
    ) -> list[pa.Array]:
        values = []
        for i, (column, result) in enumerate(zip(self.results, found, strict=True)):
            if isinstance(column.aggregate, PaneState):
                states = save_member(accumulators, i, rows, slots)
                values.append(column.aggregate.of_states(states, column.field.type))
            else:
                values.append(column.to_arrow(result))
        return values
