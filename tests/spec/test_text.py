"""What a spec says of itself is part of stored state: it stays what it was, letter for letter."""

import json
from pathlib import Path

import pytest

import fastwin as fw
from tests.support.told_specs import SPECS

# Written by the version before specs had an ending; never to be written anew.
TOLD = json.loads(Path(__file__).with_name("told_specs.json").read_text(encoding="utf-8"))


def test_each_spec_was_told() -> None:
    assert TOLD.keys() == SPECS.keys()


@pytest.mark.parametrize("name", SPECS)
def test_text_and_fingerprint_stay_what_they_were(name: str) -> None:
    spec, told = SPECS[name], TOLD[name]
    assert str(spec) == told["text"]
    assert [list(part) for part in spec.state_parts] == told["parts"]
    assert spec.fingerprint.hex() == told["fingerprint"]


HOURS = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of("1 hour"))


def lines(spec: fw.WindowSpec) -> list[str]:
    return [line.strip() for line in spec.aggregate(n=fw.Count()).explain().splitlines()]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (HOURS.allowed_lateness("5 min"), "allowed lateness: windows are kept for 5 min after their end, and late elements fire them again, one by one in this process, once for each (key, window) and micro-batch on Spark; coalesce=True or False makes them the same"),
        (HOURS.allowed_lateness("5 min", coalesce=True), "allowed lateness: windows are kept for 5 min after their end, and late elements fire them again, once for each (key, window) and batch"),
        (HOURS.allowed_lateness(5, coalesce=False), "allowed lateness: windows are kept for 5 ms after their end, and late elements fire them again, one by one"),
        (HOURS.side_output_late_data(), "late elements: handed out in result.late, where no window takes them any more"),
        (HOURS.bad_rows("divert"), "bad rows: handed out in result.bad"),
        (HOURS.bad_rows("drop"), "bad rows: counted and dropped"),
    ],
)  # fmt: skip
def test_explain_says_what_was_asked_for_beyond_state(spec: fw.WindowSpec, line: str) -> None:
    assert line in lines(spec)
    assert line not in lines(HOURS)
    assert (
        HOURS.allowed_lateness(spec.lateness_ms).aggregate(n=fw.Count()).fingerprint
        == spec.aggregate(n=fw.Count()).fingerprint
    )


@pytest.mark.parametrize(
    "windows",
    [
        fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("1 hour")),
        fw.key_by("k").event_time("t").window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(3)),
    ],
    ids=["processing time", "global"],
)
def test_explain_says_that_some_windows_know_no_lateness(windows: fw.WindowSpec) -> None:
    said = "late elements: these windows know none, so what the spec says of them has no effect"
    for spec in (
        windows.allowed_lateness("5 min").side_output_late_data(),
        windows.side_output_late_data(),
        windows.allowed_lateness(0, coalesce=True),
    ):
        assert [line for line in lines(spec)[1:] if "late" in line] == [said]
    assert not any("late" in line for line in lines(windows))
