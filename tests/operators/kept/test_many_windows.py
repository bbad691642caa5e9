"""Rows that are in many windows: what is looked at together is bounded, and the results are the same."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.kept import firsts, operator
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


@pytest.mark.parametrize("ending", ["last", "top", "join"])
@pytest.mark.parametrize("name", WINDOWS)
def test_late_rows_of_many_windows(name: str, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows have no order, each window fires once for all that are late; and not all windows at once."""
    together, looked, step = (300, [], 7_200_000) if name == "calendar" else (2_000, [], 1)
    keyed = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(150 * step, coalesce=True)
    spec: Any = {
        "last": lambda: keyed.window(WINDOWS[name]).deduplicate("last"),
        "top": lambda: keyed.window(WINDOWS[name]).top(2, by="v"),
        "join": lambda: fw.window_join(keyed, keyed, WINDOWS[name], "full"),
    }[ending]()
    sides = 2 if ending == "join" else 1

    def run() -> list[dict]:
        stream = spec.open(**({"schemas": (SCHEMA, SCHEMA)} if ending == "join" else {"schema": SCHEMA}))
        stream.process(*(table_of(100, step, seed) for seed in range(sides)))
        found = [stream.advance_watermark(250 * step).main]
        found.append(stream.process(*(table_of(150, step, 7 + seed) for seed in range(sides))).main)
        return pa.concat_tables(found).to_pylist()

    expected, late = run(), RowsOperator._touched

    def noted(on: RowsOperator, elements: Any, places: Any, *when: int) -> Any:
        looked.append(int(on._slicing.late_windows(elements.starts[places], *when).counts.sum()))
        return late(on, elements, places, *when)

    monkeypatch.setattr(RowsOperator, "_touched", noted)
    monkeypatch.setattr(operator, "_TOGETHER", together)
    assert run() == expected
    assert len(looked) > 1
    assert max(looked) <= together, looked
