"""The demo's stream: flights, or the user's own file, cut into Parquet files that Spark takes one by one."""

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from fastwin.errors import SpecError
from spark_glue.apps.flights import load_flights

__all__ = ["Source", "flights", "own_file", "write_part", "write_parts"]

_TABS = ".tsv"


@dataclass(frozen=True)
class Source:
    """Events in their order of arrival.

    time: the event-time column. key: whose values are windowed apart. session_key: whose sessions are sought.
    delay: a column to average, if there is one. name and noun: what the demo calls them.
    """

    table: pa.Table
    name: str
    noun: str
    time: str
    key: str
    session_key: str
    delay: str | None = None


def flights() -> Source:
    """Returns the departures of 2013 in order of scheduled time, with the actual departure as event time."""
    table = load_flights().select(["origin", "tailnum", "departed", "dep_delay"])
    return Source(table, "departures from New York, 2013", "departures", "departed", "origin", "tailnum", "dep_delay")


def own_file(path: Path, key: str | None, time: str | None) -> Source:
    """Returns the user's own events, in the order of the file.

    Raises SpecError if the file cannot be read, or lacks the columns, naming those that it has.
    """
    if key is None or time is None:
        raise SpecError("--events: needs --key COLUMN and --time COLUMN too")
    try:
        table = _read_csv(path) if _is_csv(path) else pq.read_table(path)
    except (OSError, pa.ArrowException) as problem:
        raise SpecError(
            f"--events: {path} cannot be read as {'CSV' if _is_csv(path) else 'Parquet'}: {problem}"
        ) from None
    for option, column in (("--key", key), ("--time", time)):
        if column not in table.column_names:
            raise SpecError(f"{option}: {path} has no column {column!r}; it has {', '.join(table.column_names)}")
    table = table.select(list(dict.fromkeys([key, time])))
    kind = table.schema.field(time).type
    if pa.types.is_date(kind) or pa.types.is_integer(kind):  # an integer is ms since 1970, as for event_time()
        try:
            moments = (table[time] if pa.types.is_date(kind) else table[time].cast(pa.int64())).cast(pa.timestamp("ms"))
        except pa.ArrowException as problem:
            raise SpecError(f"--time: {time!r} of {path} has values that are no times: {problem}") from None
        table = table.set_column(table.column_names.index(time), time, moments)
    return Source(table, path.name, "events", time, key, key)


def _is_csv(path: Path) -> bool:
    return any(suffix.lower() in (".csv", _TABS) for suffix in path.suffixes)


def _read_csv(path: Path) -> pa.Table:
    tabs = any(suffix.lower() == _TABS for suffix in path.suffixes)
    return pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t" if tabs else ","))


def write_parts(table: pa.Table, parts: int, folder: Path) -> int:
    """Writes a table as files that Spark's file source takes in order; returns how many."""
    folder.mkdir(parents=True)
    parts = max(1, min(parts, table.num_rows))
    for part in range(parts):
        first, end = table.num_rows * part // parts, table.num_rows * (part + 1) // parts
        write_part(_for_spark(table.slice(first, end - first)), part, folder)
    return parts


def write_part(table: pa.Table, number: int, folder: Path) -> None:
    """Writes a file that Spark takes after those with a smaller number: it orders them by modification time."""
    path = folder / f"part-{number:05d}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def _for_spark(table: pa.Table) -> pa.Table:
    # Spark keeps microseconds; naive times are meant as UTC here.
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = pc.cast(table.column(index), pa.timestamp("us", tz=field.type.tz), safe=False)
            if field.type.tz is None:
                column = column.cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(index, field.name, column)
    return table
