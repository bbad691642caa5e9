"""Options that say what a window gives may change over a restart, as after a sum that overflows when a window fires."""

import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fw.Variance("v"), fw.Variance("v", ddof=0)),
        (fw.StdDev("v", ddof=0), fw.StdDev("v")),
        (fw.HyperLogLog("v"), fw.HyperLogLog("v", output="sketch")),
        (fw.HyperLogLog("v", output="sketch"), fw.HyperLogLog("v")),
        (fw.Quantile("v", 0.2), fw.Quantile("v", 0.9)),
        (fw.TopK("v", 1), fw.TopK("v", 3)),
        (fw.StringAgg("s", ", separator='-'"), fw.StringAgg("s", '"')),
    ],
    ids=str,
)
def test_what_only_the_results_depend_on_may_change(name: str, before: fw.Aggregate, after: fw.Aggregate) -> None:
    first, second = (
        pa.table({"k": ["a", "a", "b"] * 2, "t": [at, at, at] * 2, "v": values, "s": list("abcdef")})
        for at, values in ((2, [3, 8, 5, 3, 9, 1]), (4, [8, 8, 2, 5, 5, 1]))
    )
    stream = WINDOWS[name].aggregate(x=before, n=fw.Count()).open()
    stream.process(first)
    spec = WINDOWS[name].aggregate(n=fw.Count(), x=after)
    again, whole = spec.open(), spec.open()
    again.restore([stream.snapshot()])
    whole.process(first)
    rows = []
    for one in (again, whole):
        one.process(second)
        rows.append(sorted(map(repr, one.advance_watermark(99).main.to_pylist())))
    assert rows[0] == rows[1]
    assert len(rows[0]) >= 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fw.Sum("v"), fw.Sum("w", on_overflow="null")),
        (fw.Sum("v"), fw.Mean("v", on_overflow="null")),
        (fw.Variance("v"), fw.StdDev("v")),
        (fw.Sum("v, on_overflow='raise'"), fw.Sum("v")),
        (fw.Quantile("v", 0.9), fw.Quantile("v", 0.9, relative_error=0.02)),
        (fw.Collect("v"), fw.Collect("v", limit=3)),
        (fw.Median("v"), fw.Quantile("v", 0.5)),
        (fw.TopK("v", 1, where=pc.field("w") > 0), fw.TopK("v", 2)),
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
