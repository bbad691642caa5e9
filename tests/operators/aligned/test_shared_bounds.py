"""Rows of one window share the memory of their bounds, where they are many: no result differs by it."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.aligned import groups
from fastwin.run.fresh import new_groups
from fastwin.run.grouped import grouped
from fastwin.run.planner import plan


def table_of(n: int, order: str) -> pa.Table:
    random = np.random.default_rng(3)
    times = random.integers(-40, 50, n)
    times = {"sorted": np.sort(times), "random": times}[order]
    return pa.table({"k": random.integers(0, 500, n), "t": times, "v": np.arange(n)})


SPEC = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(30)).aggregate(n=fw.Sum("v"))
BOUNDS = ("window_start", "window_end")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["sorted", "random"])
@pytest.mark.parametrize(("sharing", "flush"), [(1, 1), (1, 7), (30, 200), (50, 64), (200, 1 << 16)])
def test_rows_are_those_with_bounds_of_their_own(
    sharing: int, flush: int, order: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastwin.run.threads._FEW_ROWS", 100)
    table = table_of(4_000, order)
    monkeypatch.setattr(groups, "_FLUSH_ROWS", flush)
    monkeypatch.setattr(groups, "_SHARING_ROWS", 1 << 40)
    own = SPEC.run(table, threads=threads).main
    monkeypatch.setattr(groups, "_SHARING_ROWS", sharing)
    shared = SPEC.run(table, threads=threads).main
    assert shared.equals(own)
    stream = SPEC.open()
    stream.process(table)
    expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    by = [("window_start", "ascending"), ("k", "ascending")]
    assert shared.sort_by(by).equals(expected.sort_by(by))


def test_many_rows_of_a_window_have_their_bounds_once() -> None:
    n = 100_000
    table = pa.table({"k": np.tile(np.arange(n), 2), "t": np.repeat([5, 35], n), "v": np.ones(2 * n, np.int64)})
    found = SPEC.run(table).main
    for name, expected in zip(BOUNDS, ([0, 30], [30, 60]), strict=True):
        chunks = found[name].chunks
        places = [(chunk[0].value, chunk.buffers()[1].address) for chunk in chunks]
        assert len(chunks) == 4
        assert [value for value, _ in places] == np.repeat(expected, 2).tolist()
        assert len(set(places)) == 2
        assert not any(chunk.buffers()[1].is_mutable for chunk in chunks)
        assert found[name].cast(pa.int64()).to_pylist() == np.repeat(expected, n).tolist()


def test_memory_is_no_more_than_bounds_of_their_own_would_take() -> None:
    table = table_of(10, "sorted")
    operator = new_groups(grouped(plan(SPEC, table.schema), table.to_batches()))
    operator.expect(0, 100)
    for start, n, held in ((0, 20_000, 20_000), (30, 17_000, 17_000), (30, 18_000, 1 << 16), (30, 1 << 16, 1 << 16)):
        since, until = operator._bounds(np.full(n, start))
        assert (len(since), len(until)) == (n, n)
        assert np.all(since == start) and np.all(until == start + 30)
        assert len(operator._shared[0]) == held
