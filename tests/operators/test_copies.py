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


class Loud(fw.ProcessWindowFunction):
    """Says nothing, or what it is asked to."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def process(self, key, context, elements):
        (n,) = (row["n"] for row in elements)
        if self.answer == "side":
            context.output("seen", {"n": n})
        return [(n,)] if self.answer == "rows" else []


@pytest.mark.parametrize("answer", ["nothing", "side", "rows"])
@pytest.mark.parametrize("pane_info", [False, True])
def test_copies_that_a_function_is_given_are_not_counted_twice(answer: str, pane_info: bool) -> None:
    """Those of a window are gone before its function is called, so there may be nothing to hand over."""
    n = 6_000
    rows = pa.table({"k": np.zeros(n, np.int64), "t": np.zeros(n, np.int64), "v": np.arange(n)})
    spec = KEYED.window(fw.TumblingEventTimeWindows.of("1 day")).trigger(fw.CountTrigger.of(1))
    spec = spec.side_output("seen", "n bigint").with_pane_info() if pane_info else spec.side_output("seen", "n bigint")
    spec = spec.aggregate(distinct=fw.CountDistinct("v"), n=fw.Count(), then=Loud(answer), output="fired bigint")
    result = spec.run(rows)
    assert result.main["fired"].to_pylist() == (list(range(1, n + 1)) if answer == "rows" else [])
    assert result.side["seen"]["n"].to_pylist() == (list(range(1, n + 1)) if answer == "side" else [])


def test_copies_behind_an_evictor_do_not_pile_up() -> None:
    n = 3_000
    rows = pa.table(
        {"k": np.zeros(n, np.int64), "t": np.zeros(n, np.int64), "v": [f"{i:04}" + "x" * 60 for i in range(n)]}
    )
    spec = KEYED.window(fw.TumblingEventTimeWindows.of("1 day")).trigger(fw.CountTrigger.of(1))
    found = spec.evictor(fw.CountEvictor.of(1_000)).aggregate(n=fw.Count(), all=fw.Collect("v")).run(rows).main
    assert found["n"].to_pylist() == [min(i, 1_000) for i in range(1, n + 1)]
    assert found["n"].num_chunks > 1


@pytest.mark.parametrize("fill", [None, "empty"])
def test_late_elements_of_one_call_fire_as_they_come(fill: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few windows fire together; the windows of gaps are put among all that fire in the call."""
    found = []
    for most in (1 << 40, 1):
        monkeypatch.setattr(parts, "_COPIES_BYTES", most)
        windows = KEYED.window(fw.TumblingEventTimeWindows.of(10), fill=fill).allowed_lateness("1 s")
        stream = windows.aggregate(kept=fw.Collect("v"), n=fw.Count()).open()
        stream.process(pa.table({"k": [1], "t": [15], "v": [1]}))
        stream.advance_watermark(150)
        late = [95, 45, *(10 * (i % 14) + 5 for i in range(200))]
        result = stream.process(pa.table({"k": [1] * len(late), "t": late, "v": list(range(len(late)))}))
        found.append((result.main.to_pylist(), stream.metrics.fired))
    assert found[0] == found[1]
