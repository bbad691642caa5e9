"""What it costs to fire windows whose results are rows: it looks at their rows, and at few other things."""

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.kept import operator
from fastwin.operators.kept.operator import RowsOperator

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
KEYED = fw.key_by("k").event_time("t", unit="ms")
WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of(2),
    "sliding": fw.SlidingEventTimeWindows.of(12, 4),
    "with gaps": fw.SlidingEventTimeWindows.of(2, 3),
    "cumulative": fw.CumulativeEventTimeWindows.of(12, 3),
}


def rows_of(times: Any, seed: int = 0) -> pa.Table:
    dice = np.random.default_rng(seed)
    return pa.table([dice.integers(0, 5, len(times)), times, np.arange(len(times))], schema=SCHEMA)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("ending", ["join", "last"])
def test_one_watermark_passes_many_windows_in_few_turns(
    name: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, together = 4_000, 1_000
    dice = np.random.default_rng(1)
    tables = [rows_of(dice.permutation(np.arange(i, 2 * n, 2)), i) for i in range(2)]

    def run() -> pa.Table:
        if ending == "join":
            joined = fw.window_join(KEYED, KEYED, WINDOWS[name], how="full").open(schemas=(SCHEMA, SCHEMA))
            joined.process(*tables)
            return joined.advance_watermark(fw.MAX_TIMESTAMP).main
        stream = KEYED.window(WINDOWS[name]).deduplicate("last").open(schema=SCHEMA)
        stream.process(pa.concat_tables(tables))
        return stream.advance_watermark(fw.MAX_TIMESTAMP).main

    expected, looked = run(), []
    fired = RowsOperator._fired

    def noted(on: RowsOperator, slots: Any, windows: Any) -> Any:
        looked.append((len(slots), int(windows.counts.sum())))
        return fired(on, slots, windows)

    monkeypatch.setattr(RowsOperator, "_fired", noted)
    monkeypatch.setattr(operator, "_TOGETHER", together)
    found = run()
    rows, entries = np.sum(looked, axis=0)
    assert found.equals(expected)
    assert rows <= entries
    assert 1 < len(looked) <= 2 + 4 * entries / together, f"{len(looked)} turns for {entries} rows of windows"


def test_a_window_with_many_rows_beside_small_ones_fires_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows_of(np.concatenate([np.arange(0, 600, 2), np.full(3_000, 600), np.arange(602, 1_200, 2)]))
    spec = KEYED.window(WINDOWS["tumbling"]).top(3, by="v")

    def run() -> fw.Result:
        stream = spec.open(schema=SCHEMA)
        stream.process(table)
        return stream.advance_watermark(5_000)

    expected = run().main
    monkeypatch.setattr(operator, "_TOGETHER", 100)
    assert run().main.equals(expected)


@pytest.mark.parametrize("ending", ["last", "top"])
def test_a_firing_looks_at_rows_of_its_windows_alone(ending: str) -> None:
    keys, few, peaks = 50_000, 2, []
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(1_000))
    stream = (spec.deduplicate("last") if ending == "last" else spec.top(2, by="v")).open(schema=SCHEMA)
    stream.process(pa.table([np.arange(keys), np.full(keys, 100_000), np.arange(keys)], schema=SCHEMA))
    for time in range(0, 20_000, 1_000):
        stream.process(pa.table([np.arange(few), np.full(few, time), np.arange(few)], schema=SCHEMA))
        tracemalloc.start()
        try:
            main = stream.advance_watermark(time + 999).main
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert main["k"].to_pylist() == list(range(few))
    assert min(peaks[2:]) < keys // 2, f"{peaks} bytes; a mark for each of {keys} rows takes one"
    assert stream.metrics.state_rows == keys
