"""Sessions with a gap out of a column mean what the same sessions with a function mean."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.columns.gaps import no_gaps
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


NO_GAPS = [
    pa.array([0, -1, None, 2**53 + 1, 2**62]),
    pa.array([0, -(2**7), None], pa.int8()),
    pa.array([0, 2**64 - 1, 2**53 + 1, None], pa.uint64()),
    pa.array([0, -1, None, 2**53 + 1], pa.duration("ms")),
    pa.array([0, None, 2**53], pa.duration("s")),
    pa.array([0, 999, 1_500, None], pa.duration("us")),
    pa.array([0, 999_999, 1_000_001, None, 2**63 - 1], pa.duration("ns")),
    pa.array(["", "ten", "10", "0 s", "-1 s", "1 month", None]),
    pa.nulls(2),
]
GAPS = {
    pa.duration("s"): [1, 2**53 // 1_000],
    pa.duration("us"): [1_000, 2**53 * 1_000],
    pa.duration("ns"): [1_000_000, (2**63 - 1) // 10**6 * 10**6],
    pa.string(): ["1 ms", "0.5 s"],
    pa.null(): [],
}


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("bad", NO_GAPS, ids=lambda bad: str(bad.type))
def test_what_is_no_gap(bad: pa.Array, coded: bool) -> None:
    good = pa.array(GAPS.get(bad.type, [1, 127]), bad.type)
    column = pa.concat_arrays([bad[:1], good, bad, good])
    expected = [True] + [False] * len(good) + [True] * len(bad) + [False] * len(good)
    if coded and not pa.types.is_null(bad.type):
        column = column.dictionary_encode()
    found = no_gaps(column[1:])
    assert found is not None
    assert found.tolist() == expected[1:]
    assert no_gaps(good) is None


def session_rows(gaps: Any) -> pa.Table:
    return pa.table({"k": ["a"] * 5, "ts": pa.array([0, 5, 7, None, 30]), "gap": gaps})


def gap_spec(policy: str) -> Any:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_dynamic_gap("gap"))
    return spec.bad_rows(policy).aggregate(n=fw.Count())


@pytest.mark.parametrize("gaps", [[10, None, 5, None, 0], ["10 ms", "soon", "5 ms", None, "0 s"]])
def test_a_row_whose_gap_is_none_is_a_bad_row(gaps: list) -> None:
    """In all the ways that rows come in. One whose time is bad as well is told by that."""
    rows = session_rows(gaps)
    told = (
        r"^with_dynamic_gap 'gap': gap that is null, below 1 ms or no duration of whole milliseconds in row 1 "
        r"\(value (None|soon)\); 3 of 5"
    )
    with pytest.raises(fw.BadRowError, match=told):
        gap_spec("raise").run(rows)
    result = gap_spec("divert").run(rows)
    assert result.main["n"].to_pylist() == [2]
    assert result.bad["ts"].cast(pa.int64()).to_pylist() == [5, None, 30]
    reasons = ["gap that is null, below 1 ms or no duration of whole milliseconds", "null timestamp"]
    assert result.bad["bad_reason"].to_pylist() == [*reasons, reasons[0]]
    dropped = gap_spec("drop").run(rows)
    assert dropped.bad_dropped == 3
    assert dropped.main == result.main
    stream = gap_spec("drop").open(schema=rows.schema)
    for row in rows.to_pylist():
        stream.push(row)
    assert stream.metrics.bad == 3
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [2]


@pytest.mark.parametrize("policy", ["raise", "divert", "drop"])
def test_gaps_of_sessions_over_the_clock_are_checked_as_well(policy: str) -> None:
    spec = fw.key_by("k").window(fw.ProcessingTimeSessionWindows.with_dynamic_gap("gap")).bad_rows(policy)
    stream = spec.aggregate(n=fw.Count()).open()
    rows = pa.table({"k": ["a", "a"], "gap": [10, 0]})
    if policy == "raise":
        with pytest.raises(fw.BadRowError, match=r"with_dynamic_gap 'gap': .* in row 1 "):
            stream.process(rows)
    else:
        assert stream.process(rows).bad.num_rows == (policy == "divert")
        assert stream.metrics.bad == 1
        assert stream.advance_processing_time(10**15).main["n"].to_pylist() == [1]


@pytest.mark.parametrize("gap", [0, -1, None, 2**53 + 1, 2**62, timedelta(0)])
def test_a_wrong_gap_out_of_a_function_is_an_error_of_that_function(gap: Any) -> None:
    spec = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap(lambda e: gap))
    with pytest.raises(fw.UserFunctionError, match=r"(?s)key .a., timestamp 5.*gap"):
        spec.bad_rows("drop").aggregate(n=fw.Count()).run(pa.table({"k": ["a"], "ts": [5]}))


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
