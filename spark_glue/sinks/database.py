"""``to_database``: a sink for foreachBatch that keeps the newest results in a table of a database."""

import logging
import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from math import nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

import fastwin as fw
from fastwin.columns.validtext import is_text, valid_text, without_nul
from fastwin.errors import BadRowError, SpecError
from fastwin.spec.ending import ReduceEnding
from fastwin.spec.resultcolumns import BOUNDS, CHANGE, DELETE, WINDOW_COLUMN, WINDOW_TIME, added_columns
from fastwin.windows.named_windows import NamedWindows
from spark_glue.sinks.outputs import check_main_alone

__all__ = ["to_database"]

_LOG = logging.getLogger(__name__)
_MARKS: dict[str, Callable[[int], str]] = {
    "qmark": lambda at: "?",
    "format": lambda at: "%s",
    "pyformat": lambda at: "%s",
    "numeric": lambda at: f":{at}",
}
_POSTGRES = ("psycopg", "psycopg2", "pg8000", "pgdb")
"""Drivers of PostgreSQL, whose text has no U+0000."""


def to_database(connect: Callable[[], Any], table: str, spec: fw.WindowSpec) -> Callable[[DataFrame, int], None]:
    """Returns a function for ``foreachBatch`` that keeps the newest result of each key and window in a table.

    connect: opens a DB-API connection, such as ``lambda: sqlite3.connect("shop.db")``; called on the driver, once for
        each micro-batch. table: its name, as SQL has it; it has to be there, with the columns of the results but for
        the ``change`` of a changelog; an index on the key columns and ``window_start`` makes it quick. spec: that of
        ``apply``.

    A row replaces the one with the same key columns and bounds, of several windows the one of the same ``window``; a
    null is equal to a null. Where the spec says ``.with_changelog()``, rows that are to be deleted are. All of a
    micro-batch is one transaction, and running it again changes nothing, so the table is exact however often a query
    fails. Results pass through the driver.

    Databases take text in UTF-8 alone, and PostgreSQL none with U+0000. In a column that is no key, U+FFFD stands for
    such bytes. A row whose key has some is left out: it would take the place of another key's. The log tells the first
    of each column.

    There is no fence: one driver at a time is up to you. If two run on one checkpoint, such as one that was taken for
    dead and wakes up, the old one may put older results over newer ones.

    Times are handed over as datetimes in UTC, so PostgreSQL's columns for them are ``timestamptz``. Those of
    TIMESTAMP_NTZ have no zone: their columns are ``timestamp``. SQLite gets times and dates as text in ISO format, and
    decimals and intervals as text, too. Which keys are equal the database says: so text needs a collation that tells
    letters apart, and columns of times and floats the precision of the results. Names of columns are quoted with ``"``,
    as standard SQL does it. Raises SpecError for arguments that do not fit, and when the query runs, for a driver whose
    ``paramstyle`` is ``named``, for a connection that is of no driver, for one that says that it commits each
    statement, and for a frame whose columns are not those that the spec gives; BadRowError for a key that is NaN, which
    SQLite keeps as a null. An error of the database ends the query.
    """
    if not callable(connect):
        raise SpecError(f"to_database: connect must be a function that opens a connection, got {connect!r}")
    if not isinstance(table, str) or not table:
        raise SpecError(f"to_database: table must be a name, got {table!r}")
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"to_database: spec must be a WindowSpec, got {type(spec).__name__}")
    if spec.ending is None or not spec.ending.one_row:
        raise SpecError("to_database: needs a spec with one result for each window: aggregates or a reduction")

    told: set[str] = set()

    def write(frame: DataFrame, batch_id: int) -> None:
        check_main_alone(frame, "to_database")
        found = frame.toArrow()
        _check_columns(found.column_names, spec)
        connection = connect()
        try:
            found = _in_text_for(connection, found, _place(spec), table, told)
            results = found.drop_columns([CHANGE]) if spec.changelog else found
            names, rows = results.column_names, [column.to_pylist() for column in results.columns]
            places = [names.index(name) for name in _place(spec)]
            changes = found[CHANGE].to_pylist() if spec.changelog else [None] * found.num_rows
            convert = _converter(connection)
            _refuse_autocommit(connection)
            _refuse_nan(connection, {names[place]: rows[place] for place in places})
            newest: dict[tuple, tuple[str | None, tuple]] = {}
            for change, *values in zip(changes, *rows, strict=True):
                row = tuple(map(convert, values))
                newest[tuple(row[place] for place in places)] = change, row  # in order: a key is in one partition
            _upsert(connection, table, names, places, newest)
            connection.commit()
            _LOG.debug("to_database: batch %d: %d rows were put into %s", batch_id, len(newest), table)
        except BaseException:
            _give_up(connection)
            raise
        connection.close()

    return write


