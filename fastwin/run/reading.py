"""What a spec reads of its input: the columns that it names, their types, and what its aggregates are fed with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from fastwin.aggregates.aggregate import ARRIVALS, EVENT_TIMES, Aggregate
from fastwin.columns.decoding import decoded_type, without_run_ends
from fastwin.columns.expressions import Computed, Operand, computed_type, may_mean, may_read
from fastwin.columns.inputs import Inputs, Source
from fastwin.columns.values import check_scale
from fastwin.errors import SpecError
from fastwin.operators.config import ResultColumn
from fastwin.operators.general import planning
from fastwin.operators.general.operator import GeneralOperator
from fastwin.run.choice import choose, trigger_of
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.rowendings import RowsEnding
from fastwin.windows.session import DynamicEventTimeSessionWindows, DynamicProcessingTimeSessionWindows

__all__ = [
    "check_gap_column",
    "columns_named",
    "columns_read",
    "gap_column",
    "kind_of",
    "mentions_column",
    "read_aggregates",
    "reads_column",
    "reads_rows",
    "takes_all",
]


def columns_named(spec: SpecBuilder) -> list[str]:
    """Returns the columns of the input that a spec names outside of expressions."""
    read = [one for one in _operands(spec) if isinstance(one, str)]
    others = [one for one in (spec.time_column, gap_column(spec)) if one is not None]
    return list(dict.fromkeys([*spec.keys, *others, *read]))


def mentions_column(spec: SpecBuilder) -> Callable[[str], bool]:
    """Returns what tells whether a spec names a column of the input, or one of its expressions may mean it."""
    named, computed = frozenset(columns_named(spec)), _computed(spec)
    return lambda name: name in named or any(may_mean(one, name) for one in computed)


def columns_read(spec: SpecBuilder, there: Iterable[Any]) -> list[Any]:
    """Returns the columns that a complete spec may read of a row. there: what the row has, as far as it is text."""
    there = list(there)
    if takes_all(spec, choose(spec)[0]):
        return there
    mentioned = filter(mentions_column(spec), (name for name in there if isinstance(name, str)))
    return list(dict.fromkeys([*columns_named(spec), *mentioned])) or there


def reads_column(spec: SpecBuilder) -> Callable[[str], bool] | None:
    """Returns what tells whether a complete spec may read the column of a name; None: it reads all, or any one."""
    named = frozenset(columns_named(spec))
    if not named or takes_all(spec, choose(spec)[0]):
        return None
    computed = _computed(spec)
    return lambda name: name in named or any(may_read(one, name) for one in computed)


def takes_all(spec: SpecBuilder, operator: str) -> bool:
    """Whether all columns of the input are read: late or bad rows are handed back, rows are kept, or code sees them."""
    rows = reads_rows(spec) if operator == GeneralOperator.name else isinstance(spec.ending, RowsEnding)
    return spec.late_output or spec.bad_row_policy == "divert" or rows


def reads_rows(spec: SpecBuilder) -> bool:
    """Whether Python code sees elements, or windows keep them."""
    assert spec.ending is not None
    assert spec.assigner is not None
    return bool(spec.ending.sees_elements or spec.eviction or planning.reads_rows(spec.assigner, trigger_of(spec)))


def _operands(spec: SpecBuilder) -> list[Operand]:
    return [] if spec.ending is None else spec.ending.operands


def _computed(spec: SpecBuilder) -> list[Computed]:
    return [operand for operand in _operands(spec) if isinstance(operand, Computed)]


def read_aggregates(spec: SpecBuilder, schema: pa.Schema) -> tuple[tuple[ResultColumn, ...], Inputs]:
    """Returns the built-in aggregates of a spec, and what they are fed with, each source once.

    Raises SpecError, naming the aggregate, for a column or a condition that does not suit.
    """
    found: list[tuple[str, Aggregate, tuple[pa.DataType, ...], list[Source]]] = []
    assert spec.ending is not None
    for name, aggregate in spec.ending.built_in:
        argument = f"aggregate {name}={aggregate}"
        kinds = tuple(_operand_kind(schema, column, argument) for column in aggregate.columns)
        _check_condition(schema, aggregate.where, argument)
        fed = [
            Source(*one, None if one in (EVENT_TIMES, ARRIVALS) else aggregate.where)
            for one in aggregate.inputs(*kinds)
        ]
        read = dict(zip(aggregate.columns, kinds, strict=True))
        for column, reading, _ in fed:
            if column in read:
                check_scale(read[column], reading, f"{argument}: column {column!r}")
        found.append((name, aggregate, kinds, fed))
    sources = list(dict.fromkeys(one for _, _, _, fed in found for one in fed))
    # What is null, the values of the same column tell as well.
    told = {(one.column, one.where): one for one in sources if one.reading != "valid"}
    sources = [one for one in sources if one.reading != "valid" or (one.column, one.where) not in told]
    results = []
    for name, aggregate, kinds, fed in found:
        at = tuple(sources.index(one if one in sources else told[one.column, one.where]) for one in fed)
        results.append(ResultColumn(name, aggregate, kinds, at))
    return tuple(results), Inputs.of(sources, schema)


def _operand_kind(schema: pa.Schema, operand: Operand, argument: str) -> pa.DataType:
    if isinstance(operand, str):
        return kind_of(schema, operand, argument)
    try:
        return computed_type(operand, schema)
    except SpecError as problem:
        raise SpecError(f"{argument}: {problem}") from None


def _check_condition(schema: pa.Schema, where: Operand | None, argument: str) -> None:
    """Raises SpecError for what is not boolean."""
    if where is not None:
        kind = decoded_type(_operand_kind(schema, where, argument))
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise SpecError(f"{argument}: where must be boolean, but {where!r} is {kind}")


def gap_column(spec: SpecBuilder) -> str | None:
    """Returns the column with the gaps of sessions; None: there is none."""
    match spec.assigner:
        case DynamicEventTimeSessionWindows(gap=str(name)) | DynamicProcessingTimeSessionWindows(gap=str(name)):
            return name
    return None


def check_gap_column(spec: SpecBuilder, schema: pa.Schema) -> None:
    """Raises SpecError if the column with the gaps of sessions is missing, or cannot hold durations."""
    name = gap_column(spec)
    if name is None:
        return
    argument = type(spec.assigner).__name__
    kind = decoded_type(kind_of(schema, name, argument))
    tests = (pa.types.is_integer, pa.types.is_duration, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    if not any(test(kind) for test in tests):
        told = "a gap is an int of milliseconds, a duration, or text such as '10 minutes'"
        raise SpecError(f"{argument}: column {name!r} is {kind}; {told}")


def kind_of(schema: pa.Schema, name: str, argument: str) -> pa.DataType:
    """Returns the type of a column; for an aggregate that of a dictionary's values. argument: what it is for.

    Raises SpecError if it is missing, or there twice.
    """
    count = schema.names.count(name)
    if count == 0:
        raise SpecError(f"{argument}: there is no column {name!r}; the input has {', '.join(schema.names) or 'none'}")
    if count > 1:
        raise SpecError(f"{argument}: the input has {count} columns named {name!r}")
    kind = without_run_ends(schema.field(name).type)
    dictionary = pa.types.is_dictionary(kind) and argument.startswith("aggregate")
    return without_run_ends(kind.value_type) if dictionary else kind
