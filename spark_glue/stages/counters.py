"""The counters of a micro-batch: their names, how they are counted, and how they reach Spark's observed metrics.

A new counter is one line here, in ``_GROWING`` or ``_LEVELS``, if ``fastwin.Metrics`` has it, and a field of
``BatchMetrics``.
"""

import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

import fastwin as fw
from fastwin.errors import SpecError
from spark_glue.plan.compat import is_observation
from spark_glue.plan.queries import OBSERVED

__all__ = [
    "COUNTERS",
    "INPUT_DELAYS",
    "INPUT_TIMES",
    "LEVELS",
    "SHOWN",
    "WATERMARK",
    "WORK",
    "WORKER_BYTES",
    "check_name",
    "count",
    "counters_in",
    "counters_text",
    "observed",
    "observed_of_shares",
    "with_names",
]

# What a stream counts from its start, by the name in Metrics.
_GROWING = {
    "events": "events",  # rows taken by the operator
    "late": "late",  # rows sent to the late output
    "dropped": "num_late_records_dropped",
    "bad": "bad",  # bad rows diverted or dropped
    "unassigned": "unassigned",  # rows that no window took
    "fired": "fired",  # result rows
    "unfired": "unfired",  # windows of keys that went with contents, without ever firing
}
# What a stream has at the moment; the counter is the change.
_LEVELS = {
    "open_windows_change": "open_windows",
    "timers_change": "timers",
    "state_rows_change": "state_rows",
}
WATERMARK = "watermark_ms"
"""Not added up; 0: there is no watermark yet."""

WORKER_BYTES = "worker_bytes"
"""The most memory that a Python worker has taken so far; not added up either."""
SHOWN = (*_GROWING, *_LEVELS, "state_bytes", WATERMARK)
"""What a line of counters has. ``state_bytes``: written to the state store."""
WORK = (
    *("streams_kept", "streams_caught_up", "streams_loaded", "load_ms", "write_ms", "log_deltas", "log_bytes"),
    *("loaded_cold", "loaded_behind", "loaded_damaged", "loaded_changed"),
    *("deltas_caught_up", "deltas_loaded", "copies_hit"),
)
"""How state was kept: visits of shares whose stream stood there, went on by deltas, or was loaded whole; the time for
that, and for storing; deltas in the logs of the shares that were visited, and their bytes. Then why streams were
loaded; how many deltas were taken to go on and to load; and how many of these were copies of the machine."""
INPUT_TIMES = ("input_0_newest_ms", "input_1_newest_ms")
"""The newest event time that each input has brought, where Spark makes the watermark; 0: it had no rows."""
INPUT_DELAYS = ("input_0_delay_ms", "input_1_delay_ms")
"""1 + how far Spark's watermark is behind each input; 0: there is no such input, or it has a watermark of its own."""
LEVELS = (
    *(WORKER_BYTES, "live_bytes", "spilled_bytes", "frame_newest_ms", "held_by"),
    *(*INPUT_TIMES, *INPUT_DELAYS),
)
"""The highest of all visits. ``live_bytes``: of memory that the streams of a worker take; ``spilled_bytes``: of them on
the local disk. ``frame_newest_ms``: the newest event time, 0 where the frame does not make its watermark itself.
``held_by``: 1 + the number of the input that holds time back; 0: none, or not known here, see ``watermarks``."""

COUNTERS = (*SHOWN, *WORK, *LEVELS)
"""All names, in the order in which they travel."""

_HIGHEST = (WATERMARK, *LEVELS)  # of these the highest of all visits counts, the others are added up