def _give_up(connection: Any) -> None:
    """Takes back what was begun, because of an error, which is the one to tell: the server may be out of reach."""
    with suppress(Exception):
        connection.rollback()
    with suppress(Exception):
        connection.close()


def _place(spec: fw.WindowSpec) -> tuple[str, ...]:
    """Returns the columns that say which row of the table a result is."""
    named = (WINDOW_COLUMN,) if isinstance(spec.assigner, NamedWindows) else ()
    return (*spec.keys, *named, *BOUNDS)


def _check_columns(found: Sequence[str], spec: fw.WindowSpec) -> None:
    """Raises SpecError unless a frame has the columns that the spec gives. found: their names."""
    ending = spec.ending
    assert ending is not None
    timed = (WINDOW_TIME,) if spec.window_time else ()
    given = [*_place(spec), *timed, *ending.columns, *added_columns(spec)]
    of_input = isinstance(ending, ReduceEnding) and ending.output is None
    more = [] if of_input else [name for name in found if name not in (*given, WINDOW_TIME)]  # chain=True adds it
    if more or any(name not in found for name in given):
        raise SpecError(
            f"to_database: spec must be that of apply, and gives the columns {', '.join(given)}"
            f"{', and those of the input' if of_input else ''}; the frame has {', '.join(found)}"
            f"{'; columns of your own cannot be added' if more else ''}"
        )


def _in_text_for(connection: Any, found: pa.Table, place: Sequence[str], table: str, told: set[str]) -> pa.Table:
    """Returns results without text that the database refuses: without rows of such a key, and mended in other columns.

    place: the columns that say which row of the table a result is. told: the columns of which the log has told.
    """
    no_nul = any(_is_of(connection, driver) for driver in _POSTGRES)
    odd = "is no UTF-8, or has U+0000" if no_nul else "is no UTF-8"
    for at, name in enumerate(found.column_names):
        given = found[name].chunks
        chunks = [without_nul(valid_text(chunk)) if no_nul else valid_text(chunk) for chunk in given]
        if all(map(operator.is_, given, chunks)):
            continue
        valid, rows = pa.chunked_array(chunks), found.num_rows
        if name in place and is_text(valid.type):
            before, after = (column.cast(pa.large_binary()) for column in (found[name], valid))
            found = found.filter(pc.equal(before, after).fill_null(True))
            what = f"{rows - found.num_rows} rows with such a key are left out"
        else:
            found = found.set_column(at, name, valid)
            what = "U+FFFD stands for such bytes"
        if name not in told:
            told.add(name)
            _LOG.warning("to_database: column %r has text that %s; in %s, %s", name, odd, table, what)
    return found


