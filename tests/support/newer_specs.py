"""Specs of the operators and aggregates that came after those in ``stored_specs``, over the same columns.

State of them is stored, too, from format 5 on, so what a spec says may not change. ``python -m
tests.support.newer_specs`` stores what is missing of the format that is written now.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from tests.support.stored_streams import SAVED, SCHEMA, STORED, events, feed

__all__ = ["JOIN", "JOINED", "SPECS", "STREAMS", "fed", "folder_of", "joined_rows", "opened"]

BY_TEXT = fw.key_by("k").event_time("ts")
BY_NUMBER = fw.key_by("i").event_time("ts")
MINUTE = fw.TumblingEventTimeWindows.of("1 minute")
SLIDING = fw.SlidingEventTimeWindows.of("40 s", "20 s")

BAGS = {
    "median": fw.Median("x"),
    "p90": fw.Quantile("v", 0.9),
    "distinct": fw.CountDistinct("s"),
    "once": fw.Sum("v", distinct=True),
    "most": fw.TopK("s", 2),
    "mode": fw.Mode("v"),
    "largest": fw.Largest("x", 3),
    "smallest": fw.Smallest("s", 2),
    "all": fw.Collect("v"),
    "some": fw.Collect("s", limit=3),
    "set": fw.CollectSet("d"),
    "text": fw.StringAgg("s", "-"),
}
NUMBERS = {
    "ones": fw.BitAnd("v"),
    "bits": fw.BitOr("v"),
    "odd": fw.BitXor("v"),
    "skew": fw.Skewness("x"),
    "tails": fw.Kurtosis("x"),
    "covar": fw.Covar("x", "gap"),
    "corr": fw.Corr("x", "gap"),
    "spread": fw.Histogram("x", [-4.0, 0.0, 4.0]),
    "arrived": fw.FirstArrived("s"),
    "latest": fw.LastArrived("v"),
    "first": fw.First("v", ignore_nulls=False),
    "every": fw.BoolAnd(pc.field("v") > 0),
    "any": fw.BoolOr(pc.field("x") > 8),
    "few": fw.Count(where=pc.field("v") > 0),
}

SPECS: dict[str, fw.WindowSpec] = {
    "first_row": BY_TEXT.window(SLIDING).allowed_lateness("15 s").deduplicate(),
    "last_row": BY_NUMBER.window(MINUTE).allowed_lateness("15 s").deduplicate("last"),
    "rows_apart": BY_TEXT.allowed_lateness("15 s").deduplicate(within="12 s"),
    "top": BY_NUMBER.window(SLIDING).allowed_lateness("15 s").top(2, by="v"),
    "several": (
        BY_TEXT.windows(slide=SLIDING, minute=MINUTE, two=fw.TumblingEventTimeWindows.of("2 minutes"))
        .allowed_lateness("15 s")
        .aggregate(n=fw.Count(), total=fw.Sum("v"), median=fw.Median("x"), all=fw.Collect("s"))
    ),
    "calendar": (
        BY_NUMBER.window(fw.CalendarEventTimeWindows.of("1 day", time_zone="Asia/Kolkata"))
        .allowed_lateness("15 s")
        .aggregate(n=fw.Count(), most=fw.TopK("s", 2))
    ),
    "filled": (
        BY_TEXT.window(SLIDING, fill="empty", longest_gap="3 minutes")
        .allowed_lateness("15 s")
        .aggregate(n=fw.Count(), all=fw.Collect("v"))
    ),
    "bags": BY_TEXT.window(SLIDING).allowed_lateness("15 s").aggregate(**BAGS),
    "bags_of_sessions": BY_NUMBER.window(fw.EventTimeSessionWindows.with_gap("5 s")).aggregate(**BAGS),
    "bags_of_triggers": (
        BY_TEXT.window(MINUTE).trigger(fw.after_watermark(early=fw.CountTrigger.of(3))).aggregate(**BAGS)
    ),
    "numbers": BY_TEXT.window(SLIDING).allowed_lateness("15 s").aggregate(**NUMBERS),
    "numbers_of_sessions": BY_NUMBER.window(fw.EventTimeSessionWindows.with_gap("5 s")).aggregate(**NUMBERS),
    "changelog": (
        BY_TEXT.window(fw.EventTimeSessionWindows.with_gap("5 s"))
        .allowed_lateness("15 s")
        .with_changelog()
        .aggregate(n=fw.Count(), total=fw.Sum("v"))
    ),
}

JOINED = fw.window_join(BY_TEXT.allowed_lateness("15 s"), BY_TEXT, SLIDING, "full")
JOIN = JOINED.bind(SCHEMA, SCHEMA)


def joined_rows(rows: pa.Table) -> pa.Table:
    """Returns every other row as one of each input of JOIN."""
    sides = []
    for side in (0, 1):
        mine = rows.take(pa.array(range(side, rows.num_rows, 2), pa.int32()))
        times = pc.floor_temporal(mine["ts"], unit="millisecond").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        sides.append(JOIN.united(side, mine, times))
    return pa.concat_tables(sides)


STREAMS = (*SPECS, "join")
"""Of which state is stored."""


def opened(name: str) -> fw.Stream:
    """Returns a new stream of one of STREAMS."""
    return JOIN.spec.open(schema=JOIN.schema) if name == "join" else SPECS[name].open(schema=SCHEMA)


def fed(name: str, stream: fw.Stream, batch: int) -> list[fw.Result]:
    """Feeds a batch to a stream that ``opened`` has returned."""
    return feed(stream, batch, joined_rows(events(batch)) if name == "join" else None)


def folder_of(version: int) -> Path:
    """Returns where state of a format lies."""
    return STORED / f"newer-{version}"


def store(folder: Path) -> None:
    """Stores what is saved of each spec of which nothing is there yet."""
    folder.mkdir(exist_ok=True)
    for name in STREAMS:
        if (folder / f"{name}.{SAVED[0]}").exists():
            continue
        stream = opened(name)
        for batch, saved in enumerate(SAVED):
            fed(name, stream, batch)
            (folder / f"{name}.{saved}").write_bytes(stream.delta() if batch else stream.snapshot())


if __name__ == "__main__":
    from fastwin.state.chunks import FORMAT_VERSION

    store(folder_of(FORMAT_VERSION))
