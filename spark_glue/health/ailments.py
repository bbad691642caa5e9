"""The ailments of a query: for each, when it is there and what to do. Pure functions of records and set-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from spark_glue.health.findings import Finding, Findings, duration, moment, share
from spark_glue.health.inputs import idle_input, no_input, silent_input
from spark_glue.health.records import MicroBatch, Setup, read_records, watermark_of
from spark_glue.plan.errortext import error_in

__all__ = ["diagnose"]

_DAY_MS = 86_400_000
_MOST = 0.9  # of all: nearly all
_FEW_LATE = 0.1  # of all
_FEW_BATCHES = 3  # that show a habit
_MANY_BATCHES = 5
_LONG_DELAY_MS = 3_600_000
_RECENT = 20
_FEW_ROWS = 10_000  # in a micro-batch, whose fixed cost is then more than its work
_SKEW = 3.0  # times the median task
_LONG_TASK_MS = 500
_PARTITIONS = 8  # for each core
_LARGE_VALUE = 1_000_000  # bytes, which Spark takes some 50 ms to read and write
_FEW_LOADING = 0.1  # of the time of the micro-batches

_TRACEBACK = "Traceback (most recent call last):"
_ANY_ERROR = (
    "mend what it names and start the query again with the same checkpoint; see Errors on the page Troubleshooting"
)
_KNOWN_ERRORS = {
    "Python worker failed to connect back": "Spark gives a Python worker ten seconds to start, and the machine was too "
    "busy: start the query again with the same checkpoint, with less beside it or fewer cores in local[...]",
}

Check = Callable[[list[MicroBatch], Setup], Finding | None]


def diagnose(records: Sequence[Mapping[str, Any]], setup: Setup) -> Findings:
    """Returns what is wrong with a query.

    records: its progress, as ``json.loads(progress.json)`` gives it. setup: how it was set up.
    """
    batches = read_records(records)
    found = [finding for check in _CHECKS if (finding := check(batches, setup)) is not None]
    named = {finding.name for finding in found}
    kept = [one for one in found if not named & _EXPLAINED.get(one.name, set())]
    return Findings(tuple(kept), _summary(batches, setup))


def _summary(batches: list[MicroBatch], setup: Setup) -> str:
    state = "runs" if setup.running else "has ended"
    if not batches:
        return f"The query {state}. It has told of no micro-batch yet."
    worked = [one for one in batches if one.counters]
    fired = sum(one.count("fired") for one in batches)
    watermark = watermark_of(batches)
    stands = "there is no watermark yet" if watermark is None else f"the watermark is {moment(watermark)}"
    return (
        f"The query {state}. Looked at {len(batches):,} micro-batches, {len(worked):,} with work: "
        f"{sum(one.rows for one in batches):,} rows, {fired:,} results, {sum(one.late for one in batches):,} late; "
        f"{stands} (UTC)."
    )


def _fed(batches: list[MicroBatch]) -> list[MicroBatch]:
    return [one for one in batches if one.count("events") or one.count("bad")]


def _failed(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    if setup.error is None:
        return None
    first = setup.error.split("\n", 1)[0]
    error = (error_in(setup.error) if first.endswith(_TRACEBACK) else None) or first
    return Finding(
        "failed",
        f"the query ended with an error: {error}",
        next((mend for sign, mend in _KNOWN_ERRORS.items() if sign in setup.error), _ANY_ERROR),
        {"error": error},
    )


def _wrong_store(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    if setup.store is None or "RocksDB" in setup.store or setup.small_state:
        return None
    return Finding(
        "wrong store",
        f"the state store is {setup.store}, in which stateful Python operators cannot keep their state",
        "take a session of spark_glue.session, or set spark.sql.streaming.stateStore.providerClass to "
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider before it is built",
        {"store": setup.store},
    )


def _first_format(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    if not setup.first_format or setup.small_state:
        return None
    return Finding(
        "state format 1",
        "the checkpoint is of Spark's first format: where Spark runs a task twice, the later attempt may overwrite "
        "state that the other one has committed",
        "start the query anew with an empty checkpoint folder, in a session of spark_glue.session or with "
        "spark.sql.streaming.stateStore.checkpointFormatVersion=2",
        {"format": 1},
    )


def _no_apply(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    if not any(one.rows for one in batches) or any(one.counters for one in batches):
        return None
    return Finding(
        "no windows",
        f"{sum(one.rows for one in batches):,} rows have come, but no counters of a frame of apply: the query has "
        "none, or its sink does not read the frame to the end",
        "let the sink read the whole frame once, as spark_glue.route does; show() or take() stops it half-way",
        {"rows": sum(one.rows for one in batches)},
    )


def _future_date(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """A date far ahead has moved the watermark, so that what follows is late."""
    rightly = False  # the data lies ahead of the clock, and little of it is late
    for before, one in zip([None, *batches], batches, strict=False):
        mark, reached = one.watermark_ms, _reached(one)
        ahead = reached - one.at_ms
        told = before.watermark_ms if before is not None else None
        jumped = mark is not None and told is not None and mark - told > 30 * _DAY_MS
        far = ahead > _DAY_MS
        if not far and not jumped:
            continue
        later = _fed(_behind(one, batches))
        events, late = sum(other.count("events") for other in later), sum(other.late for other in later)
        if events and late < (_FEW_LATE if far else _MOST) * events:
            rightly = rightly or far  # or the data has a gap
            continue
        if not events and (rightly or not far):
            continue
        behind = f"; {late:,} of {events:,} rows since are late" if events else ""
        return Finding(
            "date in the future",
            f"by micro-batch {one.id} a row of {moment(reached)} has come, "
            + (f"{duration(ahead)} ahead of the clock" if far else "far ahead of the others")
            + f", and the watermark went there{behind}",
            'apply(..., max_future_skew="1 day"), the default, takes such a row for a bad one, with '
            '.bad_rows("divert") to see it. It moves a withWatermark of your own all the same: give apply watermark= '
            "in its place. The watermark of this checkpoint does not go back: begin a new one",
            {"batch_id": one.id, "newest_ms": reached, "clock_ms": one.at_ms, "late": late, "events": events},
        )
    return None


def _reached(one: MicroBatch) -> int:
    return max(one.watermark_ms or 0, one.newest_ms or 0)


def _behind(one: MicroBatch, batches: list[MicroBatch]) -> list[MicroBatch]:
    """Returns the micro-batches behind one, up to the next that goes a day further."""
    found = []
    for other in batches:
        if other.id > one.id:
            found.append(other)
            if _reached(other) > _reached(one) + _DAY_MS:
                break
    return found


def _all_late(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    fed = [one for one in _fed(batches) if one.watermark_ms is not None][-_RECENT:]
    events, late = sum(one.count("events") for one in fed), sum(one.late for one in fed)
    if not events or late < _MOST * events:
        return None
    mark = fed[-1].watermark_ms
    newest = max((one.newest_ms for one in fed if one.newest_ms is not None), default=None)
    behind = "" if newest is None or mark is None else f"; the newest of them is of {moment(newest)}"
    return Finding(
        "all rows late",
        f"{late:,} of the last {events:,} rows ({share(late, events)}) were late: the watermark is "
        f"{moment(mark or 0)}{behind}",
        "a longer watermark= or .allowed_lateness(...); a file source that reads the oldest files first (no "
        "latestFirst); to compute an old period again, a new checkpoint",
        {"late": late, "events": events, "watermark_ms": mark, "newest_ms": newest},
    )


def _many_late(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """Not all, but more than come late by themselves."""
    fed = [one for one in _fed(batches) if one.watermark_ms is not None][-_RECENT:]
    events, late = sum(one.count("events") for one in fed), sum(one.late for one in fed)
    if late < _FEW_LATE * events or not 0 < late < _MOST * events:
        return None
    worst = max(fed, key=lambda one: one.late)
    return Finding(
        "many rows late",
        f"{late:,} of the last {events:,} rows ({share(late, events)}) were late; most of them, {worst.late:,}, in "
        f"micro-batch {worst.id}, whose watermark was {moment(worst.watermark_ms or 0)}",
        "a longer watermark= or .allowed_lateness(...), and .side_output_late_data() to see them; files and partitions "
        "that are read in the order of their times",
        {"late": late, "events": events, "batch_id": worst.id, "watermark_ms": worst.watermark_ms},
    )


def _all_bad(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    fed = _fed(batches)[-_RECENT:]
    bad = sum(one.count("bad") for one in fed)
    taken = sum(one.count("events") for one in fed)
    if not bad or bad < _MOST * (bad + taken):
        return None
    return Finding(
        "all rows bad",
        f"{bad:,} of the last {bad + taken:,} rows ({share(bad, bad + taken)}) have no usable time (null, before 1970, "
        "or further ahead of the clock than max_future_skew), or no usable gap of a session",
        'look at them with .bad_rows("divert") and their bad_reason; mostly it is another unit, event_time("ts", '
        'unit="s"), a format that was not parsed, or a wrong clock',
        {"bad": bad, "rows": bad + taken},
    )


def _long_delay(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """The delay of the watermark is longer than all that has come, which only records from the first one on tell."""
    if not batches or batches[0].id > 0:
        return None
    fed = [one for one in _fed(batches) if one.newest_ms is not None]
    if not fed or not setup.delays_ms or any(one.count("fired") for one in batches):
        return None
    newest = max(one.newest_ms or 0 for one in fed)
    span = newest - min(one.newest_ms or 0 for one in fed)
    delay = max(setup.delays_ms)
    if delay <= span or (delay < _LONG_DELAY_MS and len(fed) < _MANY_BATCHES):
        return None  # or it has just begun
    return Finding(
        "delay longer than the data",
        f"the watermark is {duration(delay)} behind the newest row, and the newest rows of all micro-batches lie "
        f"within {duration(span)}, so that hardly a window can have ended",
        "wait until as much has come, or give apply a shorter watermark=, with .allowed_lateness(...) for what comes "
        "later",
        {"delay_ms": delay, "span_ms": span, "newest_ms": newest},
    )


def _no_interval(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    worked = [one for one in batches if one.counters]
    if setup.trigger_ms != 0 or len(worked) < _FEW_BATCHES:
        return None
    rows, took = median(one.rows for one in worked), median(one.duration_ms for one in worked)
    if rows >= _FEW_ROWS:
        return None
    told = f"{rows:,.0f} row{'s' * (rows != 1)}"
    return Finding(
        "no trigger interval",
        f"the query starts a micro-batch as soon as it can: {len(worked):,} of them, with {told} each in the "
        f"median, in {duration(took)}. Each costs 0.2 to 0.5 s, however little there is to do",
        '.trigger(processingTime="10 seconds") on the writer, or as many seconds as results may wait',
        {"batches": len(worked), "median_rows": rows, "median_ms": took},
    )


def _reloads(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    worked = [one for one in batches if one.counters][1:]  # the first one after a start has to
    visited = [one for one in worked if one.visits][-_RECENT:]
    loaded = sum(one.count("streams_loaded") for one in visited)
    visits = sum(one.visits for one in visited)
    took = sum(one.count("load_ms") for one in visited)  # of all tasks, which run side by side
    if len(visited) < _FEW_BATCHES or loaded < visits / 2 or took < _FEW_LOADING * sum(b.duration_ms for b in visited):
        return None
    return Finding(
        "state reloaded",
        f"{loaded:,} of {visits:,} visits of a share ({share(loaded, visits)}) read its state from the state store, "
        f"which took {duration(took)} in all, instead of going on from the worker's memory",
        "more room: spark.executorEnv.FASTWIN_LIVE_BYTES, FASTWIN_CACHE_BYTES; less than a minute between triggers "
        "(Spark ends idle workers); spark.python.worker.reuse on; with several executors, a longer spark.locality.wait",
        {"loaded": loaded, "visits": visits, "load_ms": took},
    )


def _skew(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    tasks = setup.tasks
    if tasks is None or tasks.count < 2 or tasks.longest_ms < _LONG_TASK_MS:
        return None
    if tasks.longest_ms < _SKEW * max(tasks.median_ms, 1):
        return None
    return Finding(
        "skew",
        f"one of {tasks.count:,} tasks took {duration(tasks.longest_ms)}, and half of those with work at most "
        f"{duration(tasks.median_ms)}: a few keys have most of the work",
        "built-in aggregates are computed before the shuffle, which makes little of hot keys; for functions and "
        "triggers in Python, add a column to key_by that divides the hot key, and add up its parts behind",
        {"tasks": tasks.count, "median_ms": tasks.median_ms, "longest_ms": tasks.longest_ms},
    )


def _partitions(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    count = next((one.partitions for one in reversed(batches) if one.partitions), None)
    if count is None or setup.cores is None or count < _PARTITIONS * setup.cores:
        return None
    took = median(one.duration_ms for one in batches)
    return Finding(
        "many partitions",
        f"the state has {count:,} partitions for {setup.cores:,} cores, and each costs time in every micro-batch "
        f"({duration(took)} in the median)",
        "spark.sql.shuffle.partitions at one or two for each core before the query's first start; an existing "
        "checkpoint keeps its number"
        + ("" if setup.small_state else "; where they must be many and state is small, apply(..., small_state=True)"),
        {"partitions": count, "cores": setup.cores, "median_ms": took},
    )


def _large_value(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """State that is written whole in each micro-batch has become large."""
    if not setup.small_state:
        return None
    visited = [one for one in batches if one.visits][-_RECENT:]
    if len(visited) < _FEW_BATCHES:
        return None
    size = median(one.count("log_bytes") / one.visits for one in visited)
    if size < _LARGE_VALUE:
        return None
    return Finding(
        "large small state",
        f"with small_state=True each visit writes the state of a share whole, and that is {size / 1e6:,.1f} MB by now",
        "go on without small_state=, which writes what has changed: export_state, and a new checkpoint with history=",
        {"bytes": int(size), "batches": len(visited)},
    )


# The gravest first.
_CHECKS: tuple[Check, ...] = (
    _failed,
    _wrong_store,
    no_input,
    _no_apply,
    _all_bad,
    _future_date,
    _all_late,
    _many_late,
    idle_input,
    silent_input,
    _long_delay,
    _reloads,
    _large_value,
    _skew,
    _no_interval,
    _partitions,
    _first_format,
)

# What needs no telling where one of these is found.
_EXPLAINED = {
    "all rows late": {"date in the future"},
    "many rows late": {"date in the future"},
    "silent input": {"idle input"},
    "no input": {"failed", "wrong store"},
    "failed": {"wrong store"},
}
