"""Plans of specs whose results are rows of the input: what is kept, what comes out, and who runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.errors import SpecError
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.config import Config
from fastwin.operators.general.operator import GeneralOperator
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.firsts import Apart, FirstsOperator, InWindows
from fastwin.operators.kept.joins import CoGroup, Pairs
from fastwin.operators.kept.operator import RowsOperator
from fastwin.operators.kept.picks import Best, Latest, Pick
from fastwin.operators.protocol import Operator
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.ending import ReduceEnding
from fastwin.spec.joinending import TIME, JoinEnding
from fastwin.spec.resultcolumns import BOUNDS, WINDOW_TIME, added_columns
from fastwin.spec.rowendings import DeduplicateEnding, RowsEnding, TopEnding
from fastwin.windows.apart import RowsApart

__all__ = ["check_rows_ending", "kept_config", "kept_operator"]


def check_rows_ending(spec: SpecBuilder, rows: pa.Schema, operator: str) -> None:
    """Raises SpecError if the columns of rows, or the operator, do not go with an ending whose results they are."""
    ending = spec.ending
    if isinstance(ending, ReduceEnding) and ending.output is None:
        _check_added(spec, rows)
    if not isinstance(ending, RowsEnding):
        return
    if operator == GeneralOperator.name and ending.called is None:
        raise SpecError(f"{ending.method}: {ending.arguments(state_only=False)} does not run on the general operator")
    if not set(rows.names) - set(spec.keys):
        raise SpecError(f"{ending.method}: the input has key columns only, so there is nothing to hand out")
    _check_added(spec, rows)
    if isinstance(ending, TopEnding):
        _check_by(ending.by, rows, spec.keys)


def _check_added(spec: SpecBuilder, rows: pa.Schema) -> None:
    """Raises SpecError if rows have a column that the results have beside them."""
    assert spec.ending is not None
    window_time = [WINDOW_TIME] if spec.window_time else []
    for name in (*BOUNDS, *window_time, *spec.ending.names, *added_columns(spec)):
        if name in rows.names:
            told = f"the result adds the column {name!r}, which the input has; rename it"
            raise SpecError(f"{spec.ending.method}: {told}")


def _check_by(by: str, rows: pa.Schema, keys: tuple[str, ...]) -> None:
    if by not in rows.names:
        raise SpecError(f"top: by: there is no column {by!r}; the input has {', '.join(rows.names)}")
    if by in keys:
        raise SpecError(f"top: by: {by!r} is a key column, the same for all rows of a window")
    kind = decoded_type(rows.field(by).type)
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal, pa.types.is_boolean,
        pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
    )  # fmt: skip
    if not any(test(kind) for test in tests) or pa.types.is_interval(kind):
        raise SpecError(f"top: by: column {by!r} is {kind}, which has no order")


def kept_config(spec: SpecBuilder, config: Config, rows: pa.Schema) -> KeptConfig:
    """Returns the Config of an operator that hands rows out. rows: the columns of the input that users see."""
    assert isinstance(spec.ending, RowsEnding)
    own = (TIME,) if isinstance(spec.ending, JoinEnding) else ()
    left_out = own if spec.ending.method == "co_group" else (*own, *spec.keys)  # the function sees whole rows
    kept = pa.schema([pa.field(field.name, decoded_type(field.type)) for field in rows if field.name not in left_out])
    filled = spec.ending.filled(rows, spec.keys)
    assert filled is not None
    columns = pa.schema([*list(config.main_schema)[: len(spec.keys) + len(BOUNDS)], *filled])
    return KeptConfig(**replace(config, columns=columns).parts(), kept=kept)


def kept_operator(config: KeptConfig, spec: SpecBuilder, slicing: Callable[[], Slicing]) -> Operator:
    """Returns a fresh operator that hands rows out. slicing: makes that of the spec's windows."""
    ending = spec.ending
    if isinstance(spec.assigner, RowsApart):
        return FirstsOperator(config, Apart(spec.assigner.within_ms))
    if isinstance(ending, DeduplicateEnding) and ending.keep == "first":
        return FirstsOperator(config, InWindows(slicing()))
    return RowsOperator(config, slicing(), _pick(ending, spec.keys))


def _pick(ending: object, keys: tuple[str, ...]) -> Pick:
    match ending:
        case DeduplicateEnding(time_column=time):
            return Latest(None if time in keys else time)
        case TopEnding():
            return Best(ending.n, ending.by, ending.ascending)
        case JoinEnding():
            return Pairs(ending) if ending.function is None else CoGroup(ending, keys)
    raise SpecError(f"spec: no operator keeps rows for {ending!r}")
