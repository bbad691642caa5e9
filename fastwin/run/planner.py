"""The planner: a spec and an input's schema to the fastest operator that means the same."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.checking import Limits, bad_schema, event_times
from fastwin.columns.decoding import readable_type
from fastwin.columns.inputs import Inputs
from fastwin.columns.keys import EncodedKeys, KeyCodec, encode_keys
from fastwin.columns.schemas import check_time_type, schema_to_text, taken_field
from fastwin.columns.units import as_instants
from fastwin.errors import SpecError
from fastwin.operators.aligned.filling import FillingOperator
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.batch import Batch
from fastwin.operators.config import TIME_TYPE, WINDOW_FIELD, Config
from fastwin.operators.general.config import Program, info_fields
from fastwin.operators.general.operator import GeneralOperator
from fastwin.operators.general.planning import check_assigner, waits_for_clock
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.firsts import FirstsOperator
from fastwin.operators.kept.operator import RowsOperator
from fastwin.operators.partials import AlignedFeeder, Feeder, SessionFeeder, can_count
from fastwin.operators.protocol import Operator
from fastwin.operators.session.operator import SessionOperator
from fastwin.operators.several.feeding import feeders, slicing_of
from fastwin.operators.several.operator import SeveralOperator
from fastwin.run.choice import Explanation, choose, explained, trigger_of
from fastwin.run.keptplans import check_rows_ending, kept_config, kept_operator
from fastwin.run.planparts import (
    columns_to_read,
    ending_of,
    general_schema,
    makes_columns_again,
    program_of,
    state_spec,
)
from fastwin.run.reading import check_gap_column, kind_of, read_aggregates, reads_rows
from fastwin.run.results import Result
from fastwin.run.timelimits import time_limits
from fastwin.run.windowtime import timed, timed_schema
from fastwin.run.zones import bound_type, warn_of_utc_days
from fastwin.spec.builder import SpecBuilder, check_spec
from fastwin.spec.joinending import JoinEnding
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.spec.rowendings import RowsEnding
from fastwin.state.identity import Migrate
from fastwin.state.migration import migrated
from fastwin.timeline.recorder import Source
from fastwin.windows.named_windows import NamedWindows
from fastwin.windows.session import EventTimeSessionWindows
from fastwin.windows.sliding import SlidingEventTimeWindows

__all__ = ["Plan", "plan", "result_before_input", "schema_before_input"]


_OPERATORS: dict[str, type[Operator]] = {
    kind.name: kind
    for kind in (
        AlignedOperator,
        FillingOperator,
        GroupsOperator,
        SessionOperator,
        SeveralOperator,
        RowsOperator,
        FirstsOperator,
        GeneralOperator,
    )
}


@dataclass(frozen=True)
class Plan:
    """A spec bound to an input schema: which operator runs it, what it reads and what it returns.

    operator: its name, see ``choose``. input_schema: the columns it reads, all of the input's if late or bad rows are
    handed out or Python code sees rows; dictionaries have an index of at least 32 bits.
    inputs: what aggregates are fed with. program: what the general operator runs. of_state: whether the columns are
    those that state tells of; an input may have more, and late or bad rows have these, too.
    """

    spec: SpecBuilder
    operator: str
    why: str
    input_schema: pa.Schema
    config: Config
    inputs: Inputs
    program: Program | None = None
    of_state: bool = False

    @property
    def input_columns(self) -> list[str]:
        """Names of the columns that the operator reads."""
        return self.input_schema.names

    @property
    def main_schema(self) -> pa.Schema:
        """Schema of ``result.main``."""
        return timed_schema(self.config.main_schema, self.spec.window_time)

    @property
    def late_schema(self) -> pa.Schema | None:
        """Schema of ``result.late``; None if the spec does not hand late rows out."""
        return self.input_schema if self.spec.late_output else None

    @property
    def bad_schema(self) -> pa.Schema | None:
        """Schema of ``result.bad``; None if the spec does not divert bad rows."""
        return bad_schema(self.input_schema) if self.spec.bad_row_policy == "divert" else None

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that tell the spec in the state."""
        return self.config.fingerprint

    @property
    def side_schemas(self) -> dict[str, pa.Schema]:
        """Schemas of ``result.side`` by tag."""
        return dict(self.spec.sides)

    @property
    def is_general(self) -> bool:
        """Whether the general operator runs it."""
        return self.operator == GeneralOperator.name

    @property
    def waits_for_clock(self) -> bool:
        """Whether anything may wait for the processing time."""
        assert self.spec.assigner is not None
        return self.is_general and waits_for_clock(self.spec.assigner, trigger_of(self.spec))

    @property
    def guesses_unit(self) -> bool:
        """Whether int64 times are taken for milliseconds without having been called so; those of joins are made so."""
        column, unit = self.spec.time_column, self.spec.time_unit
        if isinstance(self.spec.ending, JoinEnding):
            return False
        return column is not None and unit is None and self.input_schema.field(column).type == pa.int64()

    def limits(self, limits: Limits) -> Limits:
        """Returns the bounds on rows, see ``time_limits``."""
        return time_limits(self.spec, self.spec.time_unit, limits)

    def explain(self) -> Explanation:
        """Says which operator runs, and why."""
        return explained(self.spec, self.operator, self.why)

    @property
    def operator_type(self) -> type[Operator]:
        """The class of the operator: what it can do is known before there is one."""
        return _OPERATORS[self.operator]

    @property
    def keeps_rows(self) -> bool:
        """Whether results are made of rows, and of all of their columns."""
        return isinstance(self.config, KeptConfig)

    def new_operator(self) -> Operator:
        """Returns a fresh operator."""
        config = self.config
        if self.program is not None:
            return GeneralOperator(config, self.program)
        if isinstance(config, KeptConfig):
            return kept_operator(config, self.spec, self.slicing)
        if isinstance(self.spec.assigner, EventTimeSessionWindows):
            return SessionOperator(config, self.spec.assigner.gap_ms)
        if isinstance(self.spec.assigner, NamedWindows):
            return SeveralOperator(config, self.spec.assigner.named, self.spec.fill_ms)
        if self.spec.fill_ms is not None:
            return FillingOperator(config, self.slicing(), *self.spec.fill_ms)
        if self.operator == GroupsOperator.name:
            return GroupsOperator(config, self.slicing())
        return AlignedOperator(config, self.slicing())

    def slicing(self) -> Slicing:
        """Returns the slices of aligned windows. Raises SpecError for others."""
        slicing = slicing_of(self.spec.assigner)
        if slicing is None:
            raise SpecError(f"window: no operator runs {self.spec.assigner!r}")
        return slicing

    def new_feeder(self, groups: int = 1, parts: int = 1) -> Feeder | None:
        """Returns what makes partial results of elements, for ``Replica.merge``; None where rows themselves are needed.

        groups, parts: the results are divided by their keys: key group ``i`` of ``groups`` is in part ``i % parts``.
        Rows are needed by the general operator, where late rows are handed out or fire one by one, where windows leave
        gaps, and where several have no slices in common.
        """
        assigner = self.spec.assigner
        if self.program is not None or self.keeps_rows or self.spec.late_output:
            return None
        if not self.config.coalesce or not can_count(self.config):
            return None
        if isinstance(assigner, EventTimeSessionWindows):
            return SessionFeeder(self.config, assigner.gap_ms, groups, parts)
        if isinstance(assigner, SlidingEventTimeWindows) and assigner.size_ms < assigner.slide_ms:
            return None
        if isinstance(assigner, NamedWindows) and feeders(assigner.named).count(None) > 1:
            return None
        return AlignedFeeder(self.config, self.slicing(), groups, parts)

    def batch(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> Batch:
        """Returns checked rows, with their times in ms (int64[n]), as the operator takes them."""
        columns = self.inputs.read(rows, times)
        elements = None
        if self.program is not None and self.program.rows is not None:
            seen = self.program.rows.names
            elements = rows if len(seen) == rows.num_columns else rows.select(seen)
        elif self.keeps_rows:
            elements = rows
        if self.operator == GroupsOperator.name:
            keys: EncodedKeys = self.config.codec.columns([rows.column(name) for name in self.spec.keys])
        else:
            keys = encode_keys(rows, self.config.codec)
        return Batch(keys, times, columns, elements, self.inputs.arrival)

    def result(
        self,
        main: list[pa.RecordBatch],
        late: list[pa.RecordBatch],
        bad: list[pa.RecordBatch],
        side: dict[str, pa.RecordBatch],
    ) -> Result:
        """Returns what a call has given, as tables."""
        return Result(
            timed(pa.Table.from_batches(main, schema=self.config.main_schema), self.spec.window_time),
            pa.Table.from_batches(late, schema=self.input_schema),
            pa.Table.from_batches(bad, schema=bad_schema(self.input_schema)),
            {
                tag: pa.Table.from_batches([side[tag]] if tag in side else [], schema=schema)
                for tag, schema in self.side_schemas.items()
            },
            self.source,
        )

    @cached_property
    def source(self) -> Source:
        """Which columns are keys and time, for pictures of results."""
        return Source(self.spec.keys, self.spec.time_column, self.spec.time_unit)

    def times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        """Returns the times, ms, of rows that have been checked: int64[n]."""
        assert self.spec.time_column is not None
        return event_times(as_instants(rows.column(self.spec.time_column), self.spec.time_unit))[0]

    def migrated(self, chunk: bytes, migrate: Migrate = None) -> bytes:
        """Returns a chunk of state as one of this spec; see ``Stream.restore``."""
        return migrated(chunk, self.config, migrate)


def plan(
    spec: SpecBuilder, schema: pa.Schema, *, general: bool = False, hidden: Collection[str] = (), coalesce: bool = False
) -> Plan:
    """Binds a spec to the schema of its input.

    general: has the general operator run it, whatever it is. hidden: columns that Python code does not see. coalesce:
    whether the elements of one call have no order, where the spec leaves it open, see ``allowed_lateness``. It is False
    for streams in this process, and on Spark what ``apply`` was told, True by default.

    Raises SpecError if the spec is incomplete, if a column is missing or named twice, or if its type does
    not suit.
    """
    check_spec(spec)
    if not isinstance(schema, pa.Schema):
        raise SpecError(f"schema: must be a pyarrow.Schema, got {type(schema).__name__}")
    # What the state tells of types has to be read again.
    schema = pa.schema([field.with_type(readable_type(field.type)) for field in schema])
    kinds = {name: kind_of(schema, name, "key_by") for name in spec.keys}
    if spec.time_column is not None:
        check_time_type(spec.time_column, kind_of(schema, spec.time_column, "event_time"), spec.time_unit)
    check_gap_column(spec, schema)
    results, inputs = read_aggregates(spec, schema)
    if general and spec.fill_ms is not None:
        raise SpecError("window: fill='empty' does not run on the general operator")
    operator, why = (GeneralOperator.name, "it was asked for") if general else choose(spec)
    sees_rows = operator == GeneralOperator.name and reads_rows(spec)
    told = columns_to_read(spec, schema, operator, inputs)
    made_again = sees_rows and makes_columns_again(spec)
    input_schema = pa.schema([taken_field(field, made_again and field.name not in hidden) for field in told])
    codec = KeyCodec(tuple(pa.field(name, kind) for name, kind in kinds.items()))
    visible = pa.schema([field for field in input_schema if field.name not in hidden])
    check_rows_ending(spec, visible, operator)
    held = [field for field in told if (sees_rows or operator == RowsOperator.name) and field.name in visible.names]
    bounds = bound_type(spec, schema)
    warn_of_utc_days(spec, bounds)
    config = Config(
        codec=codec,
        results=results,
        lateness_ms=spec.lateness_ms,
        coalesce=coalesce if spec.coalesce is None else spec.coalesce,
        fingerprint=spec.fingerprint,
        text=str(spec),
        input_schema=schema_to_text(told),
        state=state_spec(spec, operator, results, codec, held),
        bound_type=bounds,
        window="" if isinstance(spec.assigner, NamedWindows) else None,
        changelog=spec.changelog,
    )
    program = None
    if operator == GeneralOperator.name:
        assert spec.assigner is not None
        check_assigner(spec.assigner)
        program = program_of(spec, visible if sees_rows else None, inputs)
        config = replace(config, columns=general_schema(spec, config, program))
    elif isinstance(spec.ending, RowsEnding):
        config = kept_config(spec, config, visible)
    return Plan(spec, operator, why, input_schema, config, inputs, program)


def schema_before_input(spec: SpecBuilder) -> pa.Schema:
    """Returns the columns of ``result.main`` as far as they are known without an input; other types are null."""
    spec.check_complete()
    fields = [pa.field(name, pa.null()) for name in spec.keys]
    if isinstance(spec.assigner, NamedWindows):
        fields.append(WINDOW_FIELD)
    fields += [pa.field(name, TIME_TYPE) for name in BOUNDS]
    ending = ending_of(spec)
    told = {} if ending.output is None else {field.name: field for field in ending.output}
    fields += [told.pop(name, pa.field(name, pa.null())) for name in ending.names]
    schema = pa.schema([*fields, *told.values(), *info_fields(spec)])
    return timed_schema(schema, spec.window_time)


def result_before_input(spec: SpecBuilder) -> Result:
    """Returns a result without rows, as long as the types of the input are not known."""
    side = {tag: schema.empty_table() for tag, schema in spec.sides}
    source = Source(spec.keys, spec.time_column, spec.time_unit)
    return Result(schema_before_input(spec).empty_table(), pa.table({}), pa.table({}), side, source)
