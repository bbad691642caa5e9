"""Random micro-batches for the specs of ``stored_specs``, and replicas that take them."""

import random
from typing import NamedTuple

import pyarrow as pa

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.replica import Replica, open_replica
from fastwin.state.refresh import Refresh
from tests.support.stored_streams import SCHEMA, START_MS

__all__ = ["Step", "rebuilt", "run", "steps"]

GROUPS = 4
STEP_MS = 15_000
_WORDS = ["a", "b", "ab", "nine", "", None]


class Step(NamedTuple):
    """A micro-batch: its rows, the clock and the watermark before it, ms, and what its delta is to repeat."""

    rows: pa.Table
    clock: int
    watermark: int
    refresh: Refresh | None


def steps(dice: random.Random, count: int) -> list[Step]:
    """Returns micro-batches one after the other: some rows are late, some keys go and come back."""
    made, watermark, turn = [], START_MS, 0
    for number in range(count):
        watermark += dice.choice([0, 5_000, 15_000, 40_000])
        turn = (turn + 1) % GROUPS if dice.random() < 0.5 else 0
        refresh = Refresh(GROUPS, tuple(range(GROUPS)), turn) if turn else None
        rows = _rows(dice, dice.choice([0, 3, 25]), START_MS + number * STEP_MS)
        made.append(Step(rows, START_MS + number * 11_000, watermark, refresh))
    return made


def _rows(dice: random.Random, n: int, start_ms: int) -> pa.Table:
    def some(values: list) -> list:
        return [dice.choice(values) for _ in range(n)]

    values = [dice.choice([None, dice.randint(-100, 100)]) for _ in range(n)]
    columns = {
        "k": some([f"key {i}" for i in range(9)] + [None]),
        "i": some([*range(-3, 9), None]),
        "ts": [(start_ms + dice.randint(-5_000, 70_000)) * 1_000 for _ in range(n)],
        "v": values,
        "x": [dice.choice([None, dice.uniform(-9, 9)]) for _ in range(n)],
        "d": [None if value is None else value / 4 for value in values],
        "s": some(_WORDS),
        "gap": [dice.randint(500, 9_000) for _ in range(n)],
    }
    floats = pa.array(columns["d"], pa.float64()).cast(SCHEMA.field("d").type)
    arrays = [floats if name == "d" else pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names]
    return pa.table(arrays, schema=SCHEMA)


def run(stream: Replica, step: Step) -> bytes:
    """Runs a micro-batch; returns its delta."""
    stream.advance_processing_time(step.clock)
    stream.advance_watermark(step.watermark)
    stream.process(step.rows)
    return stream.delta(step.refresh)


def rebuilt(spec: fw.WindowSpec, log: list[bytes], schema: pa.Schema = SCHEMA) -> Replica:
    """Returns a stream that has taken a log. schema: of its input."""
    stream = open_replica(plan(spec, schema, coalesce=True))
    if log:
        stream.catch_up(log)
    return stream
