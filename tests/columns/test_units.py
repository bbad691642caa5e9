"""Units of int64 event times: read as the spec says; a warning where they look like another one."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns.units import as_instants, suspected_unit, warn_of_unit

DAY = 86_400
Y1971, Y2024, Y2100 = 31_536_000, 1_704_067_200, 4_133_980_799
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def times(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_usual_years_in_another_unit_are_suspected(unit: str) -> None:
    scale = PER_SECOND[unit]
    assert suspected_unit(times(Y1971 * scale)) == unit
    assert suspected_unit(times(Y2024 * scale, (Y2024 + DAY) * scale)) == unit
    assert suspected_unit(times(Y1971 * scale - 1)) is None


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("odd", [0, -1, 12])
def test_the_newest_time_decides(unit: str, odd: int) -> None:
    newest = Y2024 * PER_SECOND[unit]
    assert suspected_unit(times(odd, newest)) == suspected_unit(times(newest, odd)) == unit
    assert suspected_unit(times(odd, Y2024 * 1_000)) is None
    assert suspected_unit(times(Y2024 * 1_000, newest)) is None
    assert suspected_unit(times(newest, Y2024 * 1_000)) is None


@pytest.mark.parametrize("second", [Y1971, Y2024, Y2100])
def test_usual_years_in_ms_are_not(second: int) -> None:
    assert suspected_unit(times(second * 1_000)) is None


@pytest.mark.parametrize("values", [(), (0,), (-5, 3), (Y1971 - 1,), (Y2100 + 1,), (2**63 - 1,), (-(2**63),)])
def test_other_numbers_are_not(values: tuple[int, ...]) -> None:
    unit = suspected_unit(times(*values))
    assert unit is None or (unit == "ns" and values == (2**63 - 1,))


def test_the_warning_names_both_readings() -> None:
    with pytest.warns(UserWarning, match="event_time") as caught:
        warn_of_unit("ts", times(Y2024, Y2024 + DAY))
    assert str(caught[0].message) == (
        "event_time 'ts': the int64 times are taken for milliseconds, all of 1970-01-20; as seconds they are from 2024-01-01 "
        "to 2024-01-02. Say which: event_time('ts', unit='s'), or unit='ms'"
    )
    with pytest.warns(UserWarning, match="from 55969-.*as microseconds they are all of 2024-01-01"):
        warn_of_unit("ts", times(Y2024 * 1_000_000, Y2024 * 1_000_000 + 90_000_000))


def test_no_warning_without_suspicion() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warn_of_unit("ts", times(Y2024 * 1_000))
        assert warn_of_unit("ts", times(Y2024, Y2024 * 1_000))
        assert not warn_of_unit("ts", times(0, -1))
        assert not warn_of_unit("ts", times())


def test_only_int64_of_a_unit_become_instants() -> None:
    column = pa.array([1, None, -1], pa.int64())
    assert as_instants(column, None) is column
    assert as_instants(column, "us").equals(pa.array([1, None, -1], pa.timestamp("us")))
    stamps = pa.array([1], pa.timestamp("s"))
    assert as_instants(stamps, "us") is stamps
    assert as_instants(column.slice(1), "s").equals(pa.array([None, -1], pa.timestamp("s")))
