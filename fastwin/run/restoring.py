"""Puts a fresh operator into saved state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fastwin.columns.schemas import text_to_schema
from fastwin.errors import SpecError, StateError
from fastwin.operators.protocol import Operator
from fastwin.run import planner
from fastwin.run.planner import Plan
from fastwin.spec.builder import SpecBuilder
from fastwin.state.chunks import decode, owner
from fastwin.state.identity import Migrate, check_migrate

__all__ = ["chunks_in", "restored"]


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


def _plan_for(spec: SpecBuilder, schema: pa.Schema) -> Plan:
    try:
        return planner.plan(spec, schema)
    except SpecError as problem:
        raise StateError(
            f"restore: the state was written for other columns: {problem}; if they are new, open the stream with a "
            f"schema"
        ) from problem
