"""Timelines of a harness, of a spec over rows, and of a result: what they have taken down, in which order."""

import re
from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.pythonvalues import told_rows
from fastwin.testing import WindowHarness
from fastwin.timeline import recorder
from fastwin.timeline.layout import keys_of, panel
from fastwin.timeline.recording import Arrived, Fired, Moved

BASE = fw.key_by("k").event_time("ts")
TENS = BASE.window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())


def table(*rows):
    return pa.table({"k": [k for k, _ in rows], "ts": [ts for _, ts in rows]}, schema=SCHEMA)


SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])


def test_a_harness_takes_down_what_happens_in_its_order():
    harness = WindowHarness(TENS)
    harness.push({"k": "a", "ts": 3})
    harness.advance_watermark(9)
    harness.push({"k": "a", "ts": 4})
    harness.push({"k": "b", "ts": 12})
    assert harness.timeline().entries == (
        Arrived(("a",), 3), Moved(9), Fired(("a",), 0, 10, "1"), Arrived(("a",), 4, "late"), Arrived(("b",), 12),
    )  # fmt: skip
    assert harness.timeline("b").entries == (Moved(9), Arrived(("b",), 12))


def test_a_watermark_that_is_no_news_is_not_taken_down():
    harness = WindowHarness(TENS)
    for watermark in (5, 5, 3, 7):
        harness.advance_watermark(watermark)
    assert harness.timeline().entries == (Moved(5), Moved(7))


def test_firings_are_early_on_time_and_late():
    trigger = fw.after_watermark(early=fw.CountTrigger.of(1))
    harness = WindowHarness(
        BASE.window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger).allowed_lateness(10).aggregate(n=fw.Count())
    )
    harness.push({"k": "a", "ts": 3})
    harness.advance_watermark(9)
    harness.push({"k": "a", "ts": 4})
    continuous = WindowHarness(
        BASE.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.ContinuousEventTimeTrigger.of(4)).aggregate(n=fw.Count())
    )  # fmt: skip
    continuous.push({"k": "a", "ts": 3})
    continuous.advance_watermark(20)  # over the early timers and the end at once
    timings = [
        [one.timing for one in made.timeline().entries if isinstance(one, Fired)] for made in (harness, continuous)
    ]
    assert timings[0] == ["early", "on time", "late"]
    assert timings[1] == ["early", "early", "on time"]


def test_pane_info_and_changelog_say_what_a_firing_is():
    told = BASE.window(fw.EventTimeSessionWindows.with_gap(10)).allowed_lateness(50).with_changelog()
    rows = table(("a", 0), ("a", 12), ("a", 40), ("a", 7))
    fired = [one for one in told.aggregate(n=fw.Count()).timeline(rows).entries if isinstance(one, Fired)]
    assert [(one.text, one.timing) for one in fired if one.timing == "deleted"] == [("deleted", "deleted")] * 2
    panes = TENS.with_pane_info().allowed_lateness(10).timeline(table(("a", 0), ("a", 15), ("a", 1)))
    assert [one.timing for one in panes.entries if isinstance(one, Fired)] == ["on time", "late", "on time"]
    assert all("pane" not in one.text for one in panes.entries if isinstance(one, Fired))


def test_a_spec_over_rows_follows_each_row_and_ends():
    entries = TENS.timeline(table(("a", 3), ("a", 21), ("a", 4)), watermark=2).entries
    assert entries == (
        Arrived(("a",), 3), Moved(0), Arrived(("a",), 21), Moved(18), Fired(("a",), 0, 10, "1"),
        Arrived(("a",), 4, "late"), Moved(fw.MAX_TIMESTAMP), Fired(("a",), 20, 30, "1"),
    )  # fmt: skip
    assert not [one for one in TENS.timeline(table(("a", 3)), watermark=None).entries[:-2] if isinstance(one, Moved)]


@pytest.mark.parametrize("make", [lambda it: it.to_pandas(), pl.from_arrow, lambda it: it.to_batches()[0]])
def test_rows_of_all_kinds(make):
    rows = table(("a", 3), ("b", 21))
    assert TENS.timeline(make(rows)) == TENS.timeline(rows)


@pytest.mark.parametrize(
    "spec",
    [
        BASE.window(fw.TumblingEventTimeWindows.of(10), fill="empty").aggregate(n=fw.Count()),
        BASE.windows(ten=fw.TumblingEventTimeWindows.of(10), all=fw.TumblingEventTimeWindows.of(100)).aggregate(n=fw.Count()),
        BASE.window(fw.TumblingEventTimeWindows.of(10)).deduplicate(),
        BASE.window(fw.TumblingEventTimeWindows.of(10)).top(1, by="v"),
        BASE.count_window(2).aggregate(n=fw.Count()),
        BASE.window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(2)).aggregate(n=fw.Count()),
        fw.key_by().event_time("ts").window(fw.EventTimeSessionWindows.with_gap(10)).aggregate(n=fw.Count()),
    ],
)  # fmt: skip
def test_specs_of_all_kinds_have_one(spec):
    rows = table(("a", 3), ("a", 21), ("a", 55)).append_column("v", pa.array([1, 2, 3]))
    timeline = spec.timeline(rows)
    assert sum(isinstance(one, Fired) for one in timeline.entries) == spec.run(rows).main.num_rows > 0
    assert timeline._repr_svg_().startswith("<svg ")


