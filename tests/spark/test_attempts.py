"""Two attempts of each task, in processes that share a cache: whichever is committed, nothing is lost, twice or other."""

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.keycodec import KeyCodec
from tests.soak.attempts import SHARES, Attempts
from tests.spark import windows
from tests.spark.test_pack import KEY_GROUPS, job_for

_USER = windows.SPECS["user-written, with everything"]
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


def rows(rng: np.random.Generator, number: int, share: int) -> pa.Table:
    n = int(rng.integers(1, 60))
    keys = KEYS[share][number * 2 + rng.integers(0, 40, n)]  # they come and go
    times = np.maximum(number * 12 + rng.integers(-25, 25, n), 0)
    return pa.table({"k": keys, "ts": times, "v": rng.integers(0, 1000, n)})


def disturb(kind: str, seed: int, batches: int, folder) -> Attempts:
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    job = job_for(rows(rng, 0, 0), SPECS[kind], max_future_skew_ms=None)
    with Attempts(job, folder / "cache", dice) as attempts:
        for number in range(batches):
            inputs = {share: rows(rng, number, share) for share in SHARES if dice.random() < 0.8}
            attempts.batch(max(number * 12 - 20, 0), inputs)
        attempts.batch(batches * 12 + 1_000, {})
    return attempts


@pytest.mark.parametrize("kind", SPECS)
def test_whichever_attempt_is_committed(kind, tmp_path):
    seed = random.randrange(1 << 30)
    print("seed", seed)  # shown if it fails
    done = disturb(kind, seed, 40, tmp_path)
    assert done.open_windows == 0
    assert done.rows > 500
    assert done.attempts > 100
