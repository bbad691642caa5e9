"""What the general operator is told beyond a Config: the Program, and the columns that say something of a firing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from fastwin.columns.inputs import Inputs
from fastwin.functions.aggregate import AggregateFunction
from fastwin.functions.evictors import Evictor
from fastwin.functions.process import ProcessWindowFunction
from fastwin.functions.reduce import ReduceFunction
from fastwin.operators.config import CHANGE_FIELD, Config
from fastwin.spec.resultcolumns import PANE_INDEX, PANE_IS_LAST, PANE_TIMING, TellsFirings
from fastwin.state.userobjects import Classes
from fastwin.triggers.trigger import Trigger
from fastwin.windows.assigner import WindowAssigner

__all__ = [
    "PANE_FIELDS",
    "Program",
    "PythonAggregate",
    "info_fields",
    "made_names",
]

PANE_FIELDS = [
    pa.field(PANE_INDEX, pa.int32()),
    pa.field(PANE_TIMING, pa.string()),
    pa.field(PANE_IS_LAST, pa.bool_()),
]


def info_fields(asked: TellsFirings) -> list[pa.Field]:
    """Returns the columns that say something of the firing."""
    return [*(PANE_FIELDS if asked.pane_info else []), *([CHANGE_FIELD] if asked.changelog else [])]


def made_names(config: Config, program: Program) -> list[str]:
    """Returns the names of the result columns in the order in which they are made."""
    names = [field.name for field in config.codec.out_fields] + ["window_start", "window_end"]
    if program.process is None:
        names += [column.name for column in config.results]
    if program.output is not None:
        names += program.output.names
    return names + [field.name for field in info_fields(program)]


@dataclass(frozen=True)
class PythonAggregate:
    """A user-written AggregateFunction and the result columns that it fills."""

    function: AggregateFunction
    names: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """What the general operator runs, beyond a Config.

    aggregates: user-written ones. reduce, process: at most one of reduce and aggregates; process takes their result,
    or all elements. output: the columns that Python code fills, None: there are none. side: schemas by tag.
    rows: the input's schema if Python code or an evictor reads elements. inputs: what built-in aggregates are fed with.
    arrival: elements have the time of the clock. pane_info: whether results say which firing of their window they are.
    changelog: whether they say what they change.
    """

    assigner: WindowAssigner
    trigger: Trigger
    evictor: Evictor | None = None
    aggregates: tuple[PythonAggregate, ...] = ()
    reduce: ReduceFunction | None = None
    process: ProcessWindowFunction | None = None
    output: pa.Schema | None = None
    side: tuple[tuple[str, pa.Schema], ...] = ()
    rows: pa.Schema | None = None
    inputs: Inputs = field(default_factory=lambda: Inputs((), ()))
    arrival: bool = False
    pane_info: bool = False
    changelog: bool = False

    @cached_property
    def classes(self) -> Classes:
        """The classes that the user's code refers to, for its state."""
        functions = [part.function for part in self.aggregates]
        return Classes([self.assigner, self.trigger, self.evictor, *functions, self.reduce, self.process])
