"""Two attempts of each task: two processes run the same micro-batches from the same state, and one of them is committed.

Both write the same bytes. Both have a worker's memory, their streams left standing, and they share a cache, as the
workers of an executor do. Now and then one of them lags: it goes on with a micro-batch long after the other's attempt
has been committed. Now and then one reloads: it has lost its memory and the cache, and all is read from the store.
In half of the micro-batches deltas lie in the heads of shares, in the others in chunks and in the cache.
"""

import copy
import dataclasses
import multiprocessing
import os
import pickle
import random
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from fastwin.columns.keys import KeyCodec
from fastwin.run.replica import open_replica
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import ResultKind
from spark_glue.stages import operator as processor
from spark_glue.stages.packets import PacketKind, decode, encode
from spark_glue.state import log
from spark_glue.state.folders import ROOT_VARIABLE, forget_run
from spark_glue.state.live import LIVE
from tests.support import spark_windows
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import KEY_GROUPS, frame_plan_for

__all__ = ["SPECS", "Attempts", "disturb"]

SHARES = (0, 1)
_LIMIT_S = 300

_USER = spark_windows.SPECS["user-written, with everything"]
_BASE = fw.key_by("k").event_time("ts")
_AGGREGATES = {"n": fw.Count(), "total": fw.Sum("v"), "first": fw.First("v")}
SPECS = {
    "sliding": _BASE.window(fw.SlidingEventTimeWindows.of(60, 20)).allowed_lateness(10).aggregate(**_AGGREGATES),
    "sessions": _BASE.window(fw.EventTimeSessionWindows.with_gap(15)).allowed_lateness(10).aggregate(**_AGGREGATES),
    "early": (
        _BASE.window(fw.TumblingEventTimeWindows.of(50)).trigger(fw.after_watermark(early=fw.CountTrigger.of(3)))
    ).aggregate(**_AGGREGATES),
    "user-written": dataclasses.replace(
        _USER, assigner=fw.TumblingEventTimeWindows.of(60), lateness_ms=30, late_output=False
    ),
}


_GROUPS = KeyCodec.hash((np.arange(1_000), None)) % np.uint64(KEY_GROUPS)
KEYS = {share: np.flatnonzero(_GROUPS % np.uint64(len(SHARES)) == share) for share in SHARES}


def _rows(rng: np.random.Generator, number: int, share: int) -> pa.Table:
    n = int(rng.integers(1, 60))
    keys = KEYS[share][number * 2 + rng.integers(0, 40, n)]  # they come and go
    times = np.maximum(number * 12 + rng.integers(-25, 25, n), 0)
    return pa.table({"k": keys, "ts": times, "v": rng.integers(0, 1000, n)})


def _serve(pipe: Connection, frame_plan: FramePlan) -> None:
    """A worker: runs attempts that it is sent, until there is nothing more."""
    processor.query_id = lambda: "run"
    processor.shares_of = lambda key_groups: len(SHARES)
    while True:
        try:
            asked = pipe.recv_bytes()
        except EOFError:
            return
        try:
            pipe.send_bytes(pickle.dumps(_attempt(frame_plan, *pickle.loads(asked))))
        except Exception as problem:
            pipe.send_bytes(pickle.dumps(problem))
            raise


def _attempt(
    frame_plan: FramePlan,
    reloads: bool,
    inline_bytes: int,
    handle: FakeHandle,
    share: int,
    watermark: int,
    blob: bytes | None,
) -> tuple[FakeHandle, list]:
    from spark_glue.plan.keygroups import ids

    log.INLINE_BYTES = inline_bytes
    if reloads:
        LIVE.clear()
        forget_run("run")
    one = processor.WindowProcessor(frame_plan)
    one.init(handle)
    values = TimerValues(0, watermark)
    group = int(ids(share + 1)[share])
    handle.key = group
    frames = []
    if blob is not None:
        import pandas as pd

        row = {"key_group": group, "mapper": 0, "seq": 0, "kind": int(PacketKind.GOOD), "rows": 1, "blob": blob}
        frames += one.handleInputRows((group,), iter([pd.DataFrame([row | {"carrier": None}])]), values)
    for ms in sorted(ms for ms in handle.timers[group] if ms <= watermark):
        frames += one.handleExpiredTimer((group,), values, ExpiredTimerInfo(ms))
        handle.timers[group].discard(ms)
    rows = []
    for frame in frames:
        for kind, found in zip(frame["kind"], frame["blob"], strict=True):
            if found is not None and kind == ResultKind.MAIN:
                rows += [tuple(row.values()) for row in decode(found, frame_plan.plan.main_schema).to_pylist()]
    return handle, rows


