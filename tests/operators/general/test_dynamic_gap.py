"""Sessions with a gap out of a column mean what the same sessions with a function mean."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.steps import run_steps, steps_with

elements = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-60, 120), st.integers(1, 30)), min_size=1, max_size=12
)


def spec_of(gap: Any) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap(gap))
    return spec.allowed_lateness(10).side_output_late_data().aggregate(n=fw.Count(), s=fw.Sum("v"))


@given(steps=steps_with(elements))
def test_column_equals_function(steps: Any) -> None:
    assert run_steps(spec_of("v"), steps, general=True) == run_steps(spec_of(lambda e: e.v), steps, general=True)


@pytest.mark.parametrize("gap", [0, -1, None, 2**53 + 1, 2**62, timedelta(0)])
def test_what_is_no_gap_is_refused_with_the_same_words(gap: Any) -> None:
    kind = pa.duration("ms") if isinstance(gap, timedelta) else pa.int64()
    table = pa.table({"k": ["a"], "ts": [5], "v": pa.array([gap], kind)})
    told = []
    for by in ("v", lambda e: e.v):
        spec = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap(by))
        with pytest.raises(fw.UserFunctionError, match="key 'a', timestamp 5") as problem:
            spec.aggregate(n=fw.Count()).run(table)
        told.append(str(problem.value))
    assert told[0] == told[1]


def test_durations_and_the_clock() -> None:
    table = pa.table({"k": ["a", "a"], "v": pa.array([10, 20], pa.duration("ms")), "g": [10, 20]})
    for gap in ("v", "g"):
        spec = fw.key_by("k").window(fw.ProcessingTimeSessionWindows.with_dynamic_gap(gap)).aggregate(n=fw.Count())
        stream = spec.open()
        stream.advance_processing_time(100)
        stream.process(table)
        assert stream.advance_processing_time(118).main.num_rows == 0
        assert stream.advance_processing_time(119).main["n"].to_pylist() == [2]
