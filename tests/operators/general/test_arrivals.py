"""Aggregates that go by arrival, of what an evictor leaves: as without one, where it leaves all."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw

GAP = 7
SESSIONS = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_gap(GAP))
BY_ARRIVAL = {
    "first_arrived": fw.FirstArrived("v"),
    "last_arrived": fw.LastArrived("v"),
    "first": fw.First("v", ignore_nulls=False),
    "last": fw.Last("v"),
    "largest": fw.ArgMax("v", "w"),
    "all": fw.Collect("v"),
}


def shuffled(seed: int, rows: int = 120) -> pa.Table:
    """Rows out of order, so that later ones join sessions; times and weights come twice and more."""
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "k": dice.integers(0, 3, rows),
            "ts": dice.integers(0, 160, rows),
            "v": pa.array(np.arange(rows), mask=dice.random(rows) < 0.2),
            "w": dice.integers(0, 4, rows),
        }
    )


def results(spec: fw.WindowSpec, table: pa.Table, cuts: list[int], restored: bool) -> list:
    """Returns what fires in calls that end there; restored: each call is of a stream that goes on with a state."""
    stream = spec.open(schema=table.schema)
    chunks, found = [], []
    for at, end in itertools.pairwise([0, *cuts, len(table)]):
        found += stream.process(table[at:end]).main.to_pylist()
        found += stream.advance_watermark(end // 4).main.to_pylist()
        if restored:
            chunks.append(stream.delta() if chunks else stream.snapshot())
            stream = spec.open(schema=table.schema)
            stream.restore(chunks)
    found += stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
    return sorted(found, key=lambda row: (row["k"], row["window_start"], row["window_end"]))


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_an_evictor_that_leaves_all_changes_nothing(seed, restored, coalesce):
    table = shuffled(seed)
    cuts = sorted(np.random.default_rng(seed).choice(np.arange(1, len(table)), 4, replace=False).tolist())
    kept = SESSIONS.allowed_lateness(30, coalesce=coalesce)
    plain = results(kept.aggregate(**BY_ARRIVAL), table, cuts, restored)
    evicting = kept.evictor(fw.CountEvictor.of(1_000))
    assert results(evicting.aggregate(**BY_ARRIVAL), table, cuts, restored) == plain
    assert any(row["first_arrived"] != row["first"] for row in plain)