def count(
    before: fw.Metrics,
    after: fw.Metrics,
    *,
    bad: int = 0,
    kept: tuple[int, int] | None = None,
    work: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Returns the counters of what a stream has done between two looks at its metrics.

    bad: bad rows that the stream has not seen. kept: bytes written to the state store, and the watermark; None: the
    stream ends here, and all state with it. work: what is known of WORK and LEVELS.
    """
    found = {name: getattr(after, metric) - getattr(before, metric) for name, metric in _GROWING.items()}
    found["bad"] += bad
    for name, metric in _LEVELS.items():
        found[name] = 0 if kept is None else getattr(after, metric) - getattr(before, metric)
    written, watermark = kept or (0, 0)
    found |= {"state_bytes": written, WATERMARK: max(0, watermark)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return found | dict.fromkeys((*WORK, *LEVELS), 0) | {WORKER_BYTES: peak} | dict(work or {})


def counters_text(counters: Mapping[str, int]) -> str:
    """Returns counters, in the order of COUNTERS, as text with commas.

    One column, because each costs a group its time, and of a type of which nulls cost next to nothing.
    """
    return ",".join(str(counters[name]) for name in COUNTERS)


def check_name(name: object, streaming: bool) -> None:
    """Raises SpecError unless ``name`` can name the counters of a frame."""
    if is_observation(name):
        if streaming:
            raise SpecError("name: an Observation is for batch frames; for a streaming frame give text")
    elif not isinstance(name, str) or not name:
        raise SpecError(f"name: must be the name of the counters, got {name!r}")


def observed(frame: DataFrame, name: str | Observation, counters: Column) -> DataFrame:
    """Returns the frame with its counters observed. counters: arrays in the order of COUNTERS, or null."""
    columns = {counter: counters[i] for i, counter in enumerate(COUNTERS)}
    newest = F.max(columns.pop(WATERMARK))
    most = [F.coalesce(F.max(columns.pop(level)), F.lit(0)).alias(level) for level in LEVELS]
    sums: list[Column] = [F.coalesce(F.sum(column), F.lit(0)).alias(counter) for counter, column in columns.items()]
    return frame.observe(name, *sums, F.when(newest > 0, newest).alias(WATERMARK), *most)


def observed_of_shares(frame: DataFrame, name: str, counters: str, delays: Sequence[int] = ()) -> DataFrame:
    """Returns a stream's frame with its counters observed, as one map by name (``with_names``).

    counters: the column that has them as text, in a few rows. Each expression that is observed goes to every task and
    back, and is compiled there. So the tasks gather texts and nothing else, and Spark's driver adds them up, once.
    delays: how far Spark's watermark is behind each input of the frame, ms, which no task tells.
    """
    known = {key: delay + 1 for key, delay in zip(INPUT_DELAYS, delays, strict=False)}
    begin = f"array({','.join(f'{known.get(key, 0)}L' for key in COUNTERS)})"
    highest = " or ".join(f"i = {COUNTERS.index(name)}" for name in _HIGHEST)
    visits = f"transform(collect_list({counters}), visit -> cast(split(visit, ',') as array<bigint>))"
    both = f"transform(found, (value, i) -> if({highest}, greatest(value, visit[i]), value + visit[i]))"
    values = f"aggregate({visits}, {begin}, (found, visit) -> {both})"
    by_name = f"map_from_arrays(split('{','.join(COUNTERS)}', ','), {values})"
    return frame.observe(name, F.expr(by_name).alias(OBSERVED))


def with_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what was observed of a stream by the names of COUNTERS; another row as it is."""
    told = row.get(OBSERVED)
    if len(row) != 1 or not isinstance(told, Mapping) or set(told) != set(COUNTERS):
        return dict(row)
    return {name: told[name] for name in COUNTERS} | {WATERMARK: told[WATERMARK] or None}


def counters_in(observed: Mapping[str, Mapping[str, Any]], *, earlier: bool = False) -> dict[str, dict[str, Any]]:
    """Returns the counters of the frames of ``apply`` by the names of the frames; what users observe is left out.

    observed: all that was observed in a micro-batch. earlier: takes kept records of earlier versions, too. These have
    SHOWN, and lack counters that have come since; a watermark may be missing where there was none.
    """
    rows = {name: with_names(row) for name, row in observed.items()}
    if earlier:
        return {name: row for name, row in rows.items() if row.keys() >= set(SHOWN) - {WATERMARK}}
    return {name: row for name, row in rows.items() if row.keys() == set(COUNTERS)}
