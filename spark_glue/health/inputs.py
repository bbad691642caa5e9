"""The ailments of what comes into a query: no row at all, none any more, none of one input."""

from __future__ import annotations

from spark_glue.health.findings import Finding, duration, moment
from spark_glue.health.records import MicroBatch, Setup, watermark_of
from spark_glue.stages.counters import INPUT_DELAYS

__all__ = ["idle_input", "no_input", "silent_input"]

_FEW_BATCHES = 3  # that show a habit
_SILENCE_MS = 60_000  # that is told of where no window is known to wait
_RIGHT = "that is right as long as rows may still come"
_SILENT_MEND = (
    f'{_RIGHT}; with apply(..., idle="1 minute"), which needs a new checkpoint, time goes on with the clock; at the '
    "end of an input, send a row with a later time"
)


def no_input(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """No row has ever come. A query that has had micro-batches which are told of no more is silent at most."""
    if any(one.rows for one in batches) or (batches and batches[0].id > 0):
        return None
    if not batches and setup.running:
        return None  # of the first micro-batch nothing is told until it ends
    names = _sources(batches)
    return Finding(
        "no input",
        f"no row has come in {len(batches):,} micro-batches; the source: {names}",
        "look at the path, topic or filter of the source, and where it starts to read (a new query on Kafka starts "
        'at the end: .option("startingOffsets", "earliest")); a file must be new in the folder',
        {"batches": len(batches), "sources": names},
    )


def idle_input(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """One of several inputs is silent while others go on, and time stands still.

    An input is what has a watermark of its own: frames that were united before are one.
    """
    inputs = _watermarks(batches, setup)
    if inputs is not None and inputs < 2:
        return None
    fed = [one for one in batches if one.rows]
    count = max((len(one.sources) for one in fed), default=0)
    if count < 2 or len(fed) < _FEW_BATCHES:
        return None
    recent = fed[-_FEW_BATCHES:]
    silent = [
        number
        for number in range(count)
        if all(len(one.sources) == count and not one.sources[number][1] for one in recent)
    ]
    marks = {one.watermark_ms for one in recent}
    newest = max((one.newest_ms for one in fed if one.newest_ms is not None), default=None)
    if not silent or len(silent) == count or len(marks) > 1:
        return None
    if inputs is None and marks == {None}:
        return None  # there may be no event time at all
    names = ", ".join(recent[-1].sources[number][0] for number in silent)
    mark = next(iter(marks))
    stands = "there is no watermark" if mark is None else f"the watermark stays at {moment(mark)}"
    return Finding(
        "idle input",
        f"{stands}, because time is that of the slowest input, and this one has been silent for the last "
        f"{len(recent)} micro-batches with rows: {names}",
        'give apply idle="1 minute", or how long a pause may be: an input without rows for so long is not waited for; '
        "it needs a new checkpoint, so until then let the silent input send a row now and then (a heartbeat with the "
        "current time); what it holds back fires as soon as it speaks",
        {"silent": names, "watermark_ms": mark, "newest_ms": newest, "batches": len(recent)},
    )


def silent_input(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """All inputs have become silent, and the last windows may wait."""
    if not setup.running or not batches:
        return None
    last = next((number for number, one in enumerate(reversed(batches)) if one.rows), None)
    if last is None:
        return _silent_throughout(batches, setup)
    fed = batches[-1 - last]
    quiet = batches[-1].at_ms - fed.at_ms
    # Where the last rows have moved the watermark, a micro-batch without rows comes at once, or by the trigger.
    pause = max(fed.duration_ms, setup.trigger_ms or 0)
    if last < 1 or (last < 2 and quiet - pause < _SILENCE_MS):
        return None
    mark = watermark_of(batches)
    opened = sum(one.count("open_windows_change") for one in batches)  # of before nothing is known
    if mark is None or _watermarks(batches, setup) == 0:
        return None
    if _moves(batches[-last:]) or (opened <= 0 and quiet < _SILENCE_MS):
        return None
    waiting = f"at least {opened:,} windows stay open" if opened > 0 else "what it has not passed stays open"
    return Finding(
        "silent input",
        f"the last row came {duration(quiet)} ago; the watermark follows the rows, so it stays at {moment(mark)}, and "
        f"{waiting}",
        _SILENT_MEND,
        {"quiet_ms": quiet, "watermark_ms": mark, "open_windows": max(opened, 0)},
    )


def _silent_throughout(batches: list[MicroBatch], setup: Setup) -> Finding | None:
    """Silence for longer than the records reach back."""
    quiet = batches[-1].at_ms - batches[0].told_ms
    if batches[0].id == 0 or quiet < _SILENCE_MS or _moves(batches):
        return None
    mark = watermark_of(batches)
    follows = _watermarks(batches, setup) != 0
    stands = "" if mark is None or not follows else f"; the watermark follows the rows, so it stays at {moment(mark)}"
    names = _sources(batches)
    return Finding(
        "silent input",
        f"no row has come for at least {duration(quiet)}, and the records of the query reach back no further{stands}; "
        f"the source: {names}",
        f"{_SILENT_MEND if follows else _RIGHT}; if rows should have come, look at the source. Records reach further "
        "back with a larger spark.sql.streaming.numRecentProgressUpdates (100)",
        {"quiet_ms": quiet, "watermark_ms": mark, "sources": names},
    )


def _moves(batches: list[MicroBatch]) -> bool:
    """Whether time goes on without rows, as it does by idle=."""
    return len({one.watermark_ms for one in batches} - {None}) > 1


def _watermarks(batches: list[MicroBatch], setup: Setup) -> int | None:
    """Returns how many watermarks Spark makes, one for an input; None: it is not known.

    0: with idle= ``apply`` makes them, and without event time there are none.
    """
    if setup.delays_ms is not None:
        return len(setup.delays_ms)
    if any(one.count("frame_newest_ms") for one in batches):
        return 0
    return sum(any(one.count(name) for one in batches) for name in INPUT_DELAYS) or None


def _sources(batches: list[MicroBatch]) -> str:
    return ", ".join(dict.fromkeys(name for one in batches for name, _ in one.sources)) or "not known yet"
