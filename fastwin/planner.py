"""The planner: a spec and an input's schema to the fastest operator that means the same."""

from __future__ import annotations

import html
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin import batches
from fastwin.aggregates import Aggregate, Input
from fastwin.arrowbuffers import roomy_type
from fastwin.assigners import CumulativeEventTimeWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from fastwin.duration import Duration, format_ms
from fastwin.errors import SpecError
from fastwin.keycodec import KeyCodec
from fastwin.operators.aligned import AlignedOperator
from fastwin.operators.base import TIME_TYPE, Batch, Config, Operator, ResultColumn
from fastwin.operators.general import GeneralOperator
from fastwin.operators.generalparts import check_assigner, reads_rows, waits_for_clock
from fastwin.operators.migration import migrated
from fastwin.operators.partial import AlignedFeeder, Feeder, SessionFeeder, can_count
from fastwin.operators.program import PANE_FIELDS, GeneralConfig, Program, PythonAggregate
from fastwin.operators.session import SessionOperator
from fastwin.operators.slicing import CumulativeSlicing, Slicing, SlidingSlicing
from fastwin.sessionwindows import EventTimeSessionWindows
from fastwin.spec import WindowSpec
from fastwin.statespec import StateSpec
from fastwin.triggers import EventTimeTrigger
from fastwin.valuecolumns import value_column

if TYPE_CHECKING:
    from fastwin.local import Stream

__all__ = ["Explanation", "Plan", "choose", "columns_named", "explain", "plan", "schema_before_input"]


_ASKED = "it was asked for"


class Explanation(str):
    """Text that shows itself in a notebook as it is laid out. ``text``: the same as plain text."""

    @property
    def text(self) -> str:
        """The text."""
        return str(self)

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self.splitlines())
        lines = "".join(f"<li>{line.strip()}</li>" for line in rest)
        return f"<div><code>{first}</code><ul>{lines}</ul></div>"


