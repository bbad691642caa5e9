"""What operators say of their windows, held to the naive model after every step: contents, next firing, end."""

import copy
from typing import Any

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import Stream, open_plan
from tests.support.cases import MANY, Case, cases
from tests.support.lockstep import assert_rows_agree, main_rows, plain
from tests.support.naive import Model


def told(model: Model) -> list[tuple]:
    """What each open window would give now, in the shape of main_rows()."""
    return [
        (key, window.start, window.end, tuple(plain(model._result(kind, rows, at)) for kind, at in model.aggregates))
        for (key, window), rows in model.contents.items()
    ]


def assert_told(stream: Stream, model: Model, key_count: int) -> None:
    found = stream.inspect()
    values = found.column_names[: key_count + 2 + len(model.aggregates)]
    assert_rows_agree(main_rows(found.select(values), key_count), told(model))
    ends = found["window_end"].cast(pa.int64()).to_pylist()
    for end, fires, by, gone, fired, size in zip(
        ends,
        found["fires_at"].cast(pa.int64()).to_pylist(),
        found["fires_by"].to_pylist(),
        found["gone_at"].cast(pa.int64()).to_pylist(),
        found["fired"].to_pylist(),
        found["bytes"].to_pylist(),
        strict=True,
    ):
        passed = end - 1 <= model.watermark
        assert (fires, by) == ((None, None) if passed else (end - 1, "watermark"))
        assert gone == end - 1 + model.lateness
        assert fired == passed
        assert size > 0


def play(case: Case, stream: Stream) -> None:
    model = case.model()
    for kind, argument, rows in case.play():
        model.step(kind, argument if rows is None else rows)
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
        if stream._operator is not None:
            assert_told(stream, model, case.key_count)
            stream._check_invariants()
    assert stream.metrics.fired == model.fired  # looking has changed nothing


@MANY
@given(cases())
def test_windows_are_those_of_the_model(case: Case) -> None:
    play(case, case.spec().open())


@MANY
@given(cases(coalesce=st.just(False)))
def test_windows_of_the_general_operator_are_those_of_the_model(case: Case) -> None:
    play(case, open_plan(plan(case.spec(), case.table([], 0).schema, general=True)))


@MANY
@given(cases())
def test_a_restored_stream_says_the_same(case: Case) -> None:
    stream, model = case.spec().open(), case.model()
    for kind, argument, rows in case.play(len(case.steps)):
        if argument == fw.MAX_TIMESTAMP:
            break
        model.step(kind, argument if rows is None else rows)
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
    if stream._operator is None:
        return
    fresh = case.spec().open()
    fresh.restore([stream.snapshot()])
    assert_told(fresh, model, case.key_count)


_TRIGGERS = st.sampled_from(
    [
        fw.EventTimeTrigger(),
        fw.CountTrigger.of(2),
        fw.ContinuousEventTimeTrigger.of(3),
        fw.PurgingTrigger.of(fw.EventTimeTrigger()),
        fw.PurgingTrigger.of(fw.ContinuousEventTimeTrigger.of(4)),
        fw.any_of(fw.CountTrigger.of(3), fw.EventTimeTrigger()),
        fw.after_watermark(early=fw.CountTrigger.of(2)),
        fw.after_watermark(early=fw.ContinuousEventTimeTrigger.of(5), late=fw.CountTrigger.of(2)),
        fw.NeverTrigger(),
    ]
)
_WINDOWS = st.sampled_from(
    [
        fw.TumblingEventTimeWindows.of(10),
        fw.SlidingEventTimeWindows.of(12, 5),
        fw.EventTimeSessionWindows.with_gap(4),
    ]
)
_ELEMENTS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 40), st.just(1)), min_size=1, max_size=6)
_STEPS = st.lists(
    st.one_of(st.tuples(st.just("e"), _ELEMENTS), st.tuples(st.just("w"), st.integers(0, 45))), min_size=1, max_size=8
)
_SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])


def _fired(result: fw.Result) -> set[tuple]:
    rows = result.main.cast(
        pa.schema(
            [field.with_type(pa.int64()) if field.name.startswith("window_") else field for field in result.main.schema]
        )
    )
    return set(zip(*(rows[name].to_pylist() for name in ("k", "window_start", "window_end")), strict=True))


def _restored(spec: fw.WindowSpec, chunk: bytes) -> Stream:
    stream = spec.open()
    stream.restore([chunk])
    return stream


@MANY
@given(_WINDOWS, _TRIGGERS, st.sampled_from([0, 7]), _STEPS)
def test_a_window_fires_when_it_is_said_to(windows: Any, trigger: Any, lateness: int, steps: Any) -> None:
    """Up to a millisecond before, no watermark fires it; at that one it does."""
    assume(trigger.can_merge() or not isinstance(windows, fw.EventTimeSessionWindows))
    spec = fw.key_by("k").event_time("ts").window(windows).trigger(trigger).allowed_lateness(lateness)
    spec = spec.with_pane_info().aggregate(n=fw.Count())  # so that the general operator runs it
    stream = spec.open(schema=_SCHEMA)
    for kind, what in steps:
        if kind == "w":
            stream.advance_watermark(what)
        else:
            stream.process(pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in what], _SCHEMA))
    chunk = stream.snapshot()
    for row in stream.inspect().to_pylist():
        bounds = (row["k"], *(round(row[name].timestamp() * 1_000) for name in ("window_start", "window_end")))
        at = row["fires_at"]
        copied = _restored(spec, chunk)
        if at is None:
            assert row["n"] == 0 or bounds not in _fired(copied.advance_watermark(fw.MAX_TIMESTAMP))
            continue
        ms = round(at.timestamp() * 1_000)
        if ms > stream.watermark:
            assert bounds not in _fired(copied.advance_watermark(ms - 1))
        assert row["n"] == 0 or bounds in _fired(copied.advance_watermark(max(ms, stream.watermark + 1)))


def test_looking_leaves_the_state_as_it_is() -> None:
    spec = fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(12, 5)).aggregate(n=fw.Count())
    streams = [spec.open(schema=_SCHEMA) for _ in range(2)]
    table = pa.table({"k": ["a", "b", "a"], "ts": [1, 7, 13], "v": [1, 2, 3]})
    for stream in streams:
        stream.process(table)
    for key in ("a", "unheard of", None):
        streams[0].why(key)
    streams[0].inspect()
    assert streams[0].snapshot() == copy.copy(streams[1].snapshot())
    assert streams[0].metrics == streams[1].metrics
