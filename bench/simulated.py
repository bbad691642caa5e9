"""The executors of a simulation, where shares of a query's state are, and what keeping it has cost.

The code of ``spark_glue`` that keeps state runs as it does on Spark. The state store is a dict, the scheduler chance.
"""

import random
import shutil
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fastwin as fw
from fastwin.columns.keys import KeyCodec

__all__ = ["WINDOWS", "Cluster", "Loss", "Point", "Scale"]

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("2 minutes", "30 seconds"))
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
WINDOWS = 4  # that each event is in
EPOCH_MS = 1_700_000_400_000


@dataclass(frozen=True)
class Scale:
    """How large a simulation is.

    workers: Python processes of an executor. step_ms: event time from one micro-batch to the next. active: shares that
    have rows in a micro-batch, few of them in most. keys: that a share has at a time. rows: of an active share in a
    micro-batch. budget, copies: bytes for the streams, and for the copies, of an executor. wander: the part of the
    visits that are at another executor than the last one. lose: an executor is lost after so many micro-batches.
    """

    shares: int = 1_000
    executors: int = 100
    workers: int = 2
    batches: int = 10_000
    step_ms: int = 1_000
    active: int = 20
    keys: int = 100
    rows: int = 50
    budget: int = 4 << 20
    copies: int = 8 << 20
    wander: float = 0.02
    lose: int = 25
    seed: int = 1


@dataclass
class Point:
    """What was seen in some micro-batches that follow each other, up to ``batch``.

    live, shelf: bytes of streams and of copies of an executor, at the end: the mean, and the most. commit: bytes of a
    visit: the mean, and the 95th percentile. had: visits, by how the state was had. read: bytes that a micro-batch has
    read from the store. us: of a core, of a visit. log: deltas of a share.
    """

    batch: int
    live: tuple[float, int] = (0.0, 0)
    shelf: tuple[float, int] = (0.0, 0)
    commit: tuple[float, float] = (0.0, 0.0)
    had: dict[str, int] = field(default_factory=dict)
    read: float = 0.0
    us: float = 0.0
    rows: int = 0
    log: float = 0.0


@dataclass
class Loss:
    """What a lost executor has cost: shares loaded elsewhere, their bytes, ms of a core for all and for the longest."""

    batch: int
    shares: int = 0
    read: int = 0
    ms: float = 0.0
    longest_ms: float = 0.0


class Store:
    """Spark's state store, in memory, as a processor sees it: for one share at a time. read: bytes, so far."""

    def __init__(self) -> None:
        self.share = 0
        self.read = 0
        self._values: dict[tuple[int, str], Any] = {}
        self._maps: defaultdict[tuple[int, str], dict] = defaultdict(dict)

    def getValueState(self, name: str, schema: object) -> "_Value":  # noqa: N802
        return _Value(self, name)

    def getMapState(self, name: str, key: object, value: object) -> "_Map":  # noqa: N802
        return _Map(self, name)


class _Value:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def get(self) -> Any:
        return self._store._values.get((self._store.share, self._name))

    def update(self, value: tuple) -> None:
        self._store._values[self._store.share, self._name] = value

    def clear(self) -> None:
        self._store._values.pop((self._store.share, self._name), None)


class _Map:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def _items(self) -> dict:
        return self._store._maps[self._store.share, self._name]

    def getValue(self, key: tuple) -> Any:  # noqa: N802
        value = self._items().get(key)
        self._store.read += 0 if value is None else len(value[0])
        return value

    def updateValue(self, key: tuple, value: tuple) -> None:  # noqa: N802
        self._items()[key] = value

    def removeKey(self, key: tuple) -> None:  # noqa: N802
        self._items().pop(key, None)


class Executor:
    """A machine with workers, a budget and a folder for copies that no other machine sees."""

    def __init__(self, root: Path, scale: Scale) -> None:
        from spark_glue.state.copies import Shelf
        from spark_glue.state.live import LiveStreams

        self.root = root
        self.shelf = Shelf("run", root, scale.copies)
        self.workers = [LiveStreams(scale.budget, root, number + 1) for number in range(scale.workers)]

    @property
    def live_bytes(self) -> int:
        return sum(worker.nbytes for worker in self.workers)

    @property
    def shelf_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.root.glob("*/*") if not path.name.startswith("."))

    def lose(self) -> None:
        for worker in self.workers:
            worker.clear()
        shutil.rmtree(self.root, ignore_errors=True)


