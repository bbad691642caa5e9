"""What fastwin is held against on tables: polars, DuckDB, pandas and others, each in the fastest form found for it.

Each function returns a contender whose result is an Arrow table with the columns of WINDOW_COLUMNS (tumbling) or
SESSION_COLUMNS; times are int64 ms. Input is handed over in the library's own format, outside the timing.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from bench.race import Contender, Unavailable, need
from bench.scale import PEER_THREADS
from bench.sessions import at_once, polars_sessions

__all__ = [
    "AGGREGATES",
    "SESSION_COLUMNS",
    "WINDOW_COLUMNS",
    "canonical",
    "on_chdb",
    "on_datafusion",
    "on_duckdb",
    "on_polars",
    "sessions",
    "sliding",
    "tumbling",
]

AGGREGATES = ("n", "s", "lo", "hi")
"""Count, and sum, min and max of ``value``."""

WINDOW_COLUMNS = ["key", "window_start", *AGGREGATES]
SESSION_COLUMNS = ["key", "window_start", "window_end", *AGGREGATES]


def canonical(columns: list[str], order: int = 2) -> Callable[[pa.Table], pa.Table]:
    """Returns a function that brings results to one order and one set of types, to be compared with ``==``.

    order: by how many of the columns rows are put in order.
    """

    def bring(result: pa.Table) -> pa.Table:
        result = result.select(columns)
        for index, field in enumerate(result.schema):
            column = result.column(index)
            if not (pa.types.is_string(field.type) or field.type == pa.int64()):
                wide = pa.types.is_large_string(field.type) or pa.types.is_string_view(field.type)
                column = pc.cast(column, pa.string() if wide else pa.int64())
            result = result.set_column(index, pa.field(field.name, column.type), column)
        places = pc.sort_indices(result, sort_keys=[(name, "ascending") for name in columns[:order]])
        return result.take(places).combine_chunks().replace_schema_metadata(None)

    return bring


def tumbling(events: pa.Table, size_ms: int, aggregates: tuple[str, ...] = AGGREGATES) -> dict:
    """Returns contenders polars, DuckDB and pandas for tumbling windows."""
    answer = canonical(["key", "window_start", *aggregates])
    return {
        "polars": on_polars(events, lambda polars, frame: _polars_tumbling(polars, frame, size_ms, aggregates), answer),
        "DuckDB": on_duckdb(events, _sql_tumbling(size_ms, aggregates), answer),
        "pandas": _pandas(events, lambda frame: _pandas_tumbling(frame, size_ms, aggregates), answer),
    }


def sessions(events: pa.Table, gap_ms: int) -> dict:
    """Returns contenders polars, DuckDB and pandas for sessions."""
    answer, form = canonical(SESSION_COLUMNS), at_once(events, ["key"])

    def by_polars(polars, frame):
        aggregates = _polars_aggregates(polars, AGGREGATES)
        return polars_sessions(polars, frame, ["key"], gap_ms, aggregates, form).collect()

    return {
        "polars": on_polars(events, by_polars, answer),
        "DuckDB": on_duckdb(events, _sql_sessions(gap_ms), answer),
        "pandas": _pandas(events, lambda frame: _pandas_sessions(frame, gap_ms), answer),
    }


def sliding(events: pa.Table, size_ms: int, ends_ms: list[int]) -> dict:
    """Returns the contender polars for some sliding windows, each computed from its events anew."""
    answer = canonical(WINDOW_COLUMNS)
    return {"polars, anew": on_polars(events, lambda pl, frame: _polars_sliding(pl, frame, size_ms, ends_ms), answer)}


# --- polars ---


def on_polars(events: pa.Table, query: Callable, answer: Callable, *others: pa.Table) -> Contender | Unavailable:
    """Returns a contender that runs ``query(polars, frame, *others)`` over tables; it returns a frame."""
    polars = need("polars")
    if isinstance(polars, Unavailable):
        return polars
    frames = [polars.from_arrow(table) for table in (events, *others)]
    return Contender(lambda: query(polars, *frames).to_arrow(), answer=answer, threads=polars.thread_pool_size())


def _polars_aggregates(polars, names: tuple[str, ...]) -> list:
    value = polars.col("value")
    found = {"n": polars.len().cast(polars.Int64), "s": value.sum(), "lo": value.min(), "hi": value.max()}
    return [found[name].alias(name) for name in names]


def _polars_tumbling(polars, frame, size_ms: int, names: tuple[str, ...]):
    window = (polars.col("ts").cast(polars.Int64) // size_ms).alias("window_start")
    grouped = frame.lazy().group_by("key", window).agg(_polars_aggregates(polars, names))
    return grouped.with_columns(polars.col("window_start") * size_ms).collect()


def _polars_sliding(polars, frame, size_ms: int, ends_ms: list[int]):
    time = polars.col("ts").cast(polars.Int64)
    windows = [
        frame.lazy()
        .filter((time >= end - size_ms) & (time < end))
        .group_by("key")
        .agg(_polars_aggregates(polars, AGGREGATES))
        .with_columns(polars.lit(end - size_ms).alias("window_start"))
        for end in ends_ms
    ]
    return polars.concat(polars.collect_all(windows))


# --- DuckDB ---


def on_duckdb(events: pa.Table, sql: str, answer: Callable, other: pa.Table | None = None) -> Contender | Unavailable:
    """Returns a contender that runs a statement over the tables ``events`` and ``other``, whose times are ``t``, ms."""
    duckdb = need("duckdb")
    if isinstance(duckdb, Unavailable):
        return duckdb
    connection = duckdb.connect(config={"threads": PEER_THREADS})
    for name, table in (("events", events), ("other", other)):
        if table is not None:
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT *, epoch_ms(ts) AS t FROM given")
            connection.unregister("given")
    return Contender(lambda: connection.sql(sql).to_arrow_table(), answer=answer, threads=PEER_THREADS)


def _sql_aggregates(names: tuple[str, ...]) -> str:
    found = {"n": "count(*)", "s": "sum(value)::BIGINT", "lo": "min(value)", "hi": "max(value)"}
    return ", ".join(f"{found[name]} AS {name}" for name in names)


def _sql_tumbling(size_ms: int, names: tuple[str, ...]) -> str:
    return (
        f"SELECT key, w * {size_ms} AS window_start, {', '.join(names)} FROM ("
        f"SELECT key, t // {size_ms} AS w, {_sql_aggregates(names)} FROM events GROUP BY ALL)"
    )


def _sql_sessions(gap_ms: int) -> str:
    return f"""
        WITH opened AS (
            SELECT key, t, value, CASE WHEN t - lag(t) OVER by_time > {gap_ms} THEN 1 ELSE 0 END AS fresh
            FROM events WINDOW by_time AS (PARTITION BY key ORDER BY t)
        ), numbered AS (
            SELECT key, t, value, sum(fresh) OVER (PARTITION BY key ORDER BY t) AS session FROM opened
        )
        SELECT key, min(t) AS window_start, max(t) + {gap_ms} AS window_end, {_sql_aggregates(AGGREGATES)}
        FROM numbered GROUP BY key, session
    """


# --- others with SQL ---


def on_datafusion(events: pa.Table, sql: str, answer: Callable) -> Contender | Unavailable:
    """Returns a contender that runs a statement over the table ``events``, whose times are ``t``, ms."""
    datafusion = need("datafusion")
    if isinstance(datafusion, Unavailable):
        return datafusion
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(PEER_THREADS))
    batches = _with_millis(events).to_batches(max_chunksize=-(-len(events) // (4 * PEER_THREADS)))
    context.register_record_batches("events", [batches[part::PEER_THREADS] for part in range(PEER_THREADS)])
    return Contender(lambda: context.sql(sql).to_arrow_table(), answer=answer, threads=PEER_THREADS)


def on_chdb(events: pa.Table, sql: str, answer: Callable) -> Contender | Unavailable:
    """Returns a contender that runs a statement over the table ``events``, whose times are ``t``, ms."""
    chdb = need("chdb.session")
    if isinstance(chdb, Unavailable):
        return chdb
    connection = chdb.Session()
    given = _with_millis(events)  # chDB finds it by its name
    columns = [  # a column that may hold nulls costs more
        name if column.null_count else f"assumeNotNull({name}) AS {name}"
        for name, column in zip(given.column_names, given.columns, strict=True)
    ]
    connection.query(
        f"CREATE OR REPLACE TABLE events ENGINE = Memory AS SELECT {', '.join(columns)} FROM Python(given)"
    )
    asked = f"{sql} SETTINGS max_threads = {PEER_THREADS}"
    return Contender(lambda: connection.query(asked, "ArrowTable"), answer=answer, threads=PEER_THREADS)


def _with_millis(events: pa.Table) -> pa.Table:
    return events.drop_columns(["ts"]).append_column("t", events["ts"].cast(pa.int64()))


# --- pandas ---


def _pandas(events: pa.Table, query: Callable, answer: Callable) -> Contender | Unavailable:
    pandas = need("pandas")
    if isinstance(pandas, Unavailable):
        return pandas
    index = events.column_names.index("ts")
    frame = events.set_column(index, "ts", events["ts"].cast(pa.int64())).to_pandas()
    return Contender(lambda: pa.Table.from_pandas(query(frame), preserve_index=False), answer=answer)


def _pandas_aggregates(names: tuple[str, ...]) -> dict:
    found = {"n": ("value", "size"), "s": ("value", "sum"), "lo": ("value", "min"), "hi": ("value", "max")}
    return {name: found[name] for name in names}


def _pandas_tumbling(frame, size_ms: int, names: tuple[str, ...]):
    window = (frame["ts"] // size_ms * size_ms).rename("window_start")
    return frame.groupby(["key", window], sort=False).agg(**_pandas_aggregates(names)).reset_index()


def _pandas_sessions(frame, gap_ms: int):
    ordered = frame.sort_values("ts", kind="stable")
    fresh = ~(ordered.groupby("key", sort=False)["ts"].diff() <= gap_ms)
    session = fresh.groupby(ordered["key"], sort=False).cumsum().rename("session")
    grouped = ordered.groupby(["key", session], sort=False)
    found = grouped.agg(
        window_start=("ts", "first"), window_end=("ts", "last"), **_pandas_aggregates(AGGREGATES)
    ).reset_index()
    return found.assign(window_end=found["window_end"] + gap_ms)
