"""Computed: an Arrow expression in the place of a column, told by its text, and computed for a batch of rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.buffers import in_one
from fastwin.columns.decoding import decoded, decoded_type
from fastwin.errors import SpecError, UserFunctionError

__all__ = ["Computed", "Operand", "as_operand", "columns_read", "compute", "computed_type", "may_mean", "may_read"]

_NO_MATCH = re.compile(r"No match for FieldRef\.Name\((.*?)\) in ", re.DOTALL)
_LINE_END = re.compile(r"\s*\n\s*")
_NO_COLUMN = "n"  # stands in where an expression reads none, so that rows can be counted


class Computed:
    """A column that is computed from others. It equals another one with an equal expression.

    expression: a ``pyarrow.compute.Expression`` that names its columns. Raises SpecError for one that says a place.
    """

    __slots__ = ("expression", "text")

    def __init__(self, expression: pc.Expression) -> None:
        self.expression = expression
        self.text = _text(expression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Computed) and bool(self.expression.equals(other.expression))

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Computed], tuple[pc.Expression]]:
        return Computed, (self.expression,)


Operand = str | Computed
"""What an aggregate reads: a column by its name, or one that is computed."""


def as_operand(value: Any, argument: str, what: str = "the name of a column") -> Operand:
    """Returns a column's name or an expression as an operand. Raises SpecError for other things.

    argument, what: what it is for, and what it must be, for the error.
    """
    if isinstance(value, pc.Expression):
        return Computed(value)
    if isinstance(value, Computed) or (isinstance(value, str) and value):
        return value
    raise SpecError(f"{argument} must be {what}, got {value!r}; a pyarrow.compute Expression will do as well")


def _text(expression: pc.Expression) -> str:
    """Returns what tells an expression from others, the same in every process."""
    text = str(expression)
    try:
        _, (serialized,) = expression.__reduce__()
    except pa.ArrowException:
        told = "an expression must name its columns, as pyarrow.compute.field('price') does"
        raise SpecError(f"{text}: {told}") from None
    # Of a list Arrow leaves out the middle, and it writes 2 and 2.0 alike.
    values = pa.ipc.open_file(serialized).get_batch(0).columns
    if "\n" in text or any(map(_is_like_an_int, values)):
        held = [(str(column.type), column.to_pylist()) for column in values]
        digest = hashlib.blake2b(repr(held).encode(), digest_size=8).hexdigest()
        text = f"{_as_told(text)}#{digest}"
    return text


def _as_told(name: str) -> str:
    """Returns a column's name, or other text, as the text of an expression has it: on one line."""
    return _LINE_END.sub(" ", name)


def _is_like_an_int(literal: pa.Array) -> bool:
    """Whether a literal, the one value of an array, is a float that Arrow writes as an int."""
    return pa.types.is_floating(literal.type) and any(v is not None and v.is_integer() for v in literal.to_pylist())


def may_read(computed: Computed, name: str) -> bool:
    """Whether the text of an expression has the name of a column, as it has that of each column that it reads."""
    return _as_told(name) in computed.text


def may_mean(computed: Computed, name: str) -> bool:
    """The same, where the name is no part of a longer word."""
    return re.search(rf"(?<!\w){re.escape(_as_told(name))}(?!\w)", computed.text) is not None


def columns_read(computed: Computed, schema: pa.Schema) -> tuple[str, ...]:
    """Returns the names of the columns that an expression reads. O(columns that its text has the name of)."""
    names = list(dict.fromkeys(name for name in schema.names if may_read(computed, name)))
    return tuple(name for name in names if not _is_enough(computed, schema, [n for n in names if n != name]))


def _is_enough(computed: Computed, schema: pa.Schema, names: list[str]) -> bool:
    try:
        computed_type(computed, pa.schema([field for field in schema if field.name in names]))
    except SpecError:
        return False
    return True


def computed_type(computed: Computed, schema: pa.Schema) -> pa.DataType:
    """Returns the type of an expression's values. Raises SpecError if it cannot be computed from these columns."""
    plain = pa.schema([field.with_type(decoded_type(field.type)) for field in schema])
    try:
        return _projected([computed], plain.empty_table()).schema.field(0).type
    except pa.ArrowException as problem:
        missing = _NO_MATCH.search(str(problem))
        if missing is not None:
            there = ", ".join(schema.names) or "none"
            raise SpecError(f"there is no column {missing[1]!r}; the input has {there}") from None
        raise SpecError(f"Arrow cannot compute it: {str(problem).splitlines()[0]}") from None


def compute(expressions: Sequence[Computed], rows: pa.RecordBatch, names: Iterable[str]) -> list[pa.Array]:
    """Returns the values of expressions for each row, in one pass. names: of the columns that they read.

    Raises UserFunctionError where a value cannot be computed, such as a product outside int64.
    """
    if not expressions:
        return []
    columns = {name: decoded(rows.column(name)) for name in names} or {_NO_COLUMN: pa.nulls(rows.num_rows)}
    table = pa.table(columns)
    try:
        found = _projected(expressions, table)
    except pa.ArrowException as problem:
        for one in expressions:
            _compute_alone(one, table)
        raise UserFunctionError(f"{expressions[0]}: {problem}") from problem
    return [in_one(column) for column in found.columns]


def _compute_alone(one: Computed, table: pa.Table) -> None:
    """Raises UserFunctionError that names the expression, if it is this one that fails."""
    try:
        _projected([one], table)
    except pa.ArrowException as problem:
        raise UserFunctionError(f"{one}: {problem}") from problem


def _projected(expressions: Sequence[Computed], table: pa.Table) -> pa.Table:
    from pyarrow import acero  # takes its time, and loads pandas

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    named = acero.ProjectNodeOptions([one.expression for one in expressions], [str(i) for i in range(len(expressions))])
    # On this thread: several may run specs at a time, and rows keep their order.
    return acero.Declaration("project", named, [source]).to_table(use_threads=False)
