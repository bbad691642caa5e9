"""What a delta of windows that keep rows costs: it looks at what is new, and gaps of rows that go are closed."""

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.kept.pruning import Pruner

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
KEYED = fw.key_by("k").event_time("t", unit="ms")
SPECS = {
    "last": KEYED.window(fw.TumblingEventTimeWindows.of(1_000)).deduplicate("last"),
    "top": KEYED.window(fw.SlidingEventTimeWindows.of(1_000, 100)).top(2, by="v"),
}
NEW = 20


def rows_of(keys: np.ndarray, time: int, value: int) -> pa.Table:
    n = len(keys)
    return pa.table([keys, np.full(n, time), np.full(n, value)], schema=SCHEMA)


@pytest.mark.parametrize("name", SPECS)
def test_a_delta_looks_at_rows_beside_the_new_ones_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    picked = Pruner._picked
    monkeypatch.setattr(Pruner, "_picked", lambda on, slots: looked.append(len(slots)) or picked(on, slots))
    keys, peaks = 50_000, []
    stream = SPECS[name].open(schema=SCHEMA)
    for value in range(6):
        stream.process(rows_of(np.arange(NEW if value else keys), 0, value))
        looked.clear()
        tracemalloc.start()
        try:
            stream.delta()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        if value > 1:
            assert looked == [NEW * min(value + 1, {"last": 2, "top": 3}[name])]
    assert peaks[0] > 4 * keys
    assert max(peaks[3:]) < keys, f"{peaks} bytes; a list of rows takes four for each of {keys}"  # arrays have grown
    assert stream.metrics.state_rows == keys + {"last": 0, "top": NEW}[name]


@pytest.mark.parametrize("name", SPECS)
def test_gaps_are_closed_while_streams_stay_what_one_is_that_is_loaded(name: str) -> None:
    """Closing them moves rows of which some are not saved, not pruned or not known by their slices yet."""
    dice = random.Random(7)
    live, chunks, closed = SPECS[name].open(schema=SCHEMA), [], 0
    for step in range(60):
        gaps = live._operator._kept.gone if step else 0
        keys = np.array([dice.randrange(40) for _ in range(dice.randrange(30))], np.int64)
        live.process(rows_of(keys, 50 * step + dice.randrange(100), dice.randrange(9)))
        if dice.random() < 0.3:
            assert live.metrics.open_windows == live.inspect().num_rows
        if dice.random() < 0.5:
            live.advance_watermark(50 * step - 200)
        closed += live._operator._kept.gone < gaps
        if dice.random() < 0.8 or not step:
            chunks.append(live.delta() if chunks else live.snapshot())
            again = SPECS[name].open(schema=SCHEMA)
            again.restore(chunks)
            assert again.snapshot() == stream_copy(name, chunks).snapshot()
            assert again.metrics.state_rows == live.metrics.state_rows
        closed += live._operator._kept.gone < gaps
        live._check_invariants()
    assert closed > 3


def stream_copy(name: str, chunks: list[bytes]) -> fw.Stream:
    stream = SPECS[name].open(schema=SCHEMA)
    stream.restore(chunks)
    return stream