def test_a_result_shows_windows_late_rows_and_the_input_if_it_is_given():
    rows = table(("a", 3), ("b", 4), ("a", 17))
    result = TENS.run(rows)
    assert result.timeline("a").entries == (Fired(("a",), 0, 10, "1"), Fired(("a",), 10, 20, "1"))
    with_rows = result.timeline("b", rows=rows)
    assert with_rows.entries == (Arrived(("b",), 4), Fired(("b",), 0, 10, "1"))
    assert not with_rows.ordered
    stream = TENS.side_output_late_data().open(watermark=0)
    stream.process(rows)
    assert stream.process(table(("a", 3))).timeline().entries == (Arrived(("a",), 3, "late"),)


def test_results_of_threads_and_of_joins_have_one():
    many = table(*[("a", n % 50) for n in range(120_000)])
    assert len(TENS.run(many, threads=2).timeline().entries) == 5
    join = fw.window_join(BASE, BASE, fw.TumblingEventTimeWindows.of(10))
    left, right = (table(("a", 1)).append_column(name, pa.array([1])) for name in "xy")
    assert len(join.run(left, right).timeline().entries) == 1


def test_times_in_another_unit_and_zone():
    when = datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
    rows = pa.table({"k": ["a"], "ts": pa.array([when], pa.timestamp("us", "Europe/Berlin"))})
    spec = BASE.window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    timeline = spec.timeline(rows)
    assert timeline.zone == "Europe/Berlin"
    assert timeline.entries[0] == Arrived(("a",), round(when.timestamp() * 1_000))
    seconds = fw.key_by("k").event_time("ts", unit="s").window(fw.TumblingEventTimeWindows.of("1 min"))
    assert seconds.aggregate(n=fw.Count()).timeline(table(("a", 7))).entries[0] == Arrived(("a",), 7_000)


def test_processing_time_goes_by_the_clock():
    clock = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    harness = WindowHarness(clock)
    harness.advance_processing_time(4)
    harness.push({"k": "a"})
    harness.advance_processing_time(10)
    assert harness.timeline().entries == (Arrived(("a",), 4), Fired(("a",), 0, 10, "1"))
    assert harness.timeline().axis == "processing time"
    with pytest.raises(fw.SpecError, match=r"timeline: the spec has no event_time\(column\)"):
        clock.timeline(pa.table({"k": ["a"]}))


def test_a_restored_harness_goes_on_at_the_time_of_its_state():
    clock = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    harness = WindowHarness(clock)
    harness.push({"k": "a"})
    harness.advance_processing_time(24)
    restored = WindowHarness(clock, pa.schema([("k", pa.string())]))
    restored.restore(harness.snapshot())
    restored.push({"k": "a"})
    assert restored.timeline().entries == (Arrived(("a",), 24),)


def test_rows_without_a_time_and_in_no_window():
    spec = BASE.bad_rows("drop").window(fw.SlidingEventTimeWindows.of(5, 10)).aggregate(n=fw.Count())
    rows = pa.table({"k": ["a", "a", "a"], "ts": pa.array([None, 7, 2], pa.int64())})
    kinds = [one.kind for one in spec.timeline(rows, watermark=None).entries if isinstance(one, Arrived)]
    assert kinds == ["in no window", "in time"]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(fw.SpecError, match=r"timeline: key: nothing has come of 'x'; there are 'a', 'b'$"):
        TENS.timeline(table(("a", 1), ("b", 2)), key="x")
    with pytest.raises(fw.SpecError, match="up to 6 keys, got 9; choose a key with key=, or fewer rows"):
        TENS.timeline(table(*[(str(n), 1) for n in range(9)]))
    with pytest.raises(fw.SpecError, match="up to 400 elements, got 500"):
        TENS.timeline(table(*[("a", 1)] * 500))
    with pytest.raises(fw.SpecError, match="up to 200 firings, got 300"):
        TENS.run(table(*[("a", 10 * n) for n in range(300)])).timeline()
    with pytest.raises(fw.SpecError, match="rows: up to 10,000 are taken one by one, got 10,001"):
        TENS.timeline(table(*[("a", 1)] * 10_001))
    with pytest.raises(fw.SpecError, match="rows: there is no column 'k'; they have ts"):
        TENS.run(table(("a", 1))).timeline(rows=pa.table({"ts": [1]}))
    with pytest.raises(fw.SpecError, match="timeline: the result has no windows of a spec"):
        fw.Result(pa.table({}), pa.table({}), pa.table({})).timeline()


