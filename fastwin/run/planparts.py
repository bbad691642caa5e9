"""Parts of a plan: which columns are read, what state tells of itself, and what the general operator runs."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from fastwin.columns.checking import BAD_REASON
from fastwin.columns.decoding import roomy_type
from fastwin.columns.inputs import Inputs
from fastwin.columns.keys import KeyCodec
from fastwin.errors import SpecError
from fastwin.operators.config import Config, ResultColumn, members_of
from fastwin.operators.general.config import Program, PythonAggregate, info_fields
from fastwin.run.choice import trigger_of
from fastwin.run.reading import takes_all
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.ending import AggregateEnding, Ending, ProcessEnding, ReduceEnding
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.spec.rowendings import RowsEnding
from fastwin.state.identity import StateSpec

__all__ = ["columns_to_read", "ending_of", "general_schema", "makes_columns_again", "program_of", "state_spec"]


def columns_to_read(spec: SpecBuilder, schema: pa.Schema, operator: str, inputs: Inputs) -> pa.Schema:
    """Returns the columns that an operator reads, with types that do not change with how columns are taken.

    State tells of these. inputs: what aggregates are fed with. Raises SpecError if there are none, or if all are read,
    and two have one name.
    """
    all_read = takes_all(spec, operator)
    if all_read:
        duplicates = {name for name in schema.names if schema.names.count(name) > 1}
        if duplicates:
            raise SpecError(f"input: columns named twice: {', '.join(sorted(duplicates))}")
        if spec.bad_row_policy == "divert" and BAD_REASON in schema.names:
            raise SpecError(f"bad_rows: result.bad adds the column {BAD_REASON!r}, which the input has; rename it")
    time_columns = [] if spec.time_column is None else [spec.time_column]
    names = schema.names if all_read else list(dict.fromkeys([*spec.keys, *time_columns, *inputs.names]))
    names = names or schema.names[:1]  # something that tells how many rows there are
    if not names:
        raise SpecError("input: it has no columns")
    return pa.schema([field.with_type(roomy_type(field.type)) for field in map(schema.field, names)])


def state_spec(
    spec: SpecBuilder, operator: str, results: tuple[ResultColumn, ...], codec: KeyCodec, held: Iterable[pa.Field]
) -> StateSpec:
    """Returns what state tells of itself. held: the columns of the rows that it holds."""
    return StateSpec(
        operator,
        spec.state_parts,
        spec.lateness_ms,
        tuple(map(ResultColumn.for_state, results, members_of(results))),
        ", ".join(str(field.type) for field in codec.out_fields),
        ", ".join(f"{field.name} {field.type}" for field in held),
        spec.ending.lateness_of_inputs if spec.ending is not None else (),
    )


def makes_columns_again(spec: SpecBuilder) -> bool:
    """Whether values of elements become columns again: of rows that windows keep, or of what a reduction gives."""
    ending = ending_of(spec)
    reduced = isinstance(ending, ReduceEnding) and ending.output is None
    return spec.eviction is not None or reduced or isinstance(ending, ProcessEnding | RowsEnding)


def ending_of(spec: SpecBuilder) -> Ending:
    """Returns the ending of a complete spec."""
    assert spec.ending is not None
    return spec.ending


def program_of(spec: SpecBuilder, rows: pa.Schema | None, inputs: Inputs) -> Program:
    """Returns what the general operator runs."""
    assert spec.assigner is not None
    ending = ending_of(spec)
    written = ending.written if isinstance(ending, AggregateEnding) else []
    return Program(
        assigner=spec.assigner,
        trigger=trigger_of(spec),
        evictor=spec.eviction,
        aggregates=tuple(PythonAggregate(function, names) for function, names in written),
        reduce=ending.function if isinstance(ending, ReduceEnding) else None,
        process=ending.called,
        output=ending.filled(rows, spec.keys),
        side=spec.sides,
        rows=rows,
        inputs=inputs,
        arrival=spec.arrival,
        pane_info=spec.pane_info,
        changelog=spec.changelog,
    )


def general_schema(spec: SpecBuilder, config: Config, program: Program) -> pa.Schema:
    """Returns the result columns, aggregates in the order in which the spec names them."""
    fields = list(config.main_schema)[: len(spec.keys) + len(BOUNDS)]
    built_in = {column.name: column.field for column in config.results}
    for name in ending_of(spec).names:
        fields.append(built_in[name] if name in built_in else program.output.field(name))  # type: ignore[union-attr]
    if program.output is not None:
        named = {field.name for field in fields[len(spec.keys) + len(BOUNDS) :]}
        fields += [field for field in program.output if field.name not in named]
    return pa.schema([*fields, *info_fields(spec)])