@dataclass(frozen=True)
class Plan:
    """A spec bound to an input schema: which operator runs it, what it reads and what it returns.

    operator: ``"aligned"``, ``"session"`` or ``"general"``. input_schema: the columns it reads, all of the input's
    if late or bad rows are handed out or Python code sees rows; dictionaries have an index of at least 32 bits.
    inputs: for each column that aggregates are fed with, its name and how it is read. program: what the general
    operator runs.
    """

    spec: WindowSpec
    operator: str
    why: str
    input_schema: pa.Schema
    config: Config
    inputs: tuple[Input, ...]
    program: Program | None = None

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

    @property
    def side_schemas(self) -> dict[str, pa.Schema]:
        """Schemas of ``result.side`` by tag."""
        return dict(self.spec.sides)

    @property
    def waits_for_clock(self) -> bool:
        """Whether anything may wait for the processing time."""
        return self.operator == "general" and waits_for_clock(self.spec.assigner, _trigger(self.spec))

    def limits(self, limits: batches.Limits) -> batches.Limits:
        """Returns the bounds on timestamps, with those that the operator does not need left out."""
        assert self.spec.assigner is not None
        general = self.operator == "general"
        return replace(limits, any_int64=self.why == _ASKED, nulls=general and not self.spec.assigner.is_event_time())

    def explain(self) -> Explanation:
        """Says which operator runs, and why."""
        return _explained(self.spec, self.operator, self.why)

    def new_operator(self, coalesce: bool) -> Operator:
        """Returns a fresh operator. coalesce: what holds where the spec leaves it open."""
        chosen = coalesce if self.spec.coalesce is None else self.spec.coalesce
        config = replace(self.config, coalesce=chosen)
        if self.program is not None:
            return GeneralOperator(config, self.program)
        if isinstance(self.spec.assigner, EventTimeSessionWindows):
            return SessionOperator(config, self.spec.assigner.gap_ms)
        return AlignedOperator(config, self._slicing())

    def _slicing(self) -> Slicing:
        match assigner := self.spec.assigner:
            case TumblingEventTimeWindows():
                return SlidingSlicing(assigner.size_ms, assigner.size_ms, assigner.offset_ms)
            case SlidingEventTimeWindows():
                return SlidingSlicing(assigner.size_ms, assigner.slide_ms, assigner.offset_ms)
            case CumulativeEventTimeWindows():
                return CumulativeSlicing(assigner.max_size_ms, assigner.step_ms, assigner.offset_ms)
        raise SpecError(f"window: no operator runs {assigner!r}")

    def new_feeder(self, coalesce: bool, groups: int = 1, parts: int = 1) -> Feeder | None:
        """Returns what makes partial results of elements, for ``Stream.merge``; None where rows themselves are needed.

        coalesce: what holds where the spec leaves it open. groups, parts: the results are divided by their keys: key
        group ``i`` of ``groups`` is in part ``i % parts``. Rows are needed by the general operator, where late rows are
        handed out or fire one by one, and where windows leave gaps.
        """
        chosen = coalesce if self.spec.coalesce is None else self.spec.coalesce
        assigner = self.spec.assigner
        if self.program is not None or self.spec.late_output or not chosen or not can_count(self.config):
            return None
        if isinstance(assigner, EventTimeSessionWindows):
            return SessionFeeder(self.config, assigner.gap_ms, groups, parts)
        if isinstance(assigner, SlidingEventTimeWindows) and assigner.size_ms < assigner.slide_ms:
            return None
        return AlignedFeeder(self.config, self._slicing(), groups, parts)

    def batch(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> Batch:
        """Returns checked rows, with their times in ms (int64[n]), as the operator takes them."""
        columns = [
            (times, None) if reading == "time" else value_column(rows.column(name), reading)
            for name, reading in self.inputs
        ]
        elements = None
        if self.program is not None and self.program.rows is not None:
            seen = self.program.rows.names
            elements = rows if len(seen) == rows.num_columns else rows.select(seen)
        return Batch(batches.encode_keys(rows, self.config.codec), times, columns, elements)

    def times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        """Returns the times, ms, of rows that have been checked: int64[n]."""
        assert self.spec.time_column is not None
        return batches.event_times(rows.column(self.spec.time_column))[0]

    def migrated(self, chunk: bytes, migrate: str | None = None) -> bytes:
        """Returns a chunk of state as one of this spec; see ``Stream.restore``."""
        return migrated(chunk, self.config, migrate)

    def open(self, *, coalesce: bool | None = None, max_future_skew: Duration | None = None) -> Stream:
        """Opens a stream for this plan; coalesce: what holds where the spec leaves it open, None: False."""
        from fastwin import local

        return local.Stream(self.spec, plan=self, coalesce=bool(coalesce), max_future_skew=max_future_skew)


def plan(spec: WindowSpec, schema: pa.Schema, *, general: bool = False, hidden: Collection[str] = ()) -> Plan:
    """Binds a spec to the schema of its input.

    general: has the general operator run it, whatever it is. hidden: columns that Python code does not see.

    Raises SpecError if the spec is incomplete, if a column is missing or named twice, or if its type does
    not suit.
    """
    spec.check_complete()
    if not isinstance(schema, pa.Schema):
        raise SpecError(f"schema: must be a pyarrow.Schema, got {type(schema).__name__}")
    kinds = {name: _kind_of(schema, name, "key_by") for name in spec.keys}
    if spec.time_column is not None:
        batches.check_time_type(spec.time_column, _kind_of(schema, spec.time_column, "event_time"))
    results, inputs = _results(spec, schema)
    operator, why = ("general", _ASKED) if general else choose(spec)
    sees_rows = operator == "general" and _reads_rows(spec)
    takes_all = spec.late_output or spec.bad_row_policy == "divert" or sees_rows
    if takes_all:
        duplicates = {name for name in schema.names if schema.names.count(name) > 1}
        if duplicates:
            raise SpecError(f"input: columns named twice: {', '.join(sorted(duplicates))}")
        if spec.bad_row_policy == "divert" and batches.BAD_REASON in schema.names:
            raise SpecError(
                f"bad_rows: result.bad adds the column {batches.BAD_REASON!r}, which the input has; rename it"
            )
    time_columns = [] if spec.time_column is None else [spec.time_column]
    fed = [name for name, reading in inputs if reading != "time"]
    names = schema.names if takes_all else list(dict.fromkeys([*spec.keys, *time_columns, *fed]))
    names = names or schema.names[:1]  # something that tells how many rows there are
    if not names:
        raise SpecError("input: it has no columns")
    fields = [schema.field(name) for name in names]
    input_schema = pa.schema([field.with_type(roomy_type(field.type)) for field in fields])
    codec = KeyCodec(tuple(pa.field(name, kind) for name, kind in kinds.items()))
    text = batches.schema_to_text(input_schema)
    seen = pa.schema([field for field in input_schema if field.name not in hidden]) if sees_rows else None
    keys = ", ".join(str(field.type) for field in codec.out_fields)
    held = "" if seen is None else ", ".join(f"{field.name} {field.type}" for field in seen)
    aggregates = tuple(column.for_state() for column in results)
    state = StateSpec(operator, spec.state_parts, spec.lateness_ms, aggregates, keys, held)
    config = Config(codec, results, spec.lateness_ms, False, spec.fingerprint, str(spec), text, state)
    program = None
    if operator == "general":
        check_assigner(spec.assigner)
        program = _program(spec, seen)
        columns = _general_schema(spec, config, program)
        config = GeneralConfig(
            codec, results, spec.lateness_ms, False, spec.fingerprint, str(spec), text, state, columns
        )
    return Plan(spec, operator, why, input_schema, config, inputs, program)


def _results(spec: WindowSpec, schema: pa.Schema) -> tuple[tuple[ResultColumn, ...], tuple[Input, ...]]:
    """Returns the built-in aggregates of a spec, and what they are fed with, each input once."""
    found: list[tuple[str, Aggregate, tuple[pa.DataType, ...], tuple[Input, ...]]] = []
    for name, aggregate in spec.aggregates:
        if isinstance(aggregate, Aggregate):
            kinds = tuple(_kind_of(schema, column, f"aggregate {name}={aggregate}") for column in aggregate.columns)
            found.append((name, aggregate, kinds, aggregate.inputs(*kinds)))
    inputs = list(dict.fromkeys(one for _, _, _, fed in found for one in fed))
    # What is null, the values of the same column tell as well.
    told = {name: (name, reading) for name, reading in inputs if reading != "valid"}
    inputs = [one for one in inputs if one[1] != "valid" or one[0] not in told]
    results = []
    for name, aggregate, kinds, fed in found:
        at = tuple(inputs.index(one if one in inputs else told[one[0]]) for one in fed)
        results.append(ResultColumn(name, aggregate, kinds, at))
    return tuple(results), tuple(inputs)


def _reads_rows(spec: WindowSpec) -> bool:
    """Whether Python code sees elements, or windows keep them."""
    functions = [function for _, function in spec.aggregates if not isinstance(function, Aggregate)]
    python = functions or spec.function or spec.reducer or (spec.processor and not spec.aggregates)
    return bool(python or spec.eviction or reads_rows(spec.assigner, _trigger(spec)))


def _trigger(spec: WindowSpec) -> Any:
    assert spec.assigner is not None
    return spec.firing if spec.firing is not None else spec.assigner.get_default_trigger()


def _program(spec: WindowSpec, rows: pa.Schema | None) -> Program:
    """Returns what the general operator runs."""
    assert spec.assigner is not None
    parts = [
        PythonAggregate(function, (name,)) for name, function in spec.aggregates if not isinstance(function, Aggregate)
    ]
    output = spec.output
    if spec.function is not None:
        named = [name for part in parts for name in part.names]
        rest = () if spec.processor is not None or output is None else tuple(n for n in output.names if n not in named)
        parts.append(PythonAggregate(spec.function, rest or ("",)))
    if spec.processor is None and parts and output is not None:
        output = pa.schema([output.field(name) for part in parts for name in part.names])
    if spec.reducer is not None and output is None:
        assert rows is not None
        output = pa.schema([field for field in rows if field.name not in spec.keys])
        if spec.processor is None and not output.names:
            raise SpecError("reduce: the input has key columns only; name the result's columns with output=")
    if spec.reducer is not None and spec.processor is None and rows is not None and output is not None:
        for name in output.names:
            _kind_of(rows, name, "reduce: output")
    return Program(
        assigner=spec.assigner,
        trigger=_trigger(spec),
        evictor=spec.eviction,
        aggregates=tuple(parts),
        reduce=spec.reducer,
        process=spec.processor,
        output=output,
        side=spec.sides,
        rows=rows,
        arrival=spec.arrival,
        pane_info=spec.pane_info,
    )


def _general_schema(spec: WindowSpec, config: Config, program: Program) -> pa.Schema:
    """Returns the result columns, aggregates in the order in which the spec names them."""
    fields = list(config.main_schema)[: len(spec.keys) + 2]
    if spec.processor is None:
        built_in = {column.name: column.field for column in config.results}
        for name, _ in spec.aggregates:
            fields.append(built_in[name] if name in built_in else program.output.field(name))  # type: ignore[union-attr]
    if program.output is not None:
        named = {field.name for field in fields[len(spec.keys) + 2 :]}
        fields += [field for field in program.output if field.name not in named]
    return pa.schema([*fields, *(PANE_FIELDS if spec.pane_info else [])])


def columns_named(spec: WindowSpec) -> list[str]:
    """Returns the columns of the input that a spec names."""
    read = [name for _, part in spec.aggregates if isinstance(part, Aggregate) for name in part.columns]
    return list(dict.fromkeys([*spec.keys, *([] if spec.time_column is None else [spec.time_column]), *read]))


def schema_before_input(spec: WindowSpec) -> pa.Schema:
    """Returns the columns of ``result.main`` as far as they are known without an input; other types are null."""
    spec.check_complete()
    fields = [pa.field(name, pa.null()) for name in spec.keys]
    fields += [pa.field("window_start", TIME_TYPE), pa.field("window_end", TIME_TYPE)]
    told = {} if spec.output is None else {field.name: field for field in spec.output}
    if spec.processor is None:
        fields += [told.pop(name, pa.field(name, pa.null())) for name, _ in spec.aggregates]
    return pa.schema([*fields, *told.values(), *(PANE_FIELDS if spec.pane_info else [])])


def explain(spec: WindowSpec) -> Explanation:
    """Says which operator runs a spec, and why."""
    spec.check_complete()
    return _explained(spec, *choose(spec))


def _explained(spec: WindowSpec, operator: str, why: str) -> Explanation:
    lines = [str(spec), f"  operator: {operator}, because {why}", f"  windows: {spec.assigner}"]
    lines.append(f"  fires: {_trigger(spec)}")
    if spec.eviction is not None:
        lines.append(f"  evicts: {spec.eviction}; windows keep all their elements")
    if operator == "general":
        lines.append("  state: one row for each (key, window)")
    return Explanation("\n".join(lines))


def _kind_of(schema: pa.Schema, name: str, argument: str) -> pa.DataType:
    count = schema.names.count(name)
    if count == 0:
        raise SpecError(f"{argument}: there is no column {name!r}; the input has {', '.join(schema.names) or 'none'}")
    if count > 1:
        raise SpecError(f"{argument}: the input has {count} columns named {name!r}")
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) and argument.startswith("aggregate") else kind