def _upsert(
    connection: Any, table: str, names: Sequence[str], places: Sequence[int], newest: dict[tuple, tuple]
) -> None:
    """Removes the rows that are there for these places, and puts those in that are not deleted."""
    mark, quoted = _mark(connection), _quoter(connection)
    cursor = connection.cursor()
    by_nulls: dict[tuple[bool, ...], list[tuple]] = {}
    for place in newest:
        by_nulls.setdefault(tuple(value is None for value in place), []).append(place)
    for nulls, found in by_nulls.items():
        known = [i for i, null in enumerate(nulls) if not null]
        marks = {i: mark(at) for at, i in enumerate(known, 1)}
        wheres = [f"{quoted(names[p])} = {marks[i]}" if i in marks else f"{quoted(names[p])} IS NULL"
                  for i, p in enumerate(places)]  # fmt: skip
        told = [tuple(place[i] for i in known) for place in found]
        cursor.executemany(f"DELETE FROM {table} WHERE {' AND '.join(wheres)}", told)
    rows = [row for change, row in newest.values() if change != DELETE]
    if rows:
        marks_of_row = ", ".join(mark(at) for at in range(1, len(names) + 1))
        columns = ", ".join(map(quoted, names))
        cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks_of_row})", rows)


def _style(connection: Any) -> str:
    return str(_driver(connection).paramstyle)


def _driver(connection: Any) -> Any:
    """Returns the module or package of the DB-API driver, which may lie in another package. O(its depth).

    Raises SpecError where a connection is of no driver, but wraps one.
    """
    for kind in type(connection).__mro__:
        parts = kind.__module__.split(".")
        for depth in range(len(parts), 0, -1):
            module = sys.modules.get(".".join(parts[:depth]))
            if isinstance(getattr(module, "paramstyle", None), str):
                return module
    kind = type(connection)
    raise SpecError(
        f"to_database: connect must return a connection of a DB-API driver, and no module above {kind.__module__}."
        f"{kind.__qualname__} has a paramstyle; of a pool or a proxy, return the driver's own connection"
    )


def _is_of(connection: Any, driver: str) -> bool:
    return _driver(connection).__name__.split(".")[0] == driver


def _refuse_autocommit(connection: Any) -> None:
    """Raises SpecError where the driver tells that each statement is a transaction of its own."""
    told = getattr(connection, "autocommit", None)
    if callable(told) and hasattr(connection, "get_autocommit"):  # MySQL's drivers
        told = connection.get_autocommit()
    if _is_of(connection, "sqlite3") and told is not False:  # before Python 3.12, nothing else tells
        told = told is True or connection.isolation_level is None
    if told is True:
        raise SpecError(
            "to_database: the connection commits each statement by itself (autocommit), and a micro-batch is to be one "
            "transaction; open it without"
        )


def _mark(connection: Any) -> Callable[[int], str]:
    style = _style(connection)
    if style not in _MARKS:
        raise SpecError(f"to_database: the driver's paramstyle is {style!r}; it must be one of {', '.join(_MARKS)}")
    return _MARKS[style]


def _converter(connection: Any) -> Callable[[Any], Any]:
    """Returns what makes of a value what the driver takes. All that are NaN become the same one: a dict tells others
    apart."""
    if not _is_of(connection, "sqlite3"):
        return lambda value: nan if value != value else value
    return _as_sqlite_takes


def _as_sqlite_takes(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value) if isinstance(value, timedelta) else value


def _refuse_nan(connection: Any, places: dict[str, list]) -> None:
    """Raises BadRowError where a key is NaN and the database would take it for a null, which is another key."""
    for name, values in places.items() if _is_of(connection, "sqlite3") else ():
        if any(value != value for value in values):
            raise BadRowError(f"to_database: key column {name!r} has a NaN, and SQLite keeps that as a null")


def _quoter(connection: Any) -> Callable[[str], str]:
    """Returns what makes of a column's name what stands for it in a statement with marks."""
    # Where marks begin with a percent sign, one that is meant is written twice; pg8000 looks for none in names.
    doubled = _style(connection) in ("format", "pyformat") and not _is_of(connection, "pg8000")
    percent = "%%" if doubled else "%"
    return lambda name: '"' + name.replace('"', '""').replace("%", percent) + '"'