class Cluster:
    """The executors, where the shares are, and what all of it has done. folder: for the executors' folders."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        from spark_glue.plan.frameplan import FramePlan
        from spark_glue.state.log import Identity, StateLog

        self._scale, self._folder = scale, folder
        self._dice = random.Random(scale.seed)
        self._rng = np.random.default_rng(scale.seed)
        self._made = 0
        self.store = Store()
        self.executors = [self._executor() for _ in range(scale.executors)]
        self._home = [share % scale.executors for share in range(scale.shares)]
        self._keys = _keys_of(scale)
        hot = 1 / np.arange(1, scale.keys + 1)
        self._weights = hot / hot.sum()
        hot = 1 / np.arange(1, scale.shares + 1)
        self._activity = self._rng.permutation(hot / hot.sum())
        self._timers: list[int | None] = [None] * scale.shares
        self._plan = FramePlan(
            spec=SPEC,
            schema=self._table(0, 0).schema,
            time_column="ts",
            time_zone=None,
            key_groups=scale.shares,
            streaming=True,
            carrier=True,
            max_future_skew_ms=None,
            coalesce=True,
        )
        plan = self._plan.plan
        self._log = StateLog(
            self.store,  # type: ignore[arg-type]
            Identity(plan.fingerprint.hex(), plan.config.state, scale.shares, scale.shares),
        )
        self.events = self.counted = 0
        self.losses: list[Loss] = []
        self._lost: dict[int, Loss] = {}  # shares that were on an executor that is gone
        self._state_rows = [0] * scale.shares
        self._forget()

    def _forget(self) -> None:
        self._commits: list[int] = []
        self._had: Counter[str] = Counter()
        self._deltas = self._read = 0
        self._seconds = 0.0

    def _executor(self) -> Executor:
        self._made += 1
        return Executor(self._folder / str(self._made), self._scale)

    def _table(self, share: int, batch: int) -> pa.Table:
        """Returns rows of a share. Few of its keys have most of them; each micro-batch a key goes and one comes."""
        scale = self._scale
        chosen = self._rng.choice(scale.keys, scale.rows, p=self._weights)
        keys = self._keys[share][(batch + chosen) % len(self._keys[share])]
        times = EPOCH_MS + batch * scale.step_ms + self._rng.integers(0, scale.step_ms, scale.rows)
        return pa.table({"k": keys, "ts": times, "v": self._rng.integers(0, 1_000, scale.rows)})

    def batch(self, number: int) -> None:
        """Visits the shares that Spark visits: those with rows, and those whose timer is due.

        Some of them have moved, and now and then an executor was lost.
        """
        scale = self._scale
        if number and number % scale.lose == 0:
            self._lose(number)
        watermark = EPOCH_MS + number * scale.step_ms - 1
        active = self._rng.choice(scale.shares, scale.active, replace=False, p=self._activity).tolist()
        timers = enumerate(self._timers)
        due = {share for share, timer in timers if timer is not None and timer <= watermark}
        for share in [*active, *sorted(due.difference(active))]:
            if self._dice.random() < scale.wander:
                self._home[share] = self._dice.randrange(scale.executors)
        for share in active:
            self._visit(share, watermark, self._table(share, number))
        for share in sorted(due.difference(active)):
            self._visit(share, watermark, None)

    def end(self, batches: int) -> None:
        """Lets all windows fire."""
        for share in range(self._scale.shares):
            self._visit(share, EPOCH_MS + batches * self._scale.step_ms + 1_000_000, None)

    def _visit(self, share: int, watermark: int, table: pa.Table | None) -> None:
        from spark_glue.state.shares import States

        executor = self.executors[self._home[share]]
        self.store.share = share
        read, begun = self.store.read, time.process_time()
        live = self._dice.choice(executor.workers)
        states = States(self._plan, self._log, self._scale.shares, executor.shelf, "run", live)
        opened = states.open(share)
        loaded = time.process_time() - begun
        results = [opened.stream.advance_watermark(watermark)]
        if table is not None:
            results.append(opened.stream.process(table))
        after = opened.stream.metrics
        self._timers[share] = opened.stream.next_timer()
        stored = states.store(share, opened, after, self._timers[share])
        self._seconds += time.process_time() - begun
        self._commits.append(stored.written)
        self._had[opened.how if opened.how != "loaded" else f"loaded, {opened.why}"] += 1
        self._deltas += stored.deltas
        self._read += self.store.read - read
        self._state_rows[share] = after.state_rows
        self.events += 0 if table is None else table.num_rows
        self.counted += sum(int(np.sum(result.main["n"].to_numpy())) for result in results)
        loss = self._lost.pop(share, None)
        if loss is not None:
            loss.shares += 1
            loss.read += self.store.read - read
            loss.ms += 1_000 * loaded
            loss.longest_ms = max(loss.longest_ms, 1_000 * loaded)

    def _lose(self, batch: int) -> None:
        """Loses an executor; its shares go to others, and an empty one comes."""
        number = self._dice.randrange(self._scale.executors)
        self.executors[number].lose()
        loss = Loss(batch)
        for share in [share for share, home in enumerate(self._home) if home == number]:
            self._lost[share] = loss
            others = [other for other in range(self._scale.executors) if other != number] or [number]
            self._home[share] = self._dice.choice(others)
        self.executors[number] = self._executor()
        self.losses.append(loss)

    def point(self, batch: int, batches: int) -> Point:
        """Returns what was seen since the last one. batches: how many there were."""
        live, shelf = ([getattr(one, name) for one in self.executors] for name in ("live_bytes", "shelf_bytes"))
        visits = len(self._commits)
        found = Point(
            batch,
            (sum(live) / len(live), max(live)),
            (sum(shelf) / len(shelf), max(shelf)),
            (sum(self._commits) / visits, float(np.percentile(self._commits, 95))),
            dict(sorted(self._had.items())),
            self._read / batches,
            1e6 * self._seconds / visits,
            sum(self._state_rows),
            self._deltas / visits,
        )
        self._forget()
        return found


def _keys_of(scale: Scale) -> list[np.ndarray]:
    """Returns keys for each share, by their hash: five times as many as it has at a time."""
    wanted = 5 * scale.keys
    names = np.arange(round(1.5 * wanted * scale.shares) + 2_000)
    groups = KeyCodec.hash((names, None)) % np.uint64(scale.shares)
    ordered = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups.astype(np.int64), minlength=scale.shares))
    return [ordered[end - count : end][:wanted] for end, count in zip(ends, np.diff(ends, prepend=0), strict=True)]
