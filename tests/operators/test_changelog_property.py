"""A changelog, applied to an empty table, makes it hold the newest result of each window at every moment."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan
from tests.support.naive import Cumulative, Model, Row, Sessions, Sliding, Window

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
AGGREGATES = [("count", None), ("sum", 0)]
WINDOWS = st.sampled_from(
    [
        (fw.TumblingEventTimeWindows.of(10), Sliding(10, 10)),
        (fw.SlidingEventTimeWindows.of(12, 5), Sliding(12, 5)),
        (fw.CumulativeEventTimeWindows.of(20, 5), Cumulative(20, 5)),
        (fw.EventTimeSessionWindows.with_gap(6), Sessions(6)),
        (fw.EventTimeSessionWindows.with_gap(3), Sessions(3)),
    ]
)
ELEMENTS = st.lists(
    st.tuples(st.sampled_from("aab"), st.integers(-20, 40), st.integers(-5, 5)), min_size=1, max_size=10
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), ELEMENTS),
        st.tuples(st.just("watermark"), st.integers(-30, 60)),
        st.tuples(st.just("save"), st.booleans()),
    ),
    min_size=4,
    max_size=14,
)


EARLY_STEPS = st.lists(st.tuples(st.just("batch"), ELEMENTS) | st.tuples(st.just("save"), st.booleans()), max_size=5)


class View(Model):
    """The newest result of each window, without those that have become part of another."""

    def __init__(self, windows: Any, lateness: int, coalesce: bool) -> None:
        super().__init__(windows, AGGREGATES, lateness, coalesce=coalesce)
        self.view: dict[tuple[Any, int, int], tuple] = {}

    def _fire(self, key: Any, window: Window, timer: int | None, fed: Any) -> None:
        super()._fire(key, window, timer, fed)
        self.view[key, *window] = fed.emissions[-1].values

    def _join(self, key: Any, olds: list[Window], new: Window) -> None:
        super()._join(key, olds, new)
        for old in olds:
            if old != new:
                self.view.pop((key, *old), None)


def apply(table: dict[tuple[Any, int, int], tuple], changes: pa.Table) -> None:
    """Applies a changelog, and knows what is a mistake in one."""
    bounds = [changes[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    rows = zip(changes["k"].to_pylist(), *bounds, *(changes[name].to_pylist() for name in ("change", "n", "s")))  # noqa: B905
    for key, start, end, change, *values in rows:
        place = key, start, end
        assert (place in table) == (change != "insert"), f"{change} of {place}"
        if change == "delete":
            assert values == [None, None]
            del table[place]
        else:
            table[place] = tuple(values)


def follow(spec: fw.WindowSpec, steps: Any, coalesce: bool, expected: Any) -> None:
    """Takes steps, with restores, and compares the table with what is expected after each."""
    bound = plan(spec, SCHEMA, coalesce=coalesce)
    stream = open_plan(bound)
    table: dict[tuple[Any, int, int], tuple] = {}
    chunks: list[bytes] = []
    for kind, what in [*steps, ("watermark", 10_000)]:
        if kind == "batch":
            rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in what]
            apply(table, stream.process(pa.Table.from_pylist(rows, schema=SCHEMA)).main)
        elif kind == "watermark":
            apply(table, stream.advance_watermark(what).main)
        else:
            chunks = [stream.snapshot()] if what or not chunks else [*chunks, stream.delta()]
            stream = open_plan(bound)
            stream.restore(chunks)
        assert table == expected(kind, what)


@given(WINDOWS, st.sampled_from([0, 5, 30]), st.booleans(), STEPS)
def test_late_firings_and_merges_correct_what_was_handed_out(
    windows: Any, lateness: int, coalesce: bool, steps: Any
) -> None:
    spec = fw.key_by("k").event_time("ts").window(windows[0]).allowed_lateness(lateness).with_changelog()
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("v"))
    model, count = View(windows[1], lateness, coalesce), 0

    def expected(kind: str, what: Any) -> dict:
        nonlocal count
        if kind == "batch":
            rows = [Row(count + i, key, time, (value,)) for i, (key, time, value) in enumerate(what)]
            count += len(rows)
            model.batch(rows)
        elif kind == "watermark":
            model.advance(what)
        return model.view

    follow(spec, steps, coalesce, expected)


@given(WINDOWS, EARLY_STEPS)
def test_early_firings_show_all_elements_so_far(windows: Any, steps: Any) -> None:
    """Each element fires, so after each batch the table holds what a run over all elements so far would."""
    early = fw.after_watermark(early=fw.CountTrigger.of(1))
    spec = fw.key_by("k").event_time("ts").window(windows[0]).trigger(early).with_changelog()
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("v"))
    seen: list[Row] = []

    def expected(kind: str, what: Any) -> dict:
        if kind == "batch":
            seen.extend(Row(len(seen) + i, key, time, (value,)) for i, (key, time, value) in enumerate(what))
        model = View(windows[1], 0, False)
        model.batch(seen)
        model.advance(10_000)
        return model.view

    follow(spec, steps, False, expected)
