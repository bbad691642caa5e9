"""Two attempts of each task: two processes run the same micro-batches from the same state, and one of them is committed.

Both have a worker's memory, their streams left standing, and they share a cache, as the workers of an executor do. Now
and then one of them lags: it goes on with a micro-batch long after the other's attempt has been committed.
"""

import copy
import multiprocessing
import os
import pickle
import random
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from spark_glue import processor, wire
from spark_glue.cache import ROOT_VARIABLE
from spark_glue.job import Job
from spark_glue.wire import PacketKind, ResultKind
from tests.spark.fakes import FakeHandle

__all__ = ["Attempts"]

SHARES = (0, 1)


def _serve(pipe: Connection, job: Job) -> None:
    """A worker: runs attempts that it is sent, until there is nothing more."""
    processor.run_id = lambda: "run"
    processor.shares_of = lambda key_groups: len(SHARES)
    while True:
        try:
            asked = pipe.recv_bytes()
        except EOFError:
            return
        try:
            pipe.send_bytes(pickle.dumps(_attempt(job, *pickle.loads(asked))))
        except Exception as problem:
            pipe.send_bytes(pickle.dumps(problem))
            raise


def _attempt(job: Job, handle: FakeHandle, share: int, watermark: int, blob: bytes | None) -> tuple[FakeHandle, list]:
    from spark_glue.keygroups import ids

    one = processor.WindowProcessor(job)
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
                rows += [tuple(row.values()) for row in wire.decode(found, job.plan.main_schema).to_pylist()]
    return handle, rows


class Attempts:
    """Runs micro-batches, each by one or two of the workers; use it as a context.

    job: with key groups that are divided into two shares. cache: the folder of the cache.
    """

    def __init__(self, job: Job, cache: Path, dice: random.Random) -> None:
        self._job, self._cache, self._dice = job, cache, dice
        self._handles: dict[int, FakeHandle] = {share: FakeHandle() for share in SHARES}
        self._streams = {share: job.plan.open(coalesce=True) for share in SHARES}
        self._late: list[tuple[int, bytes]] = []
        self.attempts = self.rows = 0

    def __enter__(self) -> "Attempts":
        context = multiprocessing.get_context("spawn")
        before = os.environ.get(ROOT_VARIABLE)
        os.environ[ROOT_VARIABLE] = str(self._cache)
        self._workers = []
        for _ in range(2):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._job), daemon=True)
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
                blob = wire.encode(rows).to_pybytes()
            asked = pickle.dumps((copy.deepcopy(self._handles[share]), share, watermark, blob))
            workers = self._dice.choice([(0,), (1,), (0, 1), (1, 0), (0, 1), (1, 0), (0, 0), (1, 1)])
            answers = [self._ask(worker, asked) for worker in workers]
            expected = self._expected(share, watermark, inputs.get(share))
            for _, found in answers:
                assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"share {share} at {watermark}"
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
