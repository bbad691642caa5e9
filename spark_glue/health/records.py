"""What is known of a query: a record for each micro-batch, and how it was set up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_glue.plan.queries import progress_ms
from spark_glue.stages.counters import COUNTERS, LEVELS, WATERMARK, counters_in

__all__ = ["MicroBatch", "Setup", "Tasks", "read_records", "watermark_of"]

_VISITS = ("streams_kept", "streams_caught_up", "streams_loaded")


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch that has ended.

    at_ms: when it began. rows: of the input. newest_ms: the newest event time of the input; None: there was none.
    watermark_ms: None: none yet. counters: of all frames of ``apply``, added up; empty: none.
    sources: what each source is called, and how many rows it gave. store: what the state store told of itself, by name.
    told_ms: the time of the first record of it: without new data, Spark tells of the next one again and again.
    least_visits: visits as below, of that frame of ``apply`` which had the fewest, among those that had work.
    """

    id: int
    at_ms: int
    duration_ms: int
    rows: int
    newest_ms: int | None
    watermark_ms: int | None
    counters: Mapping[str, int]
    sources: tuple[tuple[str, int], ...]
    partitions: int | None
    store: frozenset[str] = frozenset()
    told_ms: int = 0
    least_visits: int = 0

    def count(self, name: str) -> int:
        """Returns a counter; 0 where there is none."""
        return self.counters.get(name, 0)

    @property
    def late(self) -> int:
        """Rows that were late, whether they were handed out or dropped."""
        return self.count("late") + self.count("dropped")

    @property
    def visits(self) -> int:
        """Visits of shares, in which a share of which some state was there has been opened: once, seldom twice."""
        return _visits_in(self.counters)


@dataclass(frozen=True)
class Tasks:
    """How long the tasks of a stage took, ms: of the last stages, the one that waited longest for one task.

    median_ms: at least half of the tasks that visited shares took no longer.
    """

    count: int
    median_ms: float
    longest_ms: float


@dataclass(frozen=True)
class Setup:
    """How a query was set up, as far as that is known.

    trigger_ms: interval of its trigger; 0: as often as it can; None: it ends by itself, or it is not known.
    store: class of the state store. small_state: whether it keeps the state of a share as one value. first_format:
    whether its checkpoint is of Spark's first format. delays_ms: how far each watermark that Spark makes, one for an
    input, is behind the newest rows; empty: it makes none, as with idle= or without event time; None: not known.
    cores: that Spark has, or has asked for. error: what it ended with, all of Spark's text.
    """

    running: bool = True
    trigger_ms: int | None = None
    small_state: bool = False
    store: str | None = None
    first_format: bool = False
    delays_ms: tuple[int, ...] | None = None
    cores: int | None = None
    error: str | None = None
    tasks: Tasks | None = field(default=None)


def read_records(records: Iterable[Mapping[str, Any]]) -> list[MicroBatch]:
    """Returns the micro-batches of progress records, as ``json.loads(progress.json)`` gives them, in order."""
    found: dict[int, MicroBatch] = {}
    for record in records:
        one = _read(record)
        before = found.get(one.id)
        # Without new data, Spark tells of the next micro-batch before it has begun.
        if before is None or one.counters or not before.counters:
            found[one.id] = one if before is None else replace(one, told_ms=before.told_ms)
    return [found[number] for number in sorted(found)]


def _read(record: Mapping[str, Any]) -> MicroBatch:
    times = record.get("eventTime") or {}
    operators = record.get("stateOperators") or []
    counters = _counters(record.get("observedMetrics") or {})
    watermark = counters.get(WATERMARK) or progress_ms(times.get("watermark")) or None
    partitions = [operator.get("numShufflePartitions") for operator in operators]
    at_ms = progress_ms(record["timestamp"]) or 0
    return MicroBatch(
        id=int(record["batchId"]),
        at_ms=at_ms,
        duration_ms=int(record.get("batchDuration") or 0),
        # Of ParquetFiles, Spark counts packed rows.
        rows=max(int(record.get("numInputRows") or 0), counters.get("events", 0)),
        newest_ms=progress_ms(times.get("max")),
        watermark_ms=watermark,
        counters=counters,
        sources=tuple((str(one.get("description")), int(one.get("numInputRows") or 0)) for one in record["sources"]),
        partitions=next((number for number in partitions if number), None),
        store=frozenset(name for operator in operators for name in operator.get("customMetrics") or {}),
        told_ms=at_ms,
        least_visits=_least_visits(record.get("observedMetrics") or {}),
    )


def watermark_of(batches: Iterable[MicroBatch]) -> int | None:
    """Returns the watermark that micro-batches have come to, ms; None: none yet."""
    return max((one.watermark_ms for one in batches if one.watermark_ms is not None), default=None)


def _least_visits(observed: Mapping[str, Mapping[str, Any]]) -> int:
    """Returns the fewest visits of a frame that had some, or rows: the first ones of a share are not counted."""
    frames = counters_in(observed, earlier=True).values()
    return min((_visits_in(told) for told in frames if _visits_in(told) or told.get("events")), default=0)


def _visits_in(counters: Mapping[str, Any]) -> int:
    return sum(int(counters.get(name) or 0) for name in _VISITS)


def _counters(observed: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Returns the counters of all frames: added up, but for the watermark and other levels."""
    found: dict[str, int] = {}
    for told in counters_in(observed, earlier=True).values():
        for name in COUNTERS:
            value = int(told.get(name) or 0)
            most = name == WATERMARK or name in LEVELS
            found[name] = max(found.get(name, 0), value) if most else found.get(name, 0) + value
    return found
