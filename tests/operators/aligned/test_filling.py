"""Rows for windows without elements: what they hold, how long a gap may be, what they do not go with."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.refresh import Refresh

BASE = fw.key_by("k").event_time("ts")
TEN = fw.TumblingEventTimeWindows.of(10)
EMPTY = {"fill": "empty"}


def table(*times: int, key: str = "a") -> pa.Table:
    return pa.table({"k": [key] * len(times), "ts": pa.array(times, pa.int64()), "v": [1.0] * len(times)})


def counts(result: fw.Result) -> list[tuple[int, int]]:
    return list(zip(result.main["window_end"].cast(pa.int64()).to_pylist(), result.main["n"].to_pylist(), strict=True))


def test_aggregates_of_empty_windows_are_those_of_no_elements() -> None:
    aggregates = {
        "n": fw.Count(), "s": fw.Sum("v"), "q": fw.Median("v"), "top": fw.TopK("v", 2), "d": fw.CountDistinct("v"),
        "all": fw.Collect("v"), "last": fw.Last("v"), "texts": fw.StringAgg("k"), "about": fw.HyperLogLog("v"),
    }  # fmt: skip
    filled = BASE.window(TEN, **EMPTY).aggregate(**aggregates).run(table(5, 35)).main.to_pylist()
    nobody = fw.key_by("k").event_time("ts").window(TEN)
    where = {name: replace(one, where="no") for name, one in aggregates.items()}
    one = nobody.aggregate(**where).run(table(5).append_column("no", pa.array([False]))).main.to_pylist()[0]
    assert len(filled) == 4
    for row in filled[1:3]:
        assert {name: row[name] for name in aggregates} == {name: one[name] for name in aggregates}


def test_a_gap_is_filled_when_the_window_that_ends_it_fires() -> None:
    stream = BASE.window(TEN, **EMPTY).aggregate(n=fw.Count()).open()
    stream.process(table(5))
    assert counts(stream.advance_watermark(20)) == [(10, 1)]
    assert counts(stream.process(table(45))) == []
    assert counts(stream.advance_watermark(40)) == []
    assert counts(stream.advance_watermark(49)) == [(20, 0), (30, 0), (40, 0), (50, 1)]


def test_a_late_element_corrects_an_empty_window_and_one_before_the_first_has_its_gap_filled() -> None:
    spec = BASE.window(TEN, fill="empty", longest_gap=100).allowed_lateness(100).aggregate(n=fw.Count())
    stream = spec.open()
    stream.process(table(45, 65))
    assert counts(stream.advance_watermark(69)) == [(50, 1), (60, 0), (70, 1)]
    assert counts(stream.process(table(55))) == [(60, 1)]
    assert counts(stream.process(table(15))) == [(20, 1), (30, 0), (40, 0)]


def test_late_elements_that_join_two_runs_have_their_windows_once() -> None:
    spec = BASE.window(TEN, fill="empty", longest_gap=100).allowed_lateness(100, coalesce=True)
    stream = spec.aggregate(n=fw.Count()).open()
    stream.process(table(5, 125))
    assert counts(stream.advance_watermark(129)) == [(10, 1), (130, 1)]
    late = counts(stream.process(table(65, 85)))
    assert late == [(end, int(end in (70, 90))) for end in range(20, 130, 10)]


def test_a_longer_gap_is_not_filled_and_the_key_is_forgotten() -> None:
    spec = BASE.window(TEN, fill="empty", longest_gap=30).aggregate(n=fw.Count())
    assert counts(spec.run(table(5, 35, 75))) == [(10, 1), (20, 0), (30, 0), (40, 1), (80, 1)]
    stream = spec.open()
    stream.process(table(5))
    stream.advance_watermark(10)
    assert stream.metrics.state_rows == 1
    timer = stream.next_timer()
    assert timer is not None
    stream.advance_watermark(timer)
    assert stream.metrics.state_rows == 0


def test_by_default_ten_thousand_windows() -> None:
    spec = BASE.window(TEN, **EMPTY).aggregate(n=fw.Count())
    assert spec.run(table(5, 100_005)).main.num_rows == 10_001
    assert spec.run(table(5, 100_015)).main.num_rows == 2
    assert "longest_gap='100 s'" in str(spec)


def test_months_and_hours_of_a_calendar() -> None:
    calendar = fw.CalendarEventTimeWindows
    at = pa.array(["2024-01-15", "2024-05-01T12:00"]).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
    sales = pa.table({"k": ["a", "a"], "ts": at})
    months = BASE.window(calendar.of("1 month", time_zone="Europe/Berlin"), **EMPTY).aggregate(n=fw.Count())
    rows = months.run(sales).main.to_pylist()
    assert [(row["window_start"].month, row["n"]) for row in rows] == [(1, 1), (2, 0), (3, 0), (4, 0), (5, 1)]
    assert [row["window_end"].day for row in rows] == [1] * 5
    at = pa.array(["2024-03-30T12:00Z", "2024-04-01T12:00Z"]).cast(pa.timestamp("ms", "UTC"))
    steps = calendar.cumulative("1 day", "6 hours", time_zone="Europe/Berlin")
    rows = BASE.window(steps, **EMPTY).aggregate(n=fw.Count()).run(pa.table({"k": ["a", "a"], "ts": at})).main
    told = [(row["window_start"].day, row["window_end"].isoformat()[8:16], row["n"]) for row in rows.to_pylist()]
    assert told == [
        (30, "30T18:00", 1), (30, "31T00:00", 1),
        (31, "31T07:00", 0), (31, "31T13:00", 0), (31, "31T19:00", 0), (31, "01T00:00", 0),
        (1, "01T06:00", 0), (1, "01T12:00", 0), (1, "01T18:00", 1), (1, "02T00:00", 1),
    ]  # fmt: skip


def test_months_after_a_restart() -> None:
    months = fw.CalendarEventTimeWindows.of("1 month", time_zone="Europe/Berlin")
    spec = fw.key_by("k").event_time("ts").window(months, **EMPTY).aggregate(n=fw.Count())

    def day(text: str) -> pa.Table:
        return pa.table({"k": ["a"], "ts": pa.array([text]).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))})

    def ms(text: str) -> int:
        return pa.array([text]).cast(pa.timestamp("ms")).cast(pa.int64())[0].as_py()

    stream = spec.open()
    stream.process(day("1999-12-20"))
    stream.advance_watermark(ms("2000-02-01"))
    again = spec.open()
    again.restore(stream.snapshot())
    again.process(day("2024-06-10"))
    rows = again.advance_watermark(ms("2024-07-02")).main
    assert rows.num_rows == 24 * 12 + 6
    assert rows["n"].to_pylist() == [0] * (24 * 12 + 5) + [1]


def test_a_log_whose_first_deltas_are_gone_still_knows_the_last_windows() -> None:
    bound = fw.plan(BASE.window(TEN, **EMPTY).aggregate(n=fw.Count()), table(5).schema)
    stream = open_replica(bound)
    stream.process(table(5))
    stream.advance_watermark(10)
    deltas = [stream.delta(), *(stream.delta(Refresh(3, (0, 1, 2), turn)) for turn in range(3))]
    again = open_replica(bound)
    again.catch_up(deltas[1:])
    again.process(table(35))
    assert counts(again.advance_watermark(50)) == [(20, 0), (30, 0), (40, 1)]


def test_tables_on_threads_have_the_same_rows() -> None:
    keys = pa.array([f"k{i % 50}" for i in range(100_000)])
    times = pa.array([(i * 7919) % 100_000 for i in range(100_000)], pa.int64())
    spec = BASE.window(TEN, **EMPTY).aggregate(n=fw.Count())
    rows = pa.table({"k": keys, "ts": times})
    order = [(name, "ascending") for name in ("k", "window_end")]
    assert spec.run(rows, threads=2).main.sort_by(order) == spec.run(rows).main.sort_by(order)


class Shifted(fw.TumblingEventTimeWindows):
    pass


class Own(fw.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield {"n": 1}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BASE.window(TEN, fill="zero"), "fill must be None or 'empty', got 'zero'"),
        (lambda: BASE.window(TEN, longest_gap=10), "longest_gap= goes with fill='empty' only"),
        (lambda: BASE.window(TEN, fill="empty", longest_gap=9), "longest_gap must be at least the 10 ms"),
        (lambda: BASE.window(fw.EventTimeSessionWindows.with_gap(5), **EMPTY), "follow each other on a grid"),
        (lambda: BASE.window(fw.GlobalWindows.create(), **EMPTY), "follow each other on a grid"),
        (lambda: BASE.window(Shifted.of(10), **EMPTY), "follow each other on a grid"),
        (
            lambda: fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(5), **EMPTY),
            "windows of event time",
        ),
        (lambda: BASE.window(TEN, **EMPTY).trigger(fw.CountTrigger.of(2)), "nothing for trigger"),
        (lambda: BASE.window(TEN, **EMPTY).evictor(fw.CountEvictor.of(2)), "nothing for evictor"),
        (lambda: BASE.window(TEN, **EMPTY).with_pane_info(), "with_pane_info"),
        (lambda: BASE.window(TEN, **EMPTY).process(Own(), output="n bigint"), r"nothing for process\(\.\.\.\)"),
        (lambda: BASE.window(TEN, **EMPTY).top(3, by="v"), r"nothing for top\(\.\.\.\)"),
        (lambda: BASE.window(TEN, **EMPTY).deduplicate(), r"nothing for deduplicate\(\.\.\.\)"),
        (
            lambda: BASE.window(TEN, **EMPTY).aggregate(n=fw.Count(), then=Own(), output="n bigint"),
            "functions written in Python",
        ),
        (
            lambda: BASE.window(TEN, **EMPTY).with_changelog().allowed_lateness(5).aggregate(n=fw.Count()),
            "beside allowed lateness",
        ),
        (
            lambda: BASE.window(TEN, fill="empty", longest_gap=20).allowed_lateness(30).aggregate(n=fw.Count()),
            "at least the allowed lateness, got 20 ms and 30 ms",
        ),
        (lambda: BASE.window(TEN, **EMPTY).aggregate(n=fw.Count()).panes(), "goes with no panes"),
        (
            lambda: plan(BASE.window(TEN, **EMPTY).aggregate(n=fw.Count()), table(5).schema, general=True),
            "does not run on the general operator",
        ),
    ],
)
def test_what_has_no_empty_windows(make: Any, said: str) -> None:
    with pytest.raises(fw.SpecError, match=said):
        make()


def many_that_come_back(keys: list[str]) -> pa.Table:
    """Each key has a window at the beginning and one later."""
    times = [5] * len(keys) + [205 + 10 * i for i in range(len(keys))]
    return pa.table({"k": keys * 2, "ts": pa.array(times, pa.int64()), "v": [1.0] * len(times)})


@pytest.mark.parametrize(
    "windows", [TEN, fw.SlidingEventTimeWindows.of(30, 10), fw.CumulativeEventTimeWindows.of(30, 10)]
)
def test_long_keys_that_come_back_at_once_go_into_several_batches(
    windows: fw.WindowAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = BASE.window(windows, **EMPTY).allowed_lateness(50).aggregate(n=fw.Count(), last=fw.Last("v"))
    keys = ["k" * (i + 1) * 10 for i in range(20)]

    def played() -> list[pa.Table]:
        stream = spec.open()
        stream.process(many_that_come_back(keys))
        found = [stream.advance_watermark(430).main, stream.process(table(395, 385, key=keys[0])).main]
        assert stream.metrics.fired == sum(len(part) for part in found)
        return found

    expected = played()
    assert expected[0].column("n").num_chunks == 1
    monkeypatch.setattr("fastwin.operators.aligned.filling._MOST_BYTES", 2_000)
    found = played()
    assert [part.to_pylist() for part in found] == [part.to_pylist() for part in expected]
    sizes = [sum(map(len, chunk.to_pylist())) for chunk in found[0].column("k").chunks]
    assert len(sizes) > 10
    assert max(sizes) <= 2_000


@pytest.mark.parametrize(
    ("windows", "step"),
    [(TEN, 1), (fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin"), 8_640_000)],
    ids=["tumbling", "calendar"],
)
def test_gaps_of_many_windows_are_filled_in_parts(
    windows: fw.WindowAssigner, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(windows, **EMPTY).aggregate(n=fw.Count())
    rows = many_that_come_back([f"k{i}" for i in range(30)])
    rows = rows.set_column(1, "ts", pa.array([time * step for time in rows["ts"].to_pylist()], pa.int64()))

    def ordered(main: pa.Table) -> list[tuple]:
        return sorted(zip(*(main[name].to_pylist() for name in ("window_end", "k", "n")), strict=True))

    def main() -> pa.Table:
        stream = spec.open()
        stream.process(rows)
        return stream.advance_watermark(1_000 * step).main

    expected, most = main(), 100
    monkeypatch.setattr("fastwin.operators.aligned.filling._TOGETHER", most)
    found = main()
    assert ordered(found) == ordered(expected)
    empty = [chunk.to_pylist().count(0) for chunk in found["n"].chunks]
    assert len(empty) > 5
    assert max(empty) <= most
    for chunk in found["window_end"].chunks:
        assert chunk.to_pylist() == sorted(chunk.to_pylist())


def test_a_changelog_inserts_empty_windows() -> None:
    spec = BASE.window(TEN, fill="empty", longest_gap=timedelta(seconds=1)).with_changelog().aggregate(n=fw.Count())
    assert spec.run(table(5, 25)).main["change"].to_pylist() == ["insert"] * 3
    assert "empty windows: a row each" in spec.explain()


def test_a_late_element_fires_no_empty_window_that_it_is_in() -> None:
    """Overlapping windows that fire late come with the latest first."""
    spec = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(30)
    spec = spec.window(fw.SlidingEventTimeWindows.of(20, 5), fill="empty", longest_gap=30).aggregate(n=fw.Count())
    stream = spec.open()
    stream.advance_watermark(40)
    main = stream.push({"k": "a", "t": 22}).main
    ends = main["window_end"].cast(pa.int64()).to_pylist()
    assert sorted(zip(ends, main["n"].to_pylist(), strict=True)) == [(25, 1), (30, 1), (35, 1), (40, 1)]
