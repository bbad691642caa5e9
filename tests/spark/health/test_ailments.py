"""The rules of the doctor, over records of real queries and records that are made of them. No Spark runs."""

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_glue.health.ailments import diagnose
from spark_glue.health.findings import Finding, Findings, duration, moment, share
from spark_glue.health.records import Setup, Tasks, read_records

HERE = Path(__file__).resolve().parent
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETUP = Setup(trigger_ms=10_000, store=ROCKS, delays_ms=(1_000,), cores=2)
JOIN = replace(SETUP, delays_ms=(1_000, 1_000))
NOT_KNOWN, NONE = replace(SETUP, delays_ms=None), replace(SETUP, delays_ms=())  # of Spark's watermarks


def real(name):
    """The progress of a real query."""
    return json.loads((HERE / "records" / f"{name}.json").read_text(encoding="utf-8"))


WELL = real("state-reloaded")[1]


def record(number, *, rows=100, newest="2023-11-14T22:13:20.000Z", watermark="2023-11-14T22:13:10.000Z", **counters):
    """A record as a real one has it, with other figures. counters: of apply."""
    made = copy.deepcopy(WELL)
    made |= {"batchId": number, "timestamp": f"2023-11-14T22:{14 + number:02d}:00.000Z", "numInputRows": rows}
    made["eventTime"] = {"watermark": watermark} | ({"max": newest, "min": newest} if newest else {})
    told = dict.fromkeys(made["observedMetrics"]["fastwin"], 0) | {"events": rows, "fired": 1, "streams_kept": 2}
    made["observedMetrics"] = {"fastwin": told | {"watermark_ms": None} | counters}
    for source in made["sources"]:
        source["numInputRows"] = rows
    return made


