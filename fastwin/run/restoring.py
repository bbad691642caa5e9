"""Puts a fresh operator into saved state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from fastwin.columns.schemas import text_to_schema
from fastwin.errors import SpecError, StateError
from fastwin.operators.protocol import Operator
from fastwin.run import planner
from fastwin.run.planner import Plan
from fastwin.run.reading import reads_rows, takes_all
from fastwin.spec.builder import SpecBuilder
from fastwin.state.chunks import decode, owner
from fastwin.state.identity import Migrate, check_migrate

__all__ = ["chunks_in", "restored", "widened"]


def chunks_in(given: Any) -> list[bytes | bytearray | memoryview]:
    """Returns the chunks that ``restore`` is given: a list of them, or one alone. Raises StateError for others."""
    chunks = [given] if isinstance(given, bytes | bytearray | memoryview) else given
    if not isinstance(chunks, list | tuple):
        raise StateError(f"restore: takes a list of bytes, a snapshot and deltas, got {type(chunks).__name__}")
    if not chunks:
        raise StateError("restore: at least a snapshot is needed, got no chunk")
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise StateError(f"restore: a chunk is bytes, got {type(chunk).__name__}")
    return list(chunks)


def restored(
    spec: SpecBuilder, plan: Plan | None, chunks: Any, forget_watermark: bool, migrate: Migrate
) -> tuple[Plan, Operator]:
    """Returns an operator in the state of one snapshot and the deltas after it, with its plan; see ``Stream.restore``.

    plan: of the spec; None: for the input that the state was made of.
    """
    check_migrate(migrate)
    chunks = chunks_in(chunks)
    try:
        if plan is None:
            meta = decode(chunks[0], owner(chunks[0])).meta
            plan = _plan_for(spec, text_to_schema(meta["input_schema"]))
        chunks = [plan.migrated(chunk, migrate) for chunk in chunks]
        operator = plan.new_operator()
        operator.restore(chunks, forget_watermark)
    except (StateError, SpecError, MemoryError):
        raise
    except Exception as problem:
        raise StateError(f"restore: the state makes no sense: {problem}") from problem
    return plan, operator


def widened(plan: Plan, schema: pa.Schema) -> Plan:
    """Returns the plan for an input that may have more columns than state tells of: late and bad rows have them all.

    Columns that the state knows keep their types. The state, and the operator that has it, stay as they are.
    """
    known = {field.name: field for field in text_to_schema(plan.config.input_schema)}
    if not known.keys() < set(schema.names):  # there are no more; who takes the rows names one that is missing
        return replace(plan, of_state=False)
    told = pa.schema([known.get(field.name, field) for field in schema])
    return planner.plan(plan.spec, told, coalesce=plan.config.coalesce)


def _plan_for(spec: SpecBuilder, schema: pa.Schema) -> Plan:
    try:
        plan = planner.plan(spec, schema)
        held = plan.keeps_rows or (plan.is_general and reads_rows(spec))  # then state has these columns
        return replace(plan, of_state=takes_all(spec, plan.operator) and not held)
    except SpecError as problem:
        raise StateError(
            f"restore: the state was written for other columns: {problem}; if they are new, open the stream with a "
            f"schema"
        ) from problem
