"""Rows that are in many windows: what is looked at together is bounded, and the results are the same."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.kept import firsts, operator
from fastwin.operators.kept.bands import late_spans
from fastwin.operators.kept.operator import RowsOperator

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
WINDOWS: dict[str, Any] = {
    "sliding": fw.SlidingEventTimeWindows.of(200, 4),
    "with a rest": fw.SlidingEventTimeWindows.of(202, 4),
    "cumulative": fw.CumulativeEventTimeWindows.of(200, 4),
    "calendar": fw.CalendarEventTimeWindows.sliding("7 days", "1 day", time_zone="Europe/Berlin"),
}


def table_of(n: int, step: int, seed: int = 0) -> pa.Table:
    dice = np.random.default_rng(seed)
    return pa.table([dice.integers(0, 3, n), dice.integers(0, 300, n) * step, dice.integers(0, 99, n)], schema=SCHEMA)


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_the_first_rows_of_many_windows(name: str, coalesce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    together, looked, step = 100, [], 7_200_000 if name == "calendar" else 1
    spec = fw.key_by("k").event_time("t", unit="ms").window(WINDOWS[name])
    spec = spec.allowed_lateness(100 * step, coalesce=coalesce).deduplicate()

    def run() -> list[dict]:
        stream = spec.open(schema=SCHEMA)
        found = [stream.process(table_of(400, step)).main]
        stream.advance_watermark(250 * step)
        found += [stream.process(table_of(n, step, seed=1 + n)).main for n in (0, 1, 300)]
        return pa.concat_tables(found).to_pylist()

    expected, add = run(), firsts.add_firsts

    def noted(panes: Any, keys: Any, starts: Any) -> Any:
        looked.append(len(keys))
        return add(panes, keys, starts)

    monkeypatch.setattr(firsts, "add_firsts", noted)
    monkeypatch.setattr(firsts, "_TOGETHER", together)
    assert run() == expected
    assert len(looked) > 20
    assert max(looked) <= together


def looks(monkeypatch: pytest.MonkeyPatch, together: int) -> list[int]:
    """How many rows of windows are looked at each time from now on; together: how many there may be."""
    looked, fired = [], RowsOperator._fired

    def noted(on: RowsOperator, slots: Any, windows: Any) -> Any:
        looked.append(int(windows.counts.sum()))
        return fired(on, slots, windows)

    monkeypatch.setattr(RowsOperator, "_fired", noted)
    monkeypatch.setattr(operator, "_TOGETHER", together)
    return looked


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("ending", ["last", "top", "join"])
@pytest.mark.parametrize("name", WINDOWS)
def test_late_rows_of_many_windows(name: str, ending: str, coalesce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all windows of all late rows are looked at together; the results are the same, in the same order."""
    together, step = (300, 7_200_000) if name == "calendar" else (2_000, 1)
    keyed = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(150 * step, coalesce=coalesce)
    spec: Any = {
        "last": lambda: keyed.window(WINDOWS[name]).deduplicate("last"),
        "top": lambda: keyed.window(WINDOWS[name]).top(2, by="v"),
        "join": lambda: fw.window_join(keyed, keyed, WINDOWS[name], "full"),
    }[ending]()
    sides = 2 if ending == "join" else 1

    def run() -> list[pa.Table]:
        stream = spec.open(**({"schemas": (SCHEMA, SCHEMA)} if ending == "join" else {"schema": SCHEMA}))
        stream.process(*(table_of(100, step, seed) for seed in range(sides)))
        found = [stream.advance_watermark(250 * step).main]
        for n in (1, 40):
            found.append(stream.process(*(table_of(n, step, 7 + seed) for seed in range(sides))).main)
        return found

    expected = run()

    looked = looks(monkeypatch, together)
    assert run() == expected
    assert all(table.num_rows for table in expected[::2])
    assert len(looked) > 3
    assert max(looked) <= together, looked


@pytest.mark.parametrize("how", ["inner", "full"])
def test_one_late_row_beside_many_others(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is late fires hundreds of windows with thousands of rows each: they are looked at in parts."""
    together, n = 5_000, 2_000
    keyed = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(n)
    join = fw.window_join(keyed, keyed, fw.SlidingEventTimeWindows.of(400, 2), how)
    rows = pa.table([np.zeros(n, np.int64), np.arange(n), np.arange(n)], schema=SCHEMA)
    late = rows.slice(900, 1)

    def run() -> pa.Table:
        stream = join.open(schemas=(SCHEMA, SCHEMA))
        stream.process(left=rows)
        stream.advance_watermark(n)
        return stream.process(**{"left" if how == "inner" else "right": late}).main

    expected = run()
    assert expected.num_rows == (0 if how == "inner" else 400 * 200)
    assert expected["window_end"].to_pylist() == sorted(expected["window_end"].to_pylist())

    looked = looks(monkeypatch, together)
    assert run() == expected
    assert max(looked) <= together, looked


@pytest.mark.parametrize("name", WINDOWS)
def test_what_late_rows_span(name: str) -> None:
    """Against a look at all windows over each row."""
    dice, step = np.random.default_rng(5), 7_200_000 if name == "calendar" else 1
    spec = fw.key_by("k").event_time("t", unit="ms").window(WINDOWS[name]).deduplicate("last")
    slicing = fw.plan(spec, SCHEMA).slicing()
    for watermark, lateness in ((250, 150), (250, 0), (120, 400), (0, 10), (310, 20)):
        times = dice.integers(0, 300, 60) * step
        slicing.cover(times)
        starts, _ = slicing.assign(times)
        kept = watermark * step, lateness * step
        since = np.array([slicing.end_after(int(t) * step) for t in dice.integers(-100, 300, 60)])
        windows = slicing.late_windows(starts, *kept)
        of = np.repeat(np.arange(60), windows.counts)
        takes = windows.ends >= since[of]
        wanted = {
            i: (int(windows.starts[takes & (of == i)].min()), int(windows.ends[takes & (of == i)].max()))
            for i in np.unique(of[takes]).tolist()
        }
        places, firsts, ends = late_spans(slicing, starts, since, *kept)
        assert places.tolist() == list(wanted)
        for place, first, end in zip(places.tolist(), firsts.tolist(), ends.tolist(), strict=True):
            assert first == wanted[place][0]
            assert wanted[place][1] <= end <= watermark * step + 1
    assert [len(one) for one in late_spans(slicing, starts[:0], since[:0], 5, 5)] == [0, 0, 0]