def at(seconds):
    """A time after the first of the records, as Spark writes it."""
    moment = datetime(2023, 11, 14, 22, 14, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


def names(records, setup=SETUP):
    return [finding.name for finding in diagnose(records, setup)]


def test_a_query_that_is_well_has_no_finding():
    found = diagnose([record(n) for n in range(5)], SETUP)
    assert not found
    assert str(found).endswith("- Nothing is wrong.")
    assert "500 rows, 5 results, 0 late; the watermark is 2023-11-14 22:13:10 (UTC)" in found.summary


@pytest.mark.parametrize(
    ("name", "setup", "expected"),
    [
        ("date-in-the-future", Setup(trigger_ms=0, store=ROCKS, first_format=True), ["date in the future", "no trigger interval", "state format 1"]),
        ("idle-input", Setup(trigger_ms=0, store=ROCKS), ["idle input", "no trigger interval"]),
        ("all-rows-late", SETUP, ["all rows late"]),
        ("delay-longer-than-the-data", Setup(store=ROCKS, delays_ms=(30 * 86_400_000,)), ["delay longer than the data"]),
        ("state-reloaded", SETUP, ["state reloaded"]),
        ("no-input", SETUP, ["no input"]),
        ("skew", Setup(store=ROCKS, tasks=Tasks(4, 80.0, 4_100.0)), ["skew"]),
    ],
)  # fmt: skip
def test_records_of_real_queries(name, setup, expected):
    assert names(real(name), setup) == expected


def test_a_finding_has_its_figures_and_its_mend():
    (found,) = diagnose(real("all-rows-late"), SETUP)
    assert found.evidence["late"] / found.evidence["events"] > 0.9
    assert f"{found.evidence['late']:,} of the last {found.evidence['events']:,} rows" in found.what
    assert "watermark=" in found.mend


def test_a_query_that_has_just_begun_is_no_case():
    assert names([]) == []  # its first micro-batch may run
    assert names([], Setup(running=False)) == ["no input"]
    assert names([record(0, fired=0)], SETUP) == []


def test_a_long_delay_is_found_at_once_and_a_short_one_when_much_has_come():
    still = [record(n, fired=0) for n in range(6)]
    assert names(still[:1], Setup(delays_ms=(3_600_000,))) == ["delay longer than the data"]
    assert names(still[:4], Setup(delays_ms=(60_000,))) == []
    assert names(still, Setup(delays_ms=(60_000,))) == ["delay longer than the data"]
    assert names([*still, record(6)], Setup(delays_ms=(60_000,))) == []


def test_a_delay_is_not_judged_by_the_last_records_of_a_long_run():
    """Of windows of an hour: 99 records every ten seconds are less than 20 minutes, in which none has ended."""
    records = [
        record(500 + n, newest=at(10 * n), watermark=at(10 * n - 1_200), fired=0) | {"timestamp": at(10 * n)}
        for n in range(99)
    ]
    assert names(records, Setup(delays_ms=(1_200_000,))) == []


def test_a_date_ahead_of_the_clock_explains_late_rows():
    records = [record(0), record(1, newest="2099-01-01T00:00:00.000Z"), *(
        record(n, watermark="2098-12-31T23:59:50.000Z", late=100, fired=0) for n in range(2, 5)
    )]  # fmt: skip
    found = diagnose(records, SETUP)
    assert [one.name for one in found] == ["date in the future"]
    assert found["date in the future"].evidence["batch_id"] == 1
    assert "300 of 300 rows since are late" in str(found)
    assert "It moves a withWatermark of your own all the same" in found["date in the future"].mend


def test_dates_may_lie_ahead_of_the_clock_rightly():
    """Of bookings, with max_future_skew="30 days"."""
    month = 30 * 86_400
    booked = [record(n, newest=at(month + 60 * n), watermark=at(month + 60 * n - 600)) for n in range(4)]
    assert names(booked) == []
    assert names(booked[:1]) == ["date in the future"]  # nothing is known of the rows behind it
    wrong = record(4, newest="2099-01-01T00:00:00.000Z")
    assert names([*booked, wrong]) == []
    late = record(5, watermark="2098-12-31T23:59:50.000Z", late=100)
    (found,) = diagnose([*booked, wrong, late], SETUP)
    assert (found.name, found.evidence["batch_id"]) == ("date in the future", 4)


@pytest.mark.parametrize("sign", ["", "+"])
def test_a_date_beyond_the_year_9999_is_told_as_its_end(sign):
    found = diagnose([record(0), record(1, newest=f"{sign}55970-01-01T00:00:00.000Z")], SETUP)
    assert [one.name for one in found] == ["date in the future"]
    assert "a row of 9999-12-31 23:59:59.999 has come" in str(found)


def test_a_jump_within_the_past_is_a_wrong_date_only_where_rows_are_late_then():
    old = {"newest": "2013-01-02T00:00:00.000Z", "watermark": "2013-01-01T00:00:00.000Z"}
    new = {"newest": "2015-01-02T00:00:00.000Z", "watermark": "2015-01-01T00:00:00.000Z"}
    assert names([record(0, **old), record(1, **new), record(2, **new)]) == []
    assert names([record(0, **old), record(1, **new, late=100), record(2, **new, late=100)]) == ["date in the future"]


def test_a_tenth_of_the_rows_late_is_told_and_nearly_all_is_another_finding():
    assert names([record(n, dropped=9) for n in range(5)]) == []
    assert names([record(n, dropped=10) for n in range(5)]) == ["many rows late"]
    assert names([record(n, dropped=80) for n in range(5)]) == ["many rows late"]
    assert names([record(n, dropped=95) for n in range(5)]) == ["all rows late"]


def test_rows_that_are_bad():
    assert names([record(n, events=0, bad=100, fired=0) for n in range(3)], Setup()) == ["all rows bad"]
    assert names([record(n, events=90, bad=10) for n in range(3)], Setup()) == []


def _two_sources(one, left, right):
    source = one["sources"][0]
    one["sources"] = [
        source | {"description": name, "numInputRows": rows} for name, rows in (("l", left), ("r", right))
    ]
    return one


def test_an_input_is_idle_only_where_time_stands_still():
    held = [_two_sources(record(n), 100, 0) for n in range(4)]
    for setup in (JOIN, NOT_KNOWN):
        assert diagnose(held, setup)["idle input"].evidence["silent"] == "r"
    moving = [_two_sources(record(n, watermark=f"2023-11-14T22:13:1{n}.000Z"), 100, 0) for n in range(4)]
    assert names(moving, JOIN) == []
    assert names([_two_sources(record(n), 100, 1) for n in range(4)], JOIN) == []
    assert names(held[:2], JOIN) == []


def test_two_sources_are_two_inputs_only_where_each_has_a_watermark_of_spark():
    held = [_two_sources(record(n), 100, 0) for n in range(4)]
    assert names(held) == []  # frames that were united are one input
    assert names(held, NONE) == []  # with idle=, a silent input is waited for only so long
    for counted in ({"frame_newest_ms": 9}, {"input_0_delay_ms": 1_001}):
        told = [_two_sources(record(n, **counted), 100, 0) for n in range(4)]
        assert names(told, NOT_KNOWN) == []  # but for the counters
    first = [_two_sources(record(n, watermark=None), 100, 0) for n in range(4)]  # or there is no event time
    assert names(first) == names(first, NOT_KNOWN) == names(first, NONE) == []
    assert "there is no watermark, because time is that of the slowest input" in str(diagnose(first, JOIN))


def test_silence_of_all_inputs_while_windows_are_open():
    quiet = [record(n, rows=0, newest=None, fired=0) for n in range(3, 6)]
    begun = [record(n, open_windows_change=2) for n in range(3)]
    found = diagnose([*begun, *quiet], SETUP)
    assert [one.name for one in found] == ["silent input"]
    assert found["silent input"].evidence["open_windows"] == 6
    assert "3 min ago" in str(found)
    assert "at least 6 windows stay open" in str(found)
    assert names([*begun, *quiet], Setup(running=False)) == []
    steady = diagnose([*(record(n) for n in range(3)), *quiet], SETUP)  # as many windows have gone as have come
    assert [one.name for one in steady] == ["silent input"]
    assert "what it has not passed stays open" in str(steady)
    pause = [one | {"timestamp": f"2023-11-14T22:13:{n:02d}.000Z"} for n, one in enumerate(quiet)]
    fed = [record(n) | {"timestamp": "2023-11-14T22:13:00.000Z"} for n in range(3)]
    assert names([*fed, *pause]) == []  # a steady query between two rows


def idle(number, minute, **changes):
    """A record of a trigger that found nothing to do."""
    one = record(number, rows=0, newest=None, fired=0)
    return one | {"timestamp": f"2023-11-14T22:{minute:02d}:00.000Z", "observedMetrics": {}} | changes


def test_silence_behind_rows_that_did_not_move_the_watermark():
    begun = [record(0, open_windows_change=3), record(1, open_windows_change=1)]
    found = diagnose([*begun, idle(2, 16), idle(2, 30)], SETUP)
    assert [one.name for one in found] == ["silent input"]
    assert found["silent input"].evidence["quiet_ms"] == 15 * 60_000
    assert names([*begun, idle(2, 16)]) == []  # it began a minute before, and took most of that
    every_other_minute = replace(
        SETUP, trigger_ms=120_000
    )  # the micro-batch that moves the watermark waits for its turn
    assert names([*begun, idle(2, 17)], every_other_minute) == []
    assert names([*begun, idle(2, 30)], every_other_minute) == ["silent input"]


def test_silence_that_is_longer_than_the_records():
    found = diagnose([idle(7, minute) for minute in range(17)], SETUP)  # Spark tells of a micro-batch that waits
    assert [one.name for one in found] == ["silent input"]
    assert "no row has come for at least 16 min" in str(found)
    assert "numRecentProgressUpdates" in found["silent input"].mend
    assert found["silent input"].evidence["watermark_ms"] == 1_700_000_000_000 - 10_000
    assert names([idle(7, 1, eventTime={}), idle(7, 3, eventTime={})]) == ["silent input"]
    assert names([idle(7, 1)]) == []  # it has just been started again
    assert names([idle(7, 1), idle(7, 9)], Setup(running=False)) == []
    assert names([idle(0, 1), idle(0, 9)]) == ["no input"]
    going_on = [idle(n, n, eventTime={"watermark": f"2023-11-14T22:1{n}:00.000Z"}) for n in range(3, 6)]
    assert names(going_on) == []
    (known,) = diagnose([idle(7, minute) for minute in range(17)], NONE)  # after a start, with idle= or without time
    assert "watermark" not in known.what
    assert "idle=" not in known.mend and "look at the source" in known.mend


def test_silence_with_idle_is_not_told_of_while_it_is_waited_for():
    quiet = [record(n, rows=0, newest=None, fired=0) for n in range(3, 6)]
    begun = [record(n, open_windows_change=2, frame_newest_ms=9) for n in range(3)]
    assert names([*begun, *quiet], NONE) == names([*begun, *quiet], NOT_KNOWN) == []


def test_a_sink_that_does_not_read_its_frame():
    records = [record(n) for n in range(3)]
    for one in records:
        one["observedMetrics"] = {"mine": {"n": 3}}
    assert names(records) == ["no windows"]


def test_no_interval_needs_small_micro_batches():
    assert names([record(n) for n in range(4)], Setup(trigger_ms=0)) == ["no trigger interval"]
    assert names([record(n, rows=50_000) for n in range(4)], Setup(trigger_ms=0)) == []
    assert names([record(n) for n in range(4)], Setup(trigger_ms=None)) == []


def test_loads_after_a_start_are_no_finding():
    first = [record(0, streams_loaded=2, streams_kept=0)]
    assert names(first + [record(n) for n in range(1, 6)]) == []
    each = WELL["batchDuration"] // 5
    again = [record(n, streams_loaded=2, streams_kept=0, load_ms=each) for n in range(1, 6)]
    (found,) = diagnose(first + again, SETUP)
    assert found.name == "state reloaded"
    assert "less than a minute between triggers" in found.mend


def test_loads_that_take_little_time_are_no_finding():
    """Of the demo: 14 of 16 visits loaded state of a few rows, in 285 ms of some ten seconds."""
    few = WELL["batchDuration"] // 50
    assert names([record(n, streams_loaded=2, streams_kept=0, load_ms=few) for n in range(6)]) == []


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (Tasks(8, 100, 2_000), ["skew"]),
        (Tasks(8, 100, 299), []),
        (Tasks(8, 1_000, 2_000), []),
        (Tasks(1, 1, 5_000), []),
    ],
)
def test_skew_is_a_long_task_beside_short_ones(tasks, expected):
    assert names([record(0)], Setup(tasks=tasks)) == expected


