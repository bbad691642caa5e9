"""Takes what users hand in as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from fastwin.columns.decoding import parts
from fastwin.errors import SpecError

__all__ = ["as_table", "check_names", "has_null", "has_small_chunks", "tells_no_types"]

_SMALL_BATCH = 65_536


def as_table(
    data: Any, asked: Callable[[str], bool] | None = None, reads: Callable[[str], bool] | None = None
) -> pa.Table:
    """Returns an input as an Arrow table: a Table or RecordBatch, a pandas or polars DataFrame, or
    anything else with Arrow's PyCapsule interface. Raises SpecError for other things.

    asked: tells whether a column is asked for; a pandas frame with it in its index gives it as a column. None: none is.
    reads: tells whether a column is read. Of frames with rows, others are not converted: they are of nulls. None: all.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
            return _without_objects(data, _from_stream(data, reads), reads)
        if hasattr(data, "iloc") and hasattr(data, "columns"):
            return _from_pandas(_with_index(data, asked), reads)
    except OverflowError as problem:  # of pandas, and without the name
        raise SpecError(f"table: {_too_large(data)}: {problem}") from problem
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise SpecError(f"table: this {type(data).__name__} cannot be read as Arrow: {problem}") from problem
    raise SpecError(
        f"table: must be a pyarrow Table or RecordBatch, a pandas or polars DataFrame, got {type(data).__name__}"
    )


def _from_pandas(frame: Any, reads: Callable[[str], bool] | None) -> pa.Table:
    """Returns a frame's table, of which those columns are converted that are read; see ``as_table``."""
    twice = not frame.columns.is_unique
    if reads is None or not (len(frame) or twice):
        return pa.Table.from_pandas(frame, preserve_index=False)
    read = [not isinstance(label, str) or reads(label) for label in frame.columns]
    labels = list(frame.columns[read])
    table = pa.Table.from_pandas(frame.loc[:, read] if twice else frame, columns=labels, preserve_index=False)
    told = zip(table.column_names, table.columns, strict=True)
    columns = [next(told) if one else (frame.columns[i], pa.nulls(len(frame))) for i, one in enumerate(read)]
    return pa.table([column for _, column in columns], [name for name, _ in columns])


def _too_large(frame: Any) -> str:
    """Returns which column of a frame has an integer that Arrow has no type for."""
    for label, column in frame.items():
        try:
            pa.array(column, from_pandas=True)
        except OverflowError:
            return f"column {label!r}"
        except (pa.ArrowException, ValueError, TypeError):
            continue
    return f"this {type(frame).__name__}"


def _from_stream(frame: Any, reads: Callable[[str], bool] | None) -> pa.Table:
    """Returns the table of what has Arrow's PyCapsule interface. Columns of polars that Arrow has no type for, such as
    integers of 128 bits, are of nulls, without rows and where they are not read. Raises SpecError for others."""
    try:
        return pa.table(frame)
    except pa.ArrowException:
        if not hasattr(frame, "get_columns"):
            raise
    columns = []
    for series in frame.get_columns():
        try:
            columns.append(pa.table(series.to_frame()).column(0))
        except pa.ArrowException as problem:
            if len(series) and (reads is None or reads(series.name)):
                told = (
                    f"column {series.name!r} is {series.dtype}, which Arrow has no type for; cast it, or leave it out"
                )
                raise SpecError(told) from problem
            columns.append(pa.nulls(len(series)))
    return pa.table(columns, frame.columns)


def _without_objects(frame: Any, table: pa.Table, reads: Callable[[str], bool] | None) -> pa.Table:
    """Returns a frame's table; polars gives columns of Python objects as addresses, which nobody may take for values.

    Without rows, and where it is not read, such a column is one of nulls. Raises SpecError for others.
    """
    dtypes = getattr(frame, "dtypes", None)
    if not isinstance(dtypes, list):
        return table
    for i, dtype in enumerate(dtypes):
        if str(dtype) != "Object":
            continue
        name = table.field(i).name
        if table.num_rows and (reads is None or reads(name)):
            raise SpecError(
                f"column {name!r} is of Python objects, which Arrow has no type for; cast it, or leave it out"
            )
        table = table.set_column(i, name, pa.nulls(table.num_rows))
    return table


def _with_index(frame: Any, asked: Callable[[str], bool] | None) -> Any:
    """Returns a pandas frame whose index levels are columns, where they are asked for and no column has their name."""
    there = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    levels = [] if asked is None else [name for name in there if asked(name)]
    return frame.reset_index(level=levels) if levels else frame


def tells_no_types(data: Any, table: pa.Table, names: Iterable[str]) -> bool:
    """Tells whether an input has no rows and columns without a type, as frames have them that were made of nothing.

    names: the columns that the spec names; for pandas, their type may be made up. Raises SpecError if one is missing or
    there twice.
    """
    if table.num_rows:
        return False
    nulls = any(has_null(field.type) for field in table.schema)
    if not (nulls or hasattr(data, "iloc")):
        return False
    names = list(names)
    check_names(table.column_names, names)
    return nulls or any(table.schema.field(name).type == pa.float64() for name in names)


def has_null(kind: pa.DataType) -> bool:
    """Whether a type, or one within it, is that of nulls."""
    return pa.types.is_null(kind) or any(map(has_null, parts(kind)))


def check_names(names: list[str], wanted: Iterable[str]) -> None:
    """Raises SpecError for a column that is missing or there more than once."""
    for name in wanted:
        count = names.count(name)
        if count != 1:
            found = f"is there {count} times" if count else "is missing"
            raise SpecError(f"column {name!r} {found}; the input has {', '.join(names) or 'none'}")


def has_small_chunks(table: pa.Table) -> bool:
    """Whether the chunks of a table are so small that putting them together first costs less than one call for each."""
    return table.num_rows < _SMALL_BATCH * max((column.num_chunks for column in table.columns), default=0)
