"""Where what fires is a copy of lists or sketches, only so many copies are there at once; results stay the same."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators import parts

KEYED = fw.key_by("k").event_time("t")
AGGREGATES = {"distinct": fw.CountDistinct("v"), "median": fw.Median("v"), "kept": fw.Collect("v"), "n": fw.Count()}


def table(n: int, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {"k": random.integers(0, 5, n), "t": np.sort(random.integers(0, 10_000, n)), "v": random.integers(0, 50, n)}
    )


def sorted_rows(results: list[fw.Result]) -> list[str]:
    return sorted(map(str, pa.concat_tables([result.main for result in results]).to_pylist()))


def sliding(late: bool) -> list[fw.Result]:
    windows = KEYED.window(fw.SlidingEventTimeWindows.of(1_000, 50)).allowed_lateness("1 minute")
    stream = windows.aggregate(**AGGREGATES).open()
    results = [stream.process(table(3_000)), stream.advance_watermark(9_000)]
    if late:
        results.append(stream.process(table(300, seed=2)))
    return [*results, stream.advance_watermark(fw.MAX_TIMESTAMP)]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("most", [1, 5_000, 1 << 26])
def test_sliding_windows_fire_a_few_at_a_time(late: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_COPIES_BYTES", 1 << 40)
    expected = sorted_rows(sliding(late))
    monkeypatch.setattr(parts, "_COPIES_BYTES", most)
    results = sliding(late)
    assert sorted_rows(results) == expected
    chunks = results[-1].main.column(0).num_chunks
    assert (chunks > 15) == (most < 1 << 26)


def test_the_number_of_windows_follows_what_they_take() -> None:
    step, steps = 1, []
    for nbytes in (100, 1_000, 1 << 26, 1 << 28, 1 << 30, 1 << 10):
        step = parts.next_copies(step, nbytes)
        steps.append(step)
    assert steps == [2, 4, 4, 1, 1, 2]


def test_early_results_of_a_large_window_do_not_pile_up() -> None:
    """Each is a copy of its set: together they would take more than a gigabyte."""
    n = 8_000
    rows = pa.table({"k": np.zeros(n, np.int64), "t": np.zeros(n, np.int64), "v": np.arange(n)})
    spec = KEYED.window(fw.TumblingEventTimeWindows.of("1 day")).trigger(fw.CountTrigger.of(1))
    found = spec.aggregate(distinct=fw.CountDistinct("v"), n=fw.Count()).run(rows).main
    assert found["distinct"].to_pylist() == found["n"].to_pylist() == list(range(1, n + 1))
    assert found["n"].num_chunks > 1
