"""What a spec computes of each window: aggregates, a reduced element, or what a function makes of all elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate
from fastwin.columns.expressions import Operand
from fastwin.core.rows.rowstore import MEMBER_BITS
from fastwin.errors import SpecError
from fastwin.functions.aggregate import AggregateFunction
from fastwin.functions.process import ProcessWindowFunction
from fastwin.functions.reduce import ReduceFunction
from fastwin.spec.describe import describe
from fastwin.windows.assigner import WindowAssigner

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["AggregateEnding", "Ending", "ProcessEnding", "ReduceEnding", "types_text"]


class Ending(ABC):
    """The last call that makes a spec. It is one of the classes below.

    function: user-written, of all columns; None only where all aggregates have names of their own. output: the columns
    that Python code fills; None: there are none, or they are the input's.
    """

    method: str
    """The method of a spec that makes it."""
    sees_elements: bool
    """Whether Python code is handed the elements of windows."""
    one_row: bool = False
    """Whether each firing has one result."""
    function: AggregateFunction | ReduceFunction | ProcessWindowFunction | None
    output: pa.Schema | None

    @property
    @abstractmethod
    def called(self) -> ProcessWindowFunction | None:
        """The function that is called when a window fires; None: results are the aggregates themselves."""

    @property
    @abstractmethod
    def python(self) -> str | None:
        """What of it is written in Python, in words; None: nothing, so that any operator may run it."""

    @property
    def built_in(self) -> tuple[tuple[str, Aggregate], ...]:
        """The built-in aggregates, by the names of their columns."""
        return ()

    @property
    def operands(self) -> list[Operand]:
        """What the built-in aggregates read: columns and expressions, those of conditions as well."""
        return [one for _, part in self.built_in for one in (*part.columns, part.where) if one is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the result columns that aggregates fill, in their order."""
        return ()

    @property
    def lateness_of_inputs(self) -> tuple[int, ...]:
        """The allowed lateness of each of several inputs, ms, where it differs."""
        return ()

    @property
    def columns(self) -> list[str]:
        """Names of all result columns that are known without the input."""
        return list(dict.fromkeys([*self.names, *([] if self.output is None else self.output.names)]))

    @abstractmethod
    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        """Returns the columns that Python code fills, None for none. rows: of the elements. keys: the key columns.

        Raises SpecError if elements and columns do not go together.
        """

    @abstractmethod
    def arguments(self, *, state_only: bool) -> str:
        """Returns what the method was given, in words. state_only: without built-in aggregates."""

    def check_merging(self, assigner: WindowAssigner) -> None:
        """Raises SpecError if the state of windows that merge cannot be merged."""
        return

    def check(self, spec: SpecBuilder) -> None:
        """Raises SpecError if the other parts of a complete spec do not go with it."""
        return


def types_text(schema: pa.Schema) -> dict[str, str]:
    """Returns names and types of columns, for texts."""
    return {field.name: str(field.type) for field in schema}


def _joined(parts: list[str], then: ProcessWindowFunction | None, output: pa.Schema | None) -> str:
    told = [] if then is None else [f"then={describe(then)}"]
    return ", ".join([*parts, *told, *([] if output is None else [f"output={types_text(output)}"])])


class _OneResultEnding(Ending):
    """One result of each firing, which may be handed on. then: is called with it; None: it is the row."""

    then: ProcessWindowFunction | None

    @property
    def one_row(self) -> bool:  # type: ignore[override]
        return self.then is None

    @property
    def called(self) -> ProcessWindowFunction | None:
        return self.then

    def _check_then(self) -> None:
        if self.then is not None and not isinstance(self.then, ProcessWindowFunction):
            raise SpecError(f"{self.method}: then must be a ProcessWindowFunction, got {self.then!r}")