def _special(spec: WindowSpec) -> str | None:
    """Returns what only the general operator does, if the spec asks for it."""
    if spec.firing is not None and spec.firing != EventTimeTrigger():
        return f"it has a trigger of its own ({spec.firing})"
    if spec.eviction is not None:
        return "an evictor needs the elements of a window"
    if spec.processor is not None or spec.reducer is not None:
        return "a Python function is called when a window fires"
    if spec.function is not None or any(not isinstance(function, Aggregate) for _, function in spec.aggregates):
        return "an aggregate is written in Python"
    if spec.pane_info:
        return "pane info tells the firings of each window apart"
    return None


def choose(spec: WindowSpec) -> tuple[str, str]:
    """Returns the name of the operator that runs a complete spec, and why it does."""
    special = _special(spec)
    if special is not None:
        return "general", special
    kind = type(spec.assigner)
    if kind is TumblingEventTimeWindows:
        return "aligned", "windows are aligned to the clock, the trigger is the default one, aggregates merge"
    if kind is SlidingEventTimeWindows:
        size, slide = spec.assigner.size_ms, spec.assigner.slide_ms  # type: ignore[union-attr]
        per_slide = 2 if size > slide and size % slide else 1
        return "aligned", (
            f"windows are aligned to the clock and share slices: {per_slide} for each slide of {format_ms(slide)}, "
            f"and an element updates one of them instead of {max(size // slide, 1)} windows"
        )
    if kind is CumulativeEventTimeWindows:
        step = spec.assigner.step_ms  # type: ignore[union-attr]
        return "aligned", (
            f"windows are aligned to the clock and share slices of {format_ms(step)}, of which an element updates one"
        )
    if kind is EventTimeSessionWindows:
        return "session", "sessions have a fixed gap, the trigger is the default one, aggregates merge"
    return "general", f"the windows are {spec.assigner}"
