"""The planner: a spec and an input's schema to the fastest operator that means the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin import batches
from fastwin.arrowbuffers import roomy_type
from fastwin.assigners import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from fastwin.duration import Duration, format_ms
from fastwin.errors import SpecError
from fastwin.keycodec import KeyCodec
from fastwin.operators.aligned import AlignedOperator
from fastwin.operators.base import Batch, Config, Operator, ResultColumn
from fastwin.operators.session import SessionOperator
from fastwin.operators.slicing import Slicing
from fastwin.spec import WindowSpec

if TYPE_CHECKING:
    from fastwin.local import Stream

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """A spec bound to an input schema: which operator runs it, what it reads and what it returns.

    operator: ``"aligned"`` or ``"session"``. input_schema: the columns it reads, all of the input's if late or
    bad rows are handed out; dictionaries have an index of at least 32 bits. dtypes: for each column that
    aggregates read, its name and number type.
    """

    spec: WindowSpec
    operator: str
    why: str
    input_schema: pa.Schema
    config: Config
    dtypes: tuple[tuple[str, str | None], ...]

    @property
    def input_columns(self) -> list[str]:
        """Names of the columns that the operator reads."""
        return self.input_schema.names

    @property
    def main_schema(self) -> pa.Schema:
        """Schema of ``result.main``."""
        return self.config.main_schema

    @property
    def late_schema(self) -> pa.Schema | None:
        """Schema of ``result.late``; None if the spec does not hand late rows out."""
        return self.input_schema if self.spec.late_output else None

    @property
    def bad_schema(self) -> pa.Schema | None:
        """Schema of ``result.bad``; None if the spec does not divert bad rows."""
        return batches.bad_schema(self.input_schema) if self.spec.bad_row_policy == "divert" else None

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that tell the spec in the state."""
        return self.config.fingerprint

    def explain(self) -> str:
        """Says which operator runs, and why."""
        return f"{self.spec}\n  operator: {self.operator}, because {self.why}"

    def new_operator(self, coalesce: bool) -> Operator:
        """Returns a fresh operator. coalesce: what holds where the spec leaves it open."""
        chosen = coalesce if self.spec.coalesce is None else self.spec.coalesce
        config = replace(self.config, coalesce=chosen)
        assigner = self.spec.assigner
        match assigner:
            case TumblingEventTimeWindows():
                return AlignedOperator(config, Slicing(assigner.size_ms, assigner.size_ms, assigner.offset_ms))
            case SlidingEventTimeWindows():
                return AlignedOperator(config, Slicing(assigner.size_ms, assigner.slide_ms, assigner.offset_ms))
            case EventTimeSessionWindows():
                return SessionOperator(config, assigner.gap_ms)
        raise SpecError(f"window: no operator runs {assigner!r}")

    def batch(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> Batch:
        """Returns checked rows, with their times in ms (int64[n]), as the operator takes them."""
        columns = [batches.value_column(rows.column(name), dtype) for name, dtype in self.dtypes]
        return Batch(batches.encode_keys(rows, self.config.codec), times, columns)

    def open(self, *, coalesce: bool | None = None, max_future_skew: Duration | None = None) -> Stream:
        """Opens a stream for this plan; coalesce: what holds where the spec leaves it open, None: False."""
        from fastwin import local

        return local.Stream(self.spec, plan=self, coalesce=bool(coalesce), max_future_skew=max_future_skew)


def plan(spec: WindowSpec, schema: pa.Schema) -> Plan:
    """Binds a spec to the schema of its input.

    Raises SpecError if the spec is incomplete, if a column is missing or named twice, or if its type does
    not suit.
    """
    spec.check_complete()
    if not isinstance(schema, pa.Schema):
        raise SpecError(f"schema: must be a pyarrow.Schema, got {type(schema).__name__}")
    assert spec.time_column is not None
    kinds = {name: _kind_of(schema, name, "key_by") for name in spec.keys}
    batches.check_time_type(spec.time_column, _kind_of(schema, spec.time_column, "event_time"))
    results: list[ResultColumn] = []
    dtypes: dict[str, str | None] = {}
    for name, aggregate in spec.aggregates:
        kind = None
        if aggregate.column is not None:
            kind = _kind_of(schema, aggregate.column, f"aggregate {name}={aggregate}")
            dtypes[aggregate.column] = aggregate.dtype(kind) or dtypes.get(aggregate.column)
        index = -1 if aggregate.column is None else list(dtypes).index(aggregate.column)
        results.append(ResultColumn(name, aggregate, kind, index))
    hands_rows_out = spec.late_output or spec.bad_row_policy == "divert"
    if hands_rows_out:
        duplicates = {name for name in schema.names if schema.names.count(name) > 1}
        if duplicates:
            raise SpecError(f"input: columns named twice: {', '.join(sorted(duplicates))}")
        if spec.bad_row_policy == "divert" and batches.BAD_REASON in schema.names:
            raise SpecError(
                f"bad_rows: result.bad adds the column {batches.BAD_REASON!r}, which the input has; rename it"
            )
    names = schema.names if hands_rows_out else list(dict.fromkeys([*spec.keys, spec.time_column, *dtypes]))
    fields = [schema.field(name) for name in names]
    input_schema = pa.schema([field.with_type(roomy_type(field.type)) for field in fields])
    codec = KeyCodec(tuple(pa.field(name, kind) for name, kind in kinds.items()))
    text = batches.schema_to_text(input_schema)
    config = Config(codec, tuple(results), spec.lateness_ms, False, spec.fingerprint, str(spec), text)
    operator, why = _choose(spec)
    return Plan(spec, operator, why, input_schema, config, tuple(dtypes.items()))


def _kind_of(schema: pa.Schema, name: str, argument: str) -> pa.DataType:
    count = schema.names.count(name)
    if count == 0:
        raise SpecError(f"{argument}: there is no column {name!r}; the input has {', '.join(schema.names) or 'none'}")
    if count > 1:
        raise SpecError(f"{argument}: the input has {count} columns named {name!r}")
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) and argument.startswith("aggregate") else kind


def _choose(spec: WindowSpec) -> tuple[str, str]:
    match spec.assigner:
        case TumblingEventTimeWindows():
            return "aligned", "windows are aligned to the clock, the trigger is the default one, aggregates merge"
        case SlidingEventTimeWindows(size_ms=size, slide_ms=slide):
            per_slide = 2 if size > slide and size % slide else 1
            return "aligned", (
                f"windows are aligned to the clock and share slices: {per_slide} for each slide of {format_ms(slide)}, "
                f"and an element updates one of them instead of {max(size // slide, 1)} windows"
            )
        case EventTimeSessionWindows():
            return "session", "sessions have a fixed gap, the trigger is the default one, aggregates merge"
    raise SpecError(f"window: no operator runs {spec.assigner!r}")
