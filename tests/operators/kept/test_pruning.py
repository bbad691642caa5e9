"""What a delta of windows that keep rows costs: it looks at what is new, and gaps of rows that go are closed."""

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.core.keys.keytable import KeyTable
from fastwin.operators.kept import pruning
from fastwin.operators.kept.keptrows import KeptRows
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


@pytest.mark.parametrize("name", SPECS)
def test_late_rows_look_at_the_rows_of_their_windows_alone(name: str) -> None:
    keys, few, peaks = 50_000, 2, []
    stream = SPECS[name].allowed_lateness(10_000).open(schema=SCHEMA)
    stream.process(rows_of(np.arange(keys), 0, 0))
    stream.advance_watermark(5_000)
    for value in range(1, 6):
        tracemalloc.start()
        try:
            main = stream.process(rows_of(np.arange(few), 0, value)).main
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert set(main["k"].to_pylist()) == set(range(few))
        assert main["v"].to_pylist().count(value) == few * {"last": 1, "top": 10}[name]
    assert min(peaks[2:]) < keys, f"{peaks} bytes; a mark for each of {keys} rows takes one"  # arrays have grown before


def test_late_rows_of_many_slices_look_at_all_rows_where_these_are_fewer() -> None:
    keys, spec = 2_000, KEYED.window(fw.SlidingEventTimeWindows.of(480, 1)).deduplicate("last")
    stream = spec.allowed_lateness(2, coalesce=True).open(schema=SCHEMA)
    other = pa.table([np.full(960, -1), np.arange(960), np.zeros(960, np.int64)], schema=SCHEMA)
    stream.process(other)  # rows in each slice
    stream.process(rows_of(np.arange(keys), 900, 1))
    stream.advance_watermark(901)
    tracemalloc.start()
    try:
        main = stream.process(rows_of(np.arange(keys), 899, 2)).main
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(main["k"].to_pylist()) == set(range(keys))
    assert peak < 480 * keys * 8, f"{peak} bytes; a number for each slice of each key takes eight"


def test_rows_that_are_put_in_order_let_go_of_their_keys() -> None:
    keys, kept = KeyTable("int64"), KeptRows(pa.schema([("v", pa.int64())]))
    pruner = Pruner(kept, keys, None, 10)
    columns = pa.record_batch([pa.array([3, 1, 3])], names=["v"])
    ids = keys.intern_int64(np.array([7, 8, 7]))
    keys.retain_ids(ids)
    some = np.array([30, 10, 30])
    kept.add(columns, key=ids, start=some, arrival=some, since=some)
    pruner.by_slice()
    pruner.put_in_order()
    assert kept.columns.take(kept.slots())[0].to_pylist() == [1, 3]
    assert len(keys) == 2
    pruner.drop_before(100)
    keys.sweep()
    assert len(keys) == 0


@pytest.mark.parametrize("name", SPECS)
def test_of_a_large_batch_only_rows_that_a_window_picks_are_kept(name: str) -> None:
    stream = SPECS[name].open(schema=SCHEMA)
    stream.process(rows_of(np.arange(20_000), 0, 0))
    few, each = {"last": 1, "top": 2}[name], 2_000
    stream.process(rows_of(np.repeat(np.arange(3), each), 0, 1))  # fewer rows than are kept: nothing is pruned
    assert stream.metrics.state_rows == 20_000 + 3 * few
    found = stream.advance_watermark(10_000).main
    assert max(found.filter(pc.less(found["k"], 3))["v"].to_pylist()) == 1
    assert stream.metrics.state_rows == 0


def test_a_large_late_batch_shows_each_row_that_is_the_best_for_a_while() -> None:
    late = SPECS["top"].allowed_lateness("1 minute", coalesce=False)
    found = []
    for n in (5_000, 40):  # above and below what is looked at first
        stream = late.open(schema=SCHEMA)
        stream.process(rows_of(np.zeros(1), 0, 0))
        stream.advance_watermark(1_500)
        rows = pa.table([np.zeros(n, np.int64), np.zeros(n, np.int64), np.arange(n)], schema=SCHEMA)
        found.append(stream.process(rows).main)
    assert len(found[0]) > 5_000
    assert found[0].slice(0, len(found[1])).equals(found[1])


def test_a_late_row_in_a_large_batch_keeps_none_of_the_others() -> None:
    stream = SPECS["last"].allowed_lateness("1 minute", coalesce=True).open(schema=SCHEMA)
    stream.process(rows_of(np.arange(20_000), 2_000, 0))
    stream.advance_watermark(1_500)
    late, many = rows_of(np.zeros(1, np.int64), 0, 7), rows_of(np.zeros(5_000, np.int64), 2_000, 1)
    fired = stream.process(pa.concat_tables([many, late]).combine_chunks()).main
    assert fired["v"].to_pylist() == [7]
    assert stream.metrics.state_rows == 20_000 + 2


@pytest.mark.parametrize("kinds", [6_000, 5_000, 3])  # all rows stay, most of them, or few
def test_a_first_large_batch_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, kinds: int) -> None:
    looked: list[int] = []
    in_slices = pruning._in_slices
    monkeypatch.setattr(pruning, "_in_slices", lambda keys, starts: looked.append(len(keys)) or in_slices(keys, starts))
    stream = SPECS["top"].open(schema=SCHEMA)
    stream.process(rows_of(np.arange(12_000) % kinds, 0, 0))
    assert looked == [12_000]
    assert stream.metrics.state_rows == 2 * kinds
    stream.delta()
    assert looked == [12_000]