class Attempts:
    """Runs micro-batches, each by one or two of the workers; use it as a context.

    frame_plan: with key groups that are divided into two shares. cache: the folder of the cache.
    """

    def __init__(self, frame_plan: FramePlan, cache: Path, dice: random.Random) -> None:
        self._frame_plan, self._cache, self._dice = frame_plan, cache, dice
        self._handles: dict[int, FakeHandle] = {share: FakeHandle() for share in SHARES}
        self._streams = {share: open_replica(frame_plan.plan) for share in SHARES}
        self._late: list[tuple[int, bytes]] = []
        self.attempts = self.rows = self.in_chunks = 0

    def __enter__(self) -> "Attempts":
        context = multiprocessing.get_context("spawn")
        before = os.environ.get(ROOT_VARIABLE)
        os.environ[ROOT_VARIABLE] = str(self._cache)
        self._workers = []
        for _ in range(2):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._frame_plan), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, mine))
        if before is None:
            del os.environ[ROOT_VARIABLE]
        else:
            os.environ[ROOT_VARIABLE] = before
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._workers:
            pipe.close()
            process.join(10)
            if process.is_alive():
                process.kill()

    def _ask(self, worker: int, asked: bytes) -> Any:
        _, pipe = self._workers[worker]
        pipe.send_bytes(asked)
        assert pipe.poll(_LIMIT_S), f"the worker has not answered for {_LIMIT_S} s"
        answer = pickle.loads(pipe.recv_bytes())
        if isinstance(answer, Exception):
            raise answer
        self.attempts += 1
        return answer

    def batch(self, watermark: int, inputs: dict[int, pa.Table]) -> None:
        """Runs a micro-batch; raises AssertionError unless each attempt gives what a stream of its own gives."""
        for share in SHARES:
            blob = None
            if share in inputs:
                (rows,) = inputs[share].combine_chunks().to_batches()
                blob = encode(rows).to_pybytes()
            inline_bytes = self._dice.choice([0, log.INLINE_BYTES])
            self.in_chunks += not inline_bytes
            work = (inline_bytes, copy.deepcopy(self._handles[share]), share, watermark, blob)
            asked = pickle.dumps((False, *work))
            workers = self._dice.choice([(0,), (1,), (0, 1), (1, 0), (0, 1), (1, 0), (0, 0), (1, 1)])
            answers = [self._ask(worker, pickle.dumps((self._dice.random() < 0.2, *work))) for worker in workers]
            expected = self._expected(share, watermark, inputs.get(share))
            for _, found in answers:
                assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"share {share} at {watermark}"
            first = answers[0][0]
            for handle, _ in answers:  # so whichever files of theirs are there in the end, they go together
                assert handle.values == first.values, f"share {share} at {watermark}: attempts wrote other bytes"
            self._handles[share] = self._dice.choice(answers)[0]
            self.rows += len(expected)
            if len(workers) == 1:  # the other one is slow, and comes to it when nobody asks any more
                self._late.append((1 - workers[0], asked))
        while len(self._late) > 4:
            self._ask(*self._late.pop(self._dice.randrange(len(self._late))))

    def _expected(self, share: int, watermark: int, table: pa.Table | None) -> list:
        stream = self._streams[share]
        results = [stream.advance_watermark(watermark)] if watermark > 0 else []
        if table is not None:
            results.append(stream.process(table))
        results = [result for result in results if isinstance(result, fw.Result)]
        return [tuple(row.values()) for result in results for row in result.main.to_pylist()]

    @property
    def open_windows(self) -> int:
        """Windows that are open now."""
        return sum(stream.metrics.open_windows for stream in self._streams.values())


def disturb(kind: str, seed: int, batches: int, folder: Path) -> Attempts:
    """Runs random micro-batches of SPECS[kind], and then the end of time."""
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    frame_plan = frame_plan_for(_rows(rng, 0, 0), SPECS[kind], max_future_skew_ms=None)
    with Attempts(frame_plan, folder / "cache", dice) as attempts:
        for number in range(batches):
            inputs = {share: _rows(rng, number, share) for share in SHARES if dice.random() < 0.8}
            attempts.batch(max(number * 12 - 20, 0), inputs)
        attempts.batch(batches * 12 + 1_000, {})
    return attempts