@dataclass(frozen=True)
class AggregateEnding(_OneResultEnding):
    """Aggregates of each window.

    aggregates: ``(column, aggregate)`` pairs, built in or user-written. function: a user-written aggregate, for the
    columns of ``output`` that no other fills. then: is called with the one result.
    """

    aggregates: tuple[tuple[str, Aggregate | AggregateFunction], ...]
    function: AggregateFunction | None = None
    then: ProcessWindowFunction | None = None
    output: pa.Schema | None = None
    method = "aggregate"

    def __post_init__(self) -> None:
        for name, aggregate in self.aggregates:
            known = isinstance(aggregate, Aggregate) and type(aggregate).accumulator is not Aggregate.accumulator
            if not known and not isinstance(aggregate, AggregateFunction):
                raise SpecError(f"aggregate: {name} must be an aggregate such as fastwin.Count(), got {aggregate!r}")
            if not name:
                raise SpecError(f"aggregate: the name of {aggregate} is empty")
        if len(self.built_in) > MEMBER_BITS:
            raise SpecError(f"aggregate: at most {MEMBER_BITS} in one spec, got {len(self.built_in)}")
        if self.function is not None and not isinstance(self.function, AggregateFunction):
            raise SpecError(f"aggregate: the function must be an AggregateFunction, got {self.function!r}")
        if self.function is None and not self.aggregates:
            raise SpecError("aggregate: at least one is needed, such as n=fastwin.Count(), got none")
        self._check_then()
        self._check_output()

    def _check_output(self) -> None:
        named = [name for name, _ in self._written_by_name]
        if self.output is None:
            if self.python is not None:
                what = ", ".join(named) or type(self.function).__name__
                what = what if self.then is None else "then"
                raise SpecError(
                    f"aggregate: {what} needs output=, the columns that it fills, such as output='n bigint'"
                )
            return
        if self.then is not None:
            return  # the columns are those of its rows
        for name in named:
            if name not in self.output.names:
                there = ", ".join(self.output.names)
                raise SpecError(f"aggregate: output= must name the type of {name!r}, it has {there}")
        for name, _ in self.built_in:
            if name in self.output.names:
                raise SpecError(f"aggregate: output= has the column {name!r}, which a built-in aggregate fills")
        rest = [name for name in self.output.names if name not in named]
        if rest and self.function is None:
            raise SpecError(f"aggregate: output= has the column {rest[0]!r}, which nothing fills")
        if self.function is not None and not rest:
            raise SpecError(f"aggregate: {type(self.function).__name__} needs a column in output= to fill")

    @cached_property
    def built_in(self) -> tuple[tuple[str, Aggregate], ...]:
        return tuple((name, one) for name, one in self.aggregates if isinstance(one, Aggregate))

    @property
    def _written_by_name(self) -> list[tuple[str, AggregateFunction]]:
        return [(name, one) for name, one in self.aggregates if not isinstance(one, Aggregate)]

    @property
    def written(self) -> list[tuple[AggregateFunction, tuple[str, ...]]]:
        """The user-written aggregates, each with the names of the columns that it fills; without any, ``("",)``."""
        found: list[tuple[AggregateFunction, tuple[str, ...]]]
        found = [(function, (name,)) for name, function in self._written_by_name]
        if self.function is None:
            return found
        named = [name for name, _ in self._written_by_name]
        there = [] if self.then is not None or self.output is None else self.output.names
        return [*found, (self.function, tuple(name for name in there if name not in named) or ("",))]

    @property
    def sees_elements(self) -> bool:  # type: ignore[override]
        return bool(self.written)

    @property
    def python(self) -> str | None:
        if self.then is not None:
            return "a Python function is called when a window fires"
        return "an aggregate is written in Python" if self.written else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.aggregates) if self.then is None else ()

    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        if self.then is not None or self.output is None or not self.written:
            return self.output
        return pa.schema([self.output.field(name) for _, names in self.written for name in names])

    def arguments(self, *, state_only: bool) -> str:
        parts = [describe(self.function)] if self.function is not None else []
        told = [one for one in self.aggregates if not (state_only and isinstance(one[1], Aggregate))]
        parts += [f"{name}={describe(aggregate)}" for name, aggregate in told]
        return _joined(parts, self.then, self.output)

    def check_merging(self, assigner: WindowAssigner) -> None:
        for function, _ in self.written:
            if not function.can_merge():
                raise SpecError(
                    f"aggregate: {type(function).__name__} has no merge(a, b), which {assigner} needs: windows merge"
                )


@dataclass(frozen=True)
class ReduceEnding(_OneResultEnding):
    """One element of each window, reduced from all. then: is called with it.

    output: the columns of the result; None: the input's but the keys.
    """

    function: ReduceFunction
    then: ProcessWindowFunction | None = None
    output: pa.Schema | None = None
    method = "reduce"
    sees_elements = True

    def __post_init__(self) -> None:
        self._check_then()
        if self.then is not None and self.output is None:
            name = type(self.then).__name__
            raise SpecError(f"reduce: then={name} needs output=, the columns of the rows that it yields")

    @property
    def python(self) -> str | None:
        return "a Python function is called when a window fires"

    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        if self.then is not None:
            return self.output
        assert rows is not None
        if self.output is None:
            found = pa.schema([field for field in rows if field.name not in keys])
            if not found.names:
                raise SpecError("reduce: the input has key columns only; name the result's columns with output=")
            return found
        for name in self.output.names:
            if name not in rows.names:
                raise SpecError(f"reduce: output: there is no column {name!r}; the input has {', '.join(rows.names)}")
        return self.output

    def arguments(self, *, state_only: bool) -> str:
        return _joined([describe(self.function)], self.then, self.output)


@dataclass(frozen=True)
class ProcessEnding(Ending):
    """What a function makes of all elements of each window. output: the columns of the rows that it yields."""

    function: ProcessWindowFunction
    output: pa.Schema
    method = "process"
    sees_elements = True

    def __post_init__(self) -> None:
        if not isinstance(self.function, ProcessWindowFunction):
            raise SpecError(f"process: the function must be a ProcessWindowFunction, got {self.function!r}")

    @property
    def called(self) -> ProcessWindowFunction | None:
        return self.function

    @property
    def python(self) -> str | None:
        return "a Python function is called when a window fires"

    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        return self.output

    def arguments(self, *, state_only: bool) -> str:
        return _joined([describe(self.function)], None, self.output)
