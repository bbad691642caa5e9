"""What charts and reports ask for, beside polars and DuckDB: calendars, several windows, joins, rows of windows."""

from collections.abc import Callable

import pyarrow as pa

import fastwin as fw
from bench import peers
from bench.events import events
from bench.race import TWO, Bar, Contender, Entry, Works
from bench.scale import Scale, amount

WORKS = Works()
MINUTE, DAY = 60_000, 86_400_000
PEERS = ("polars", "DuckDB")
FINEST = "minute alone"
ZONE = "Europe/Berlin"
KEYED = fw.key_by("key").event_time("ts")
MINUTES = KEYED.window(fw.TumblingEventTimeWindows.of(MINUTE))
SIZES = {"minute": MINUTE, "five": 5 * MINUTE, "hour": 60 * MINUTE, "day": DAY}


def _ours(run: Callable[[], pa.Table], answer: Callable) -> Contender:
    return Contender(run, answer=answer, notes=lambda result: {"rows": result.num_rows})


@WORKS.add("calendar", "event", (*PEERS, "fixed days"))
def calendar(scale: Scale) -> Entry:
    """Days of a zone over three years; fixed days of UTC stand beside for the time, their windows are others."""
    table = events(scale.events, scale.keys // 100, span_ms=3 * 365 * DAY)
    answer = peers.canonical(peers.WINDOW_COLUMNS[:4])
    days = fw.CalendarEventTimeWindows.of("1 day", time_zone=ZONE)
    aggregates = {"n": fw.Count(), "s": fw.Sum("value")}
    ours, fixed = (
        KEYED.window(windows).aggregate(**aggregates) for windows in (days, fw.TumblingEventTimeWindows.of(DAY))
    )
    sql = (
        f"SELECT key, epoch_ms(date_trunc('day', ts AT TIME ZONE '{ZONE}') AT TIME ZONE '{ZONE}') AS window_start, "
        "count(*) AS n, sum(value)::BIGINT AS s FROM events GROUP BY ALL"
    )
    contenders = {
        "fastwin": _ours(lambda: ours.run(table).main, answer),
        "polars": peers.on_polars(table, _polars_days, answer),
        "DuckDB": peers.on_duckdb(table, sql, answer),
        "fixed days": Contender(lambda: fixed.run(table).main),
    }
    return Entry(f"days of {ZONE} over 3 years, {amount(scale.events)} events", len(table), contenders)


def _polars_days(polars, frame):
    day = polars.col("ts").dt.convert_time_zone(ZONE).dt.truncate("1d").dt.epoch("ms").alias("window_start")
    grouped = frame.lazy().group_by("key", day)
    return grouped.agg(n=polars.len().cast(polars.Int64), s=polars.col("value").sum()).collect()


@WORKS.add("four-windows", "event", (FINEST, "four specs", *PEERS), Bar.at_most(1.5, FINEST))
def four_windows(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys // 100, span_ms=2 * DAY)
    columns = ["key", "window", "window_start", "n", "s"]
    answer = peers.canonical(columns, order=3)
    windows = {name: fw.TumblingEventTimeWindows.of(size) for name, size in SIZES.items()}
    aggregates = {"n": fw.Count(), "s": fw.Sum("value")}
    together = KEYED.windows(**windows).aggregate(**aggregates)
    alone = {name: KEYED.window(one).aggregate(**aggregates) for name, one in windows.items()}

    def one_by_one() -> pa.Table:
        found = [(name, spec.run(table).main.select(["key", "window_start", "n", "s"])) for name, spec in alone.items()]
        return pa.concat_tables(
            main.append_column("window", pa.repeat(name, len(main))).select(columns) for name, main in found
        )

    sql = " UNION ALL ".join(
        f"SELECT key, '{name}' AS \"window\", t // {size} * {size} AS window_start, count(*) AS n, "
        "sum(value)::BIGINT AS s FROM events GROUP BY ALL"
        for name, size in SIZES.items()
    )
    contenders = {
        "fastwin": _ours(lambda: together.run(table).main, answer),
        FINEST: Contender(lambda: alone["minute"].run(table).main),
        "four specs": Contender(one_by_one, answer=answer),
        "polars": peers.on_polars(table, _polars_four, answer),
        "DuckDB": peers.on_duckdb(table, sql, answer),
    }
    return Entry("minute, 5 minutes, hour and day at once", len(table), contenders)


def _polars_four(polars, frame):
    time, lazy = polars.col("ts").dt.epoch("ms"), frame.lazy()
    found = [
        lazy.group_by("key", (time // size * size).alias("window_start"))
        .agg(n=polars.len().cast(polars.Int64), s=polars.col("value").sum())
        .with_columns(polars.lit(name).alias("window"))
        for name, size in SIZES.items()
    ]
    return polars.concat(polars.collect_all(found))


@WORKS.add("window-join", "event", (TWO, *PEERS))
def window_join(scale: Scale) -> Entry:
    left, right = (events(scale.events // 4, scale.keys, seed=seed) for seed in (1, 2))
    columns = ["key", "window_start", "value", "value_right", "ts", "ts_right"]
    answer = peers.canonical(columns, order=6)
    join = fw.window_join(KEYED, KEYED, fw.TumblingEventTimeWindows.of(MINUTE))
    sql = f"""
        SELECT events.key, events.t // {MINUTE} * {MINUTE} AS window_start, events.value, events.t AS ts,
            other.value AS value_right, other.t AS ts_right
        FROM events JOIN other ON events.key = other.key AND events.t // {MINUTE} = other.t // {MINUTE}
    """

    def polars_join(polars, *frames):
        window = (polars.col("ts").dt.epoch("ms") // MINUTE * MINUTE).alias("window_start")
        one, other = (frame.lazy().with_columns(window) for frame in frames)
        return one.join(other, on=["key", "window_start"]).collect()

    contenders = {
        "fastwin": _ours(lambda: join.run(left, right).main, answer),
        TWO: Contender(lambda: join.run(left, right, threads=2).main, answer=answer, threads=2),
        "polars": peers.on_polars(left, polars_join, answer, right),
        "DuckDB": peers.on_duckdb(left, sql, answer, right),
    }
    return Entry(f"inner join by key and minute, twice {amount(len(left))} events", 2 * len(left), contenders)


@WORKS.add("deduplicate", "event", PEERS)
def deduplicate(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys)
    columns = ["key", "window_start", "ts", "value"]
    answer = peers.canonical(columns)
    spec = MINUTES.deduplicate()
    sql = (
        f"SELECT key, t // {MINUTE} * {MINUTE} AS window_start, arg_min(t, rowid) AS ts, "
        "arg_min(value, rowid) AS value FROM events GROUP BY ALL"
    )

    def polars_first(polars, frame):
        window = (polars.col("ts").dt.epoch("ms") // MINUTE * MINUTE).alias("window_start")
        return frame.lazy().with_columns(window).unique(["key", "window_start"], keep="first").collect()

    contenders = {
        "fastwin": _ours(lambda: spec.run(table).main, answer),
        "polars": peers.on_polars(table, polars_first, answer),
        "DuckDB": peers.on_duckdb(table, sql, answer),
    }
    return Entry("the first row of each key and minute", len(table), contenders)


@WORKS.add("top-rows", "event", PEERS)
def top_rows(scale: Scale) -> Entry:
    """The ranks and values of the best rows; of equal values each may give another row."""
    table = events(scale.events, scale.keys // 100)
    columns = ["key", "window_start", "rank", "value"]
    answer = peers.canonical(columns, order=3)
    spec = MINUTES.top(3, by="value")
    sql = f"""
        SELECT key, t // {MINUTE} * {MINUTE} AS window_start, value,
            row_number() OVER (PARTITION BY key, t // {MINUTE} ORDER BY value DESC) AS rank
        FROM events QUALIFY rank <= 3
    """

    def polars_top(polars, frame):
        window = (polars.col("ts").dt.epoch("ms") // MINUTE * MINUTE).alias("window_start")
        best = polars.exclude("key", "window_start").sort_by("value", descending=True).head(3)
        rank = polars.int_range(1, polars.min_horizontal(polars.len(), 3) + 1).alias("rank")
        found = frame.lazy().with_columns(window).group_by("key", "window_start").agg(best, rank)
        return found.explode("ts", "value", "rank").collect()

    contenders = {
        "fastwin": _ours(lambda: spec.run(table).main, answer),
        "polars": peers.on_polars(table, polars_top, answer),
        "DuckDB": peers.on_duckdb(table, sql, answer),
    }
    return Entry("the 3 largest of each key and minute, with their rows", len(table), contenders)


@WORKS.add("empty-windows", "event", ("without them", "DuckDB"))
def empty_windows(scale: Scale) -> Entry:
    """Minutes with rows for those without events, over a day; windows without them stand beside for the time."""
    table = events(scale.events // 4, scale.keys // 10, span_ms=DAY)
    answer = peers.canonical(["key", "window_start", "n", "s"])
    tumbling = fw.TumblingEventTimeWindows.of(MINUTE)
    aggregates = {"n": fw.Count(), "s": fw.Sum("value")}
    filled, plain = (KEYED.window(tumbling, fill=fill).aggregate(**aggregates) for fill in ("empty", None))
    sql = f"""
        WITH counted AS (
            SELECT key, t // {MINUTE} AS w, count(*) AS n, sum(value)::BIGINT AS s FROM events GROUP BY ALL
        ), spans AS (
            SELECT key, unnest(range(min(w), max(w) + 1)) AS w FROM counted GROUP BY key
        )
        SELECT key, w * {MINUTE} AS window_start, coalesce(n, 0) AS n, s FROM spans LEFT JOIN counted USING (key, w)
    """
    contenders = {
        "fastwin": _ours(lambda: filled.run(table).main, answer),
        "without them": Contender(lambda: plain.run(table).main),
        "DuckDB": peers.on_duckdb(table, sql, answer),
    }
    return Entry("minutes of a day, empty ones too", len(table), contenders)


@WORKS.parametrize
def test_reports(race, work, contender):
    race(work, contender)
