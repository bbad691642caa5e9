"""What the workers of a machine keep together, over the real code of streams, copies and log, without Spark."""

import os
import random

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.keys import KeyCodec
from spark_glue.state import folders, ledger
from spark_glue.state.copies import Shelf
from spark_glue.state.live import LiveStreams
from spark_glue.state.log import Identity, StateLog
from spark_glue.state.shares import States
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import frame_plan_for

SHARES, WORKERS, BATCHES = 64, 8, 8
SPEC = fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(400, 100)).aggregate(n=fw.Count())
KEYS = np.arange(20_000)
GROUPS = KeyCodec.hash((KEYS, None)) % np.uint64(SHARES)


def rows(rng: np.random.Generator, share: int, batch: int) -> pa.Table:
    """Rows of a share: its keys wander, so that some come and others go."""
    own = KEYS[share == GROUPS]
    keys = own[(batch * 20 + rng.integers(0, 150, 200)) % len(own)]
    return pa.table({"k": keys, "ts": batch * 50 + rng.integers(0, 50, 200)})


class Machine:
    """Workers that take the visits of shares in turn. limit: bytes of their streams."""

    def __init__(self, limit: int, limit_of_copies: int) -> None:
        self.handle = FakeHandle()
        self.frame_plan = frame_plan_for(rows(np.random.default_rng(0), 0, 0), SPEC, key_groups=SHARES)
        plan = self.frame_plan.plan
        self.log = StateLog(self.handle, Identity(plan.fingerprint.hex(), plan.config.state, SHARES, SHARES))
        self.shelf = Shelf("run", limit=limit_of_copies)
        self.live = [LiveStreams(limit, owner=number + 1) for number in range(WORKERS)]
        self.largest = self.most = 0

    def visit(self, worker: int, share: int, table: pa.Table, watermark: int) -> list:
        """Visits a share; returns what has fired."""
        self.handle.key = share
        states = States(self.frame_plan, self.log, SHARES, self.shelf, "run", self.live[worker])
        opened = states.open(share)
        fired = [opened.stream.advance_watermark(watermark).main, opened.stream.process(table).main]
        after = opened.stream.metrics
        states.store(share, opened, after, None)
        self.largest = max(self.largest, after.state_bytes)
        self.most = max(self.most, sum(one.nbytes for one in self.live))
        return pa.concat_tables(fired).to_pylist()


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.ROOT_VARIABLE, str(tmp_path))
    monkeypatch.setattr(folders, "_held", {})
    monkeypatch.setattr(ledger, "_lives", lambda pid: True)
    return folders.cache_root()


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(4, marks=pytest.mark.long, id="all fits"),
        pytest.param(1, id="some fits"),
        pytest.param(0.25, marks=pytest.mark.long, id="little fits"),
    ],
)
def test_the_formula_for_memory(root, part):
    """docs/state.md: B for the streams, C for the copies; shares that workers are at come on top."""
    seed = int(100 * part)
    limit, limit_of_copies = int(part * SHARES * 60_000), 1_000_000
    machine, dice, rng = Machine(limit, limit_of_copies), random.Random(seed), np.random.default_rng(seed)
    alone = [
        fw.key_by("k").event_time("ts").window(SPEC.assigner).aggregate(n=fw.Count()).open() for _ in range(SHARES)
    ]
    for batch in range(BATCHES):
        for share in dice.sample(range(SHARES), SHARES):
            worker = share % WORKERS if dice.random() < 0.5 else dice.randrange(WORKERS)
            table, watermark = rows(rng, share, batch), max(batch * 50 - 60, 1)
            fired = machine.visit(worker, share, table, watermark)
            expected = [*alone[share].advance_watermark(watermark).main.to_pylist()]
            expected += alone[share].process(table).main.to_pylist()
            assert sorted(map(repr, fired)) == sorted(map(repr, expected))
    copies = sum(path.stat().st_size for path in root.glob("*/*") if not path.name.startswith("."))
    print(f"B={limit} s={machine.largest} streams={machine.most} copies={copies}")
    assert machine.most <= limit
    assert copies <= limit_of_copies
    if part < 1:
        assert machine.most > limit // 2  # what there is, is used
    (told,) = (root / "run").glob(".live*")
    assert os.path.getsize(told) < 200 * SHARES * WORKERS
