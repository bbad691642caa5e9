"""The questions: what is asked of bids, and how an answer is compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.questions import fingerprint

__all__ = ["BIDS", "CLOSING_MS", "DELAY_MS", "QUERIES", "Query", "answer", "write_answer"]

BIDS = ("auction", "bidder", "price", "ts")
"""The columns of the bids."""

DELAY_MS = 10_000
"""How far the watermark is behind the newest event."""

CLOSING_MS = 3_600_000
"""How long after the other events the last one comes, which closes all windows."""


@dataclass(frozen=True)
class Query:
    """A question.

    size_ms: of the windows, or the gap of sessions. slide_ms: 0 where windows do not slide.
    columns: of the answer, all int64, times in ms. reads: the columns of the bids that it needs.
    """

    name: str
    label: str
    size_ms: int
    columns: tuple[str, ...]
    reads: tuple[str, ...]
    slide_ms: int = 0


QUERIES = {
    query.name: query
    for query in (
        Query(
            "tumbling", "count, sum, min, max of each bidder and minute", 60_000,
            ("key", "window_start", "n", "s", "lo", "hi"), ("bidder", "price", "ts"),
        ),
        Query(
            "q11", "Nexmark q11: bids of each bidder's session, gap 10 s", 10_000,
            ("key", "window_start", "n", "window_end"), ("bidder", "ts"),
        ),
        Query(
            "q5", "Nexmark q5: the auction with most bids in 10 s, every 2 s", 10_000, ("key", "window_start", "n"),
            ("auction", "ts"), slide_ms=2_000,
        ),
        Query(
            "q12", "Nexmark q12: bids of each bidder in 10 s", 10_000, ("key", "window_start", "n"), ("bidder", "ts")
        ),
        Query(
            "q8", "Nexmark q8: who registered and opened auctions in the same 10 s", 10_000,
            ("key", "window_start", "price", "auction"), BIDS,
        ),
        Query(
            "yahoo", "Yahoo's benchmark without JSON: views of each campaign's ads in 10 s", 10_000,
            ("key", "window_start", "n"), ("bidder", "price", "ts"),
        ),
        Query("q7", "Nexmark q7: the highest bid of 10 s", 10_000, ("key", "window_start", "price", "bidder"), BIDS),
    )
}  # fmt: skip


def write_answer(table: pa.Table, query: Query, target: str) -> None:
    """Writes an answer as bare int64, row by row, as FlinkJob.java does."""
    columns = []
    for name in query.columns:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", tz=column.type.tz))
        columns.append(column.cast(pa.int64()).to_numpy())
    np.column_stack(columns).tofile(target)


def answer(query: Query, path: Path, closed_ms: int) -> tuple[int, ...]:
    """Returns the number of rows and a fingerprint; rows of windows that only the closing event opened do not count.

    closed_ms: the closing event's time.
    """
    rows = np.fromfile(path, dtype=np.int64).reshape(-1, len(query.columns))
    rows = rows[rows[:, 1] < closed_ms - CLOSING_MS // 2]
    table = pa.table({name: rows[:, place] for place, name in enumerate(query.columns)})
    return fingerprint(table, list(query.columns))