def test_partitions_and_cores():
    records = [record(n) for n in range(3)]
    for one in records:
        one["stateOperators"][0]["numShufflePartitions"] = 200
    assert names(records, Setup(cores=8)) == ["many partitions"]
    assert names(records, Setup(cores=64)) == []


def test_small_state_that_is_small_no_more():
    small = Setup(trigger_ms=10_000, store="HDFS", small_state=True, first_format=True)
    assert names([record(n, log_bytes=1_900_000) for n in range(5)], small) == []  # of two shares
    (found,) = diagnose([record(n, log_bytes=6_400_000) for n in range(5)], small)
    assert found.name == "large small state"
    assert "3.2 MB" in found.what
    assert names([record(n, log_bytes=6_400_000) for n in range(5)]) == []


def test_stores_formats_and_errors():
    assert names([record(0)], Setup(store="a.b.HDFSBackedStateStoreProvider")) == ["wrong store"]
    assert names([record(0)], Setup(first_format=True)) == ["state format 1"]
    assert names([record(0)], Setup(running=False, error="[STREAM_FAILED] x")) == ["failed"]
    assert names([], Setup(running=False, error="x", store="a.HDFSBacked")) == ["wrong store"]
    busy = diagnose([record(0)], Setup(running=False, error="Python worker failed to connect back. SQLSTATE: XXKST"))
    assert "ten seconds" in busy["failed"].mend


