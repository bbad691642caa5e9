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
    assert "gap" in told[1]
    assert told[0] == told[1].replace("Windows: gap", "Windows: column 'v': gap")


@pytest.mark.parametrize("policy", ["raise", "divert", "drop"])
@pytest.mark.parametrize("assigner", [fw.EventTimeSessionWindows, fw.ProcessingTimeSessionWindows])
def test_a_column_that_cannot_hold_gaps_is_refused_before_any_row(assigner: Any, policy: str) -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(assigner.with_dynamic_gap("gap")).bad_rows(policy)
    spec = spec.aggregate(n=fw.Count())
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64())])
    name = f"Dynamic{assigner.__name__}"
    with pytest.raises(fw.SpecError, match=f"^{name}: there is no column 'gap'; the input has k, ts$"):
        fw.plan(spec, schema)
    for kind in (pa.float64(), pa.bool_(), pa.decimal128(9, 2), pa.timestamp("ms"), pa.binary(), pa.list_(pa.int64())):
        with pytest.raises(fw.SpecError, match=rf"^{name}: column 'gap' is .*; a gap is an int of milliseconds, a "):
            fw.plan(spec, schema.append(pa.field("gap", kind)))


@pytest.mark.parametrize(
    "gaps", [[7, 9], ["7 ms", "9 ms"], pa.array([7, 9], pa.duration("ms")), pa.array([7, 9], "uint64")]
)
def test_types_of_gaps(gaps: Any) -> None:
    """Also where the column is the index of a frame."""
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_dynamic_gap("gap"))
    for frame in (table := pa.table({"k": ["a", "a"], "ts": [0, 7], "gap": gaps})), table.to_pandas().set_index("gap"):
        assert spec.aggregate(n=fw.Count()).run(frame).main["n"].to_pylist() == [2]
    coded = table.set_column(2, "gap", table["gap"].dictionary_encode())
    assert spec.aggregate(n=fw.Count()).run(coded).main["n"].to_pylist() == [2]


def test_durations_and_the_clock() -> None:
    table = pa.table({"k": ["a", "a"], "v": pa.array([10, 20], pa.duration("ms")), "g": [10, 20]})
    for gap in ("v", "g"):
        spec = fw.key_by("k").window(fw.ProcessingTimeSessionWindows.with_dynamic_gap(gap)).aggregate(n=fw.Count())
        stream = spec.open()
        stream.advance_processing_time(100)
        stream.process(table)
        assert stream.advance_processing_time(118).main.num_rows == 0
        assert stream.advance_processing_time(119).main["n"].to_pylist() == [2]
