"""Tables in: what is taken as a table, conformed, checked; event times of every unit."""

import datetime as dt
import time

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns.checking import BAD_REASON, Limits, bad_table, check_rows, event_times
from fastwin.columns.keys import key_hash
from fastwin.errors import BadRowError
from fastwin.times import MIN_TIMESTAMP

FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


def of(column: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"ts": column})


def seconds(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("unit", "values", "floored"),
    [
        ("s", [0, -1, 1], [0, -1_000, 1_000]),
        ("ms", [0, -1, 1], [0, -1, 1]),
        ("us", [0, -1, -1_000, -1_001, 999, 1_000], [0, -1, -1, -2, 0, 1]),
        ("ns", [0, -1, -1_000_000, -1_000_001, 999_999, 1_000_000], [0, -1, -1, -2, 0, 1]),
        ("ns", [2**63 - 1, -(2**63) + 1], [9_223_372_036_854, -9_223_372_036_855]),
    ],
)
def test_times_are_floored_to_ms(unit: str, values: list, floored: list, zone: str | None) -> None:
    column = pa.array([0, *values], pa.int64()).cast(pa.timestamp(unit, zone))[1:]
    times, reasons = event_times(column)
    assert times.tolist() == floored
    assert times.dtype == np.int64
    assert reasons is None


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_years_1_to_9999(unit: str) -> None:
    per = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    first, last = seconds(FIRST) * per, (seconds(LAST) + 1) * per - 1
    values = [first - 1, first, None, last, last + 1, 2**63 - 1, -(2**63)]
    times, reasons = event_times(pa.array(values, pa.int64()).cast(pa.timestamp(unit)))
    assert reasons.tolist() == [2, 0, 1, 0, 2, 2, 2]
    assert times[[1, 3]].tolist() == [seconds(FIRST) * 1_000, last * 1_000 // per]
    assert not times[reasons != 0].any()


def test_int64_milliseconds_have_room_for_windows() -> None:
    times, reasons = event_times(pa.array([2**61, -(2**61), 2**61 + 1, -(2**61) - 1, None, 2**63 - 1]))
    assert reasons.tolist() == [0, 0, 3, 3, 1, 3]
    assert times[:2].tolist() == [2**61, -(2**61)]


def test_column_of_nulls() -> None:
    times, reasons = event_times(pa.nulls(3))
    assert times.tolist() == [0, 0, 0]
    assert reasons.tolist() == [1, 1, 1]


def test_garbage_below_null_is_not_read() -> None:
    column = pa.Array.from_buffers(
        pa.timestamp("s"), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([2**63 - 1, 5]))]
    )
    times, reasons = event_times(column)
    assert (times.tolist(), reasons.tolist()) == ([0, 5_000], [1, 0])


COLUMN = pa.array([None, 0, 9_404_726_400_000_000, 5], pa.timestamp("ms"))


def test_raise_names_the_first_bad_row() -> None:
    with pytest.raises(BadRowError) as caught:
        check_rows(of(COLUMN), "ts", "raise")
    text = str(caught.value)
    assert "event_time 'ts': null timestamp in row 0" in text
    assert "2 of 4 rows are bad" in text
    with pytest.raises(BadRowError, match=r"outside years 1 to 9999 in row 1 \(value 9404726400000000 ms\)"):
        check_rows(of(COLUMN[1:]), "ts", "raise")


def test_raise_names_the_input_of_a_join_and_the_policies_that_it_takes() -> None:
    with pytest.raises(BadRowError) as caught:
        check_rows(of(COLUMN), "ts", "raise", Limits(side="right"), before=7)
    assert str(caught.value) == (
        "event_time 'ts': null timestamp in row 7 of the right input (value None); 2 of 4 rows from row 7 on are bad; "
        "bad_rows('drop') goes on without them"
    )


@pytest.mark.parametrize("policy", ["divert", "drop"])
def test_other_policies_tell_which_rows(policy: str) -> None:
    times, reasons = check_rows(of(COLUMN), "ts", policy)
    assert reasons.tolist() == [1, 0, 2, 0]
    assert times[[1, 3]].tolist() == [0, 5]
    assert check_rows(of(COLUMN[3:]), "ts", policy)[1] is None