def test_a_harness_without_elements_has_an_empty_one():
    assert WindowHarness(TENS).timeline().entries == ()
    assert WindowHarness(TENS)._repr_svg_() is None


def test_pandas_with_the_time_in_its_index():
    frame = pd.DataFrame({"k": ["a"]}, index=pd.Index([3], name="ts"))
    assert TENS.timeline(frame).entries[0] == Arrived(("a",), 3)


def test_a_first_element_that_is_refused_is_forgotten():
    harness = WindowHarness(TENS)
    with pytest.raises(fw.SpecError, match="'ts'"):
        harness.push({"k": "a"})
    harness.push({"k": "a", "ts": 3})
    assert [one.value for one in harness.advance_watermark(9)] == [{"n": 1}]


@pytest.mark.parametrize("time", ["5", 1.5, None, True, 2**63])
def test_times_are_checked_before_the_first_element(time):
    harness = WindowHarness(TENS)
    for move in (harness.advance_watermark, harness.advance_processing_time):
        with pytest.raises(fw.SpecError, match=r"^(watermark|processing_time): must"):
            move(time)
    assert harness.watermark == fw.MIN_TIMESTAMP
    harness.push({"k": "a", "ts": 3})
    assert len(harness.timeline().entries) == 1


def test_elements_of_the_clock_without_keys_are_drawn():
    spec = fw.key_by().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    harness = WindowHarness(spec)
    for value in (1, 2):
        harness.push({"v": value})
    assert [one.key for one in harness.timeline().entries if isinstance(one, Arrived)] == [(), ()]


def test_a_result_of_any_size_shows_one_key(monkeypatch):
    told = []
    monkeypatch.setattr(recorder, "told_rows", lambda table: told.append(len(table)) or told_rows(table))
    rows = 50_000
    table = pa.table({"k": [str(i // 3) for i in range(rows)], "ts": range(rows)})
    result = TENS.run(table)
    with pytest.raises(fw.SpecError, match="up to 200 firings, got"):
        result.timeline()
    assert told == []
    shown = result.timeline("77", rows=table)
    keyed = [one for one in shown.entries if not isinstance(one, Moved)]
    assert {one.key for one in keyed} == {("77",)}
    assert sum(isinstance(one, Arrived) for one in keyed) == 3
    assert sum(told) < 10


def test_a_key_that_is_not_there_names_some_that_are():
    table = pa.table({"k": pa.array(["a", None, "b"]).dictionary_encode(), "ts": [1, 2, 3]})
    result = TENS.run(table)
    with pytest.raises(fw.SpecError, match="nothing has come of 'c'; there are 'a', None, 'b'"):
        result.timeline("c", rows=table)
    assert len(result.timeline((None,), rows=table).entries) == 2


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.date32()])
def test_a_time_that_is_none_is_refused_as_by_run(kind):
    table = pa.table({"k": ["a"], "ts": pa.array([None], kind)})
    with pytest.raises(
        fw.SpecError, match=f"column 'ts' must be a timestamp or int64 milliseconds, got {re.escape(str(kind))}"
    ):
        TENS.timeline(table)
    with pytest.raises(
        fw.SpecError, match=f"column 'ts' must be a timestamp or int64 milliseconds, got {re.escape(str(kind))}"
    ):
        TENS.run(pa.table({"k": ["a"], "ts": [1]})).timeline(rows=table)


def test_times_in_runs_are_drawn():
    times = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, 17], pa.timestamp("ms")))
    table = pa.table({"k": ["a", "b", "a"], "ts": times})
    assert [one.time_ms for one in TENS.timeline(table, key="a").entries if isinstance(one, Arrived)] == [5, 17]


@pytest.mark.parametrize("key, count", [(float("nan"), 2), (-0.0, 2), (0.0, 2), (1.5, 1), (None, 5)], ids=str)
@pytest.mark.parametrize("of", ["a spec", "a result"])
def test_all_nan_are_one_key_and_so_are_both_zeros(key, count, of):
    keys = pa.array([float("nan"), 0.0, -0.0, 1.5, -float("nan")])
    rows = pa.table({"k": keys, "ts": pa.array([1, 2, 3, 4, 5], pa.int64())})
    timeline = TENS.timeline(rows, key=key) if of == "a spec" else TENS.run(rows).timeline(key=key)
    found = keys_of(timeline)
    assert len(found) == (3 if key is None else 1)
    made = [panel(timeline, one, lambda _: (0, 1)) for one in found]
    assert sum(int(bar.text) for one in made for bar, _ in one.bars) == count
    assert of == "a result" or all(len(one.dots) == int(bar.text) for one in made for bar, _ in one.bars)
