"""What users of Spark write today for windows of their own: one call of Python for each key and micro-batch."""

import json
from collections.abc import Iterator
from typing import Any

from bench.lab import Input, Query

__all__ = ["query"]

MINUTE_MS = 60_000
_RESULT = "key long, window_start timestamp, window_end timestamp, n long, s long, lo long, hi long"
_COLUMNS = ["key", "window_start", "window_end", "n", "s", "lo", "hi"]


def _windows(key: tuple[int], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Tumbling minutes of one key: count, sum, min and max, kept as JSON until the watermark has passed."""
    import pandas as pd

    windows = json.loads(state.get[0]) if state.exists else {}
    watermark = state.getCurrentWatermarkMs()
    for frame in frames:
        starts = frame["ts"].astype("int64") // 1_000_000
        starts = starts - starts % MINUTE_MS
        found = frame["value"].groupby(starts).agg(n="size", s="sum", lo="min", hi="max")
        for start, n, s, lo, hi in found.itertuples():
            if start + MINUTE_MS <= watermark:
                continue
            old = windows.get(str(start))
            new = [int(n), int(s), int(lo), int(hi)]
            if old is not None:
                new = [old[0] + new[0], old[1] + new[1], min(old[2], new[2]), max(old[3], new[3])]
            windows[str(start)] = new
    due = sorted(start for start in map(int, windows) if start + MINUTE_MS <= watermark)
    if due:
        rows = [[key[0], start, start + MINUTE_MS, *windows.pop(str(start))] for start in due]
        out = pd.DataFrame(rows, columns=_COLUMNS)
        for bound in ("window_start", "window_end"):
            out[bound] = pd.to_datetime(out[bound], unit="ms")
        yield out
    if windows:
        state.update((json.dumps(windows),))
        state.setTimeoutTimestamp(max(min(map(int, windows)) + MINUTE_MS, watermark + 1))
    else:
        state.remove()


def query(delay: str) -> Query:
    """Returns the query: applyInPandasWithState on each key, with timeouts in event time."""

    def per_key(given: Input) -> Any:
        from pyspark.sql.streaming.state import GroupStateTimeout

        grouped = given.frame.select("key", "ts", "value").withWatermark("ts", delay).groupBy("key")
        return grouped.applyInPandasWithState(
            _windows, _RESULT, "windows string", "append", GroupStateTimeout.EventTimeTimeout
        )

    return per_key