def test_limits_of_the_runner() -> None:
    now = int(time.time() * 1_000)
    column = pa.array([None, -1, 0, now, now + 50_000, now + 120_000], pa.timestamp("ms", "UTC"))
    limits = Limits(max_future_skew_ms=60_000, earliest_ms=0)
    assert check_rows(of(column), "ts", "drop", limits)[1].tolist() == [1, 5, 0, 0, 0, 4]
    assert check_rows(of(column), "ts", "drop", Limits(0))[1].tolist()[1:4] == [0, 0, 0]
    assert check_rows(of(column), "ts", "drop")[1].tolist() == [1, 0, 0, 0, 0, 0]
    with pytest.raises(BadRowError, match="further ahead of the clock than max_future_skew in row 4"):
        check_rows(of(column[1:]), "ts", "raise", Limits(60_000))
    with pytest.raises(BadRowError, match="before the earliest that the runner takes in row 0"):
        check_rows(of(column[1:]), "ts", "raise", Limits(None, 0))
    assert Limits().earliest_ms == MIN_TIMESTAMP


PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000, None: 1_000}


@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize("earliest_ms", [MIN_TIMESTAMP, -1_500, 0, 1_001])
def test_every_limit_to_the_last_unit(unit: str | None, earliest_ms: int) -> None:
    """One time alone, which is looked at once if it is good, against the rules in whole numbers."""
    per_second = PER_SECOND[unit]
    edges = [earliest_ms * per_second // 1_000, 0, 2**61, 2**62, -(2**61), -(2**62)]
    edges += [seconds(FIRST) * per_second, (seconds(LAST) + 1) * per_second]
    for value in {edge + step for edge in edges for step in range(-2, 3)}:
        if not -(2**63) <= value < 2**63:
            continue
        column = pa.array([value]) if unit is None else pa.array([value]).cast(pa.timestamp(unit))
        times, reasons = check_rows(of(column), "ts", "drop", Limits(earliest_ms=earliest_ms))
        ms = value * 1_000 // per_second
        in_range = -(2**61) <= value <= 2**61 if unit is None else seconds(FIRST) <= ms // 1_000 <= seconds(LAST)
        expected = (0 if ms >= earliest_ms else 5) if in_range else (3 if unit is None else 2)
        assert (0 if reasons is None else reasons[0]) == expected, value
        if expected == 0:
            assert times[0] == ms


def test_bad_rows_keep_their_columns_and_say_why() -> None:
    rows = pa.record_batch({"v": ["a", "b", "c"], "t": COLUMN[:3]})
    found = bad_table(rows, np.array([1, 0, 2], dtype=np.uint8))
    assert found.schema.names == ["v", "t", "bad_reason"]
    assert found["v"].to_pylist() == ["a", "c"]
    assert found[BAD_REASON].to_pylist() == ["null timestamp", "timestamp outside years 1 to 9999"]


HASHES = {
    "s": ["0x114bbddc737cc6aa", "0xe220a8397b1dcdaf", "0x0", "0x11a72bb6e3e72cb1"],
    "i": ["0x910a2dec89025cc1", "0xe220a8397b1dcdaf", "0x0", "0xe4d971771b652c20"],
    "f": ["0xe220a8397b1dcdaf", "0xe220a8397b1dcdaf", "0xc72971d82e15bb46", "0xd6dab18e1392608a"],
    "s, i": ["0x60c6af46e908d98b", "0x559371c1a3fd676f", "0xeabda1772c92bafa", "0x84ae7f85e936e641"],
}


def test_key_hash_never_changes() -> None:
    """Written to checkpoints: rows of one key must find the same key group for ever."""
    rows = pa.record_batch(
        {
            "s": ["a", "", None, "a longer text"],
            "i": pa.array([1, 0, None, -1], pa.int32()),
            "f": [0.0, -0.0, float("nan"), 1.5],
        }
    )
    assert [hex(value) for value in key_hash(rows, ["s"]).tolist()] == HASHES["s"]
    assert [hex(value) for value in key_hash(rows, ["i"]).tolist()] == HASHES["i"]
    assert [hex(value) for value in key_hash(rows, ["f"]).tolist()] == HASHES["f"]
    assert [hex(value) for value in key_hash(rows, ("s", "i")).tolist()] == HASHES["s, i"]
    assert len(set(key_hash(rows, []).tolist())) == 1
    assert key_hash(rows, ["s"]).dtype == np.uint64


def test_key_hash_of_slices_and_dictionaries() -> None:
    text = pa.array(["x", "a", None, "bb", "a"])
    wanted = key_hash(pa.record_batch({"k": text}), ["k"])
    assert key_hash(pa.record_batch({"k": text[1:]}), ["k"]).tolist() == wanted[1:].tolist()
    assert key_hash(pa.record_batch({"k": text.dictionary_encode()}), ["k"]).tolist() == wanted.tolist()
