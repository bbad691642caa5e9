"""Durations: text, timedelta or int to whole milliseconds."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.errors import SpecError
from fastwin.times import FIRST_DATE_MS, LAST_DATE_MS, MAX_DURATION_MS, format_ms, moment_text, to_ms


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("10 minutes", 600_000),
        ("10minutes", 600_000),
        (" 10  min ", 600_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1 hour, 30 minutes", 5_400_000),
        ("1h30m", 5_400_000),
        ("2 hrs", 7_200_000),
        ("1 D", 86_400_000),
        ("1 Day", 86_400_000),
        ("3 weeks", 3 * 604_800_000),
        ("250 ms", 250),
        ("250 MS", 250),
        ("250 millis", 250),
        ("1 s 1 ms", 1_001),
        ("1 minute -1 s", 59_000),
        ("-5min", -300_000),
        ("+5 s", 5_000),
        ("0 s", 0),
        ("0.5 s", 500),
        (".5 s", 500),
        ("-1.5 hours", -5_400_000),
        ("1.5h 0.25 s", 5_400_250),
        ("2. s", 2_000),
        ("0.1 s", 100),
        ("1.001 s", 1_001),
        ("3.0 ms", 3),
        (timedelta(hours=1), 3_600_000),
        (timedelta(milliseconds=-1), -1),
        (7, 7),
        (np.int32(-7), -7),
        (MAX_DURATION_MS, MAX_DURATION_MS),
        (f"-{MAX_DURATION_MS} ms", -MAX_DURATION_MS),
    ],
)
def test_duration_is_read(value: object, ms: int) -> None:
    assert to_ms(value) == ms
    assert type(to_ms(value)) is int


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "got ''"),
        ("   ", "such as '10 minutes'"),
        ("10", "'10' is no duration"),
        ("minutes", "is no duration"),
        ("1.5.5 hours", "is no duration"),
        ("1,5 hours", "is no duration"),
        (". s", "is no duration"),
        ("1e3 s", "unknown unit 'e'"),
        ("0.5 ms", "must be whole milliseconds, got '0.5 ms'"),
        ("1 h 0.0001 s", "must be whole milliseconds, got '1 h 0.0001 s', of which '0.0001 s' is none"),
        ("1 hour and 5 minutes", "is no duration"),
        ("- 5 s", "is no duration"),
        ("5 us", "unknown unit 'us'"),
        ("5 parsecs", "unknown unit 'parsecs'"),
        ("5 mss", "unknown unit 'mss'"),
        ("1 month", "no fixed length"),
        ("2 Years", "no fixed length"),
        ("5 M", "months or minutes"),
        ("1 hour 1 y", "no fixed length"),
        (f"{MAX_DURATION_MS + 1} ms", f"within {MAX_DURATION_MS} ms, got {MAX_DURATION_MS + 1} ms"),
        ("99999999999 weeks", f"within {MAX_DURATION_MS} ms"),
        ("9" * 5_000 + " s", "5000 digits"),
        (timedelta.max, "whole milliseconds"),
        (timedelta(days=999_999_999), f"within {MAX_DURATION_MS} ms"),
        (timedelta(microseconds=1), "whole milliseconds"),
        (-MAX_DURATION_MS - 1, "within"),
        (1.0, "got 1.0"),
        (float("nan"), "got nan"),
        (True, "got True"),
        (None, "got None"),
        (b"5 s", "got b'5 s'"),
        (np.timedelta64(5, "s"), "a timedelta"),
    ],
)
def test_nonsense_names_argument_and_value(value: object, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        to_ms(value, argument="gap")
    assert str(caught.value).startswith("gap: ")
    assert says in str(caught.value)


@given(st.integers(-MAX_DURATION_MS, MAX_DURATION_MS))
def test_formatted_durations_read_back(ms: int) -> None:
    assert to_ms(format_ms(ms)) == ms
    assert to_ms(timedelta(milliseconds=ms)) == ms


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0 ms"), (1, "1 ms"), (5_400_000, "90 min"), (-1_000, "-1 s"), (86_400_000, "1 d")]
)
def test_shortest_exact_text(ms: int, text: str) -> None:
    assert format_ms(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01 00:00:00.000Z"),
        (-1, "1969-12-31 23:59:59.999Z"),
        (FIRST_DATE_MS, "0001-01-01 00:00:00.000Z"),
        (LAST_DATE_MS, "9999-12-31 23:59:59.999Z"),
        (FIRST_DATE_MS - 1, f"{FIRST_DATE_MS - 1} ms"),
        (LAST_DATE_MS + 1, f"{LAST_DATE_MS + 1} ms"),
        (2**63 - 1, f"{2**63 - 1} ms"),
        (-(2**63), f"{-(2**63)} ms"),
    ],
)
def test_moments_are_dates_where_there_are_some(ms: int, text: str) -> None:
    assert moment_text(ms, "Z") == text
    assert moment_text(ms) == text.removesuffix("Z")
