"""A stream whose sum overflows when a window fires goes on from its state, with the option changed."""

import decimal
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

BASE = fw.key_by("k").event_time("t")
WINDOWS = {
    "tumbling": BASE.window(fw.TumblingEventTimeWindows.of(10)),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(10, 5)),
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap(5)),
    "general": BASE.window(fw.TumblingEventTimeWindows.of(10)).with_pane_info(),
}
HUGE = pa.array([2**62, 2**62, 5], pa.int64())
DECIMALS = pa.array([decimal.Decimal(9 * 10**37)] * 2 + [decimal.Decimal(1)], pa.decimal128(38, 0))


def elements(values: pa.Array) -> pa.Table:
    return pa.table({"k": ["a", "a", "b"], "t": [1, 2, 3], "v": values})


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize(("kind", "values"), [(fw.Sum, HUGE), (fw.Sum, DECIMALS), (fw.Mean, DECIMALS)])
def test_the_stream_goes_on_with_null(name: str, delta: bool, kind: Any, values: pa.Array) -> None:
    spec = WINDOWS[name].aggregate(n=fw.Count(), x=kind("v"), hi=fw.Max("v"))
    stream = spec.open(schema=elements(values).schema)
    first = stream.snapshot()
    stream.process(elements(values))
    chunks = [first, stream.delta()] if delta else [stream.snapshot()]
    with pytest.raises(fw.AggregateOverflowError):
        stream.advance_watermark(fw.MAX_TIMESTAMP)
    relaxed = WINDOWS[name].aggregate(n=fw.Count(), x=kind("v", on_overflow="null"), hi=fw.Max("v"))
    again = relaxed.open(schema=elements(values).schema)
    again.restore(chunks)
    main = again.advance_watermark(fw.MAX_TIMESTAMP).main
    found = dict(zip(main["k"].to_pylist(), main["x"].to_pylist(), strict=True))
    assert found["a"] is None
    assert found["b"] == values[2].as_py()
    # And back, once the window is gone.
    strict = spec.open(schema=elements(values).schema)
    strict.restore([again.snapshot()])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fw.Variance("v"), fw.Variance("v", ddof=0)),
        (fw.StdDev("v", ddof=0), fw.StdDev("v")),
    ],
    ids=str,
)
def test_what_only_the_results_depend_on_may_change(before: fw.Aggregate, after: fw.Aggregate) -> None:
    values = pa.array([3, 8, 5], pa.int64())
    stream = WINDOWS["tumbling"].aggregate(x=before).open()
    stream.process(elements(values))
    spec = WINDOWS["tumbling"].aggregate(x=after)
    again = spec.open()
    again.restore([stream.snapshot()])
    main = again.advance_watermark(9).main
    assert main.sort_by("k")["x"] == spec.run(elements(values)).main.sort_by("k")["x"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fw.Sum("v"), fw.Sum("w", on_overflow="null")),
        (fw.Sum("v"), fw.Mean("v", on_overflow="null")),
        (fw.Variance("v"), fw.StdDev("v")),
        (fw.Sum("v, on_overflow='raise'"), fw.Sum("v")),
    ],
    ids=str,
)
def test_what_the_state_depends_on_may_not(before: fw.Aggregate, after: fw.Aggregate) -> None:
    names = ["v", "w", "v, on_overflow='raise'"]
    table = pa.table({"k": ["a"], "t": [1], **{name: [1] for name in names}})
    stream = WINDOWS["tumbling"].aggregate(x=before).open()
    stream.process(table)
    with pytest.raises(fw.StateError, match="aggregate x was "):
        WINDOWS["tumbling"].aggregate(x=after).open(schema=table.schema).restore([stream.snapshot()])