def test_several_frames_are_added_up_and_what_users_observe_is_not():
    one = record(0, watermark_ms=5)
    one["observedMetrics"] |= {"other": one["observedMetrics"]["fastwin"] | {"watermark_ms": 7}, "mine": {"events": 9}}
    (batch,) = read_records([one])
    assert batch.count("events") == 200
    assert batch.watermark_ms == 7
    assert batch.count("no such counter") == 0


def test_a_micro_batch_that_is_told_twice_counts_once():
    idle = record(1, rows=0)
    idle["observedMetrics"] = {}
    for records in ([record(0), idle, record(1)], [record(0), record(1), idle]):
        batches = read_records(records)
        assert [one.id for one in batches] == [0, 1]
        assert batches[1].rows == 100


def test_how_findings_show_themselves():
    found = Findings((Finding("a <b>", "what", "mend", {"x": 1}),), "summary")
    assert str(found) == "summary\n- a <b>: what\n  Mend: mend"
    assert "a &lt;b&gt;" in found._repr_html_()
    assert "a <b>" in found and "other" not in found
    with pytest.raises(KeyError):
        found["other"]
    assert "Nothing is wrong" in Findings((), "summary")._repr_html_()


def test_words_for_times():
    assert [duration(ms) for ms in (5, 1_500, 90_000, 7_200_000, 30 * 86_400_000)] == [
        "5 ms",
        "1.5 s",
        "1.5 min",
        "2 h",
        "30 days",
    ]
    assert moment(0) == "1970-01-01 00:00:00"
    assert moment(2**62) == f"{2**62} ms"
    assert (share(1, 3), share(0, 0)) == ("33%", "0%")
