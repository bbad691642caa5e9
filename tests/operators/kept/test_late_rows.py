"""Late rows of one call: each fires its windows with what had arrived by then, as in a call of its own; in one go."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.operators.kept import operator
from fastwin.operators.kept.joins import Pairs
from fastwin.operators.kept.picks import Best, Latest
from fastwin.operators.kept.upto import best_upto, rows_upto
from tests.support.variants import variants

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
KEYED = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(40)
SLIDING = fw.SlidingEventTimeWindows.of(12, 4)


def pairs_of(key: Any, window: fw.TimeWindow, left: list, right: list) -> Any:
    yield len(left), ",".join(str(row.v) for row in [*left, *right])


SPECS = {
    "last": KEYED.window(SLIDING).deduplicate("last"),
    "last of cumulative": KEYED.window(fw.CumulativeEventTimeWindows.of(12, 3)).deduplicate("last"),
    "top 1": KEYED.window(SLIDING).top(1, by="v"),
    "top 3": KEYED.window(SLIDING).top(3, by="v", ascending=True),
    "top 40": KEYED.window(SLIDING).top(40, by="v"),
    **{how: fw.window_join(KEYED, KEYED, SLIDING, how) for how in ("inner", "left", "right", "full")},
    "group": fw.co_group(KEYED, KEYED, SLIDING, pairs_of, output="n bigint, told string"),
}


def table_of(dice: np.random.Generator, n: int) -> pa.Table:
    values = pa.array(dice.integers(0, 9, n), mask=dice.random(n) < 0.1)
    return pa.table([dice.integers(0, 3, n), dice.integers(0, 45, n), values], schema=SCHEMA)


@pytest.mark.parametrize(
    "name", variants(SPECS, "last", "last of cumulative", "top 1", "top 3", "inner", "full", "group")
)
@pytest.mark.parametrize("together", [None, 40])
def test_rows_of_one_call_are_as_those_of_calls_of_their_own(
    name: str, together: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """together: how many rows of windows are looked at together; None: as many as there are."""
    if together is not None:
        monkeypatch.setattr(operator, "_TOGETHER", together)
    dice, spec = np.random.default_rng(3), SPECS[name]
    sides = 1 if isinstance(spec, fw.WindowSpec) else 2
    asked = {"schema": SCHEMA} if sides == 1 else {"schemas": (SCHEMA, SCHEMA)}
    streams = [spec.open(**asked) for _ in range(2)]
    for watermark in (-1, 10, 30, 41, 60):
        tables = [table_of(dice, 40) for _ in range(sides)]
        fired = [stream.advance_watermark(watermark).main for stream in streams]
        assert fired[0].equals(fired[1])
        whole = streams[0].process(*tables).main
        rows = [(side, table.slice(i, 1)) for side, table in enumerate(tables) for i in range(table.num_rows)]
        alone = [streams[1].process(*[None] * side, row).main for side, row in rows]
        assert whole.to_pylist() == pa.concat_tables(alone).to_pylist()
        assert whole.num_rows or watermark < 0


@pytest.mark.parametrize("name", ["last", "top", "inner"])
def test_rows_of_one_key_look_at_those_before_them_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, looked = 500, []
    of, method = {"last": (Latest, "best"), "top": (Best, "best"), "inner": (Pairs, "_groups")}[name]
    real = getattr(of, method)
    monkeypatch.setattr(of, method, lambda on, table, fired: looked.append(len(fired)) or real(on, table, fired))
    hours = fw.TumblingEventTimeWindows.of("1 hour")
    keyed = fw.key_by("k").event_time("t", unit="ms").allowed_lateness("1 day")
    late = pa.table([np.ones(n, np.int64), np.arange(n), np.arange(n)], schema=SCHEMA)
    if name == "inner":
        stream = fw.window_join(keyed, keyed, hours).open(schemas=(SCHEMA, SCHEMA))
        tables, expected = (late, late.slice(0, 1)), n  # the right row comes behind all left ones
    else:
        spec = keyed.window(hours)
        stream = (spec.deduplicate("last") if name == "last" else spec.top(2, by="v")).open(schema=SCHEMA)
        tables, expected = (late,), n if name == "last" else 2 * n - 1
    stream.advance_watermark(3_600_000)
    assert stream.process(*tables).main.num_rows == expected
    assert sum(looked) <= 5 * n, f"{sum(looked)} rows for {n} that were late"


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=4), st.integers(1, 5), st.data()
)
def test_the_best_up_to_a_row(windows: list[list[int]], n: int, data: st.DataObject) -> None:
    values = np.concatenate(windows)
    of = np.repeat(np.arange(len(windows)), [len(window) for window in windows])
    begins = np.diff(of, prepend=-1) > 0
    firings = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=20))
    ranked = np.lexsort((np.arange(len(values)), -values, of))
    found = best_upto(begins, ranked, np.array(firings), n)
    whole = rows_upto(begins, np.array(firings))
    for number, firing in enumerate(firings):
        before = [place for place in range(firing + 1) if of[place] == of[firing]]
        assert sorted(whole.places[whole.numbers == number].tolist()) == before
        best = sorted(before, key=lambda place: (-values[place], place))[:n]
        assert found.places[found.numbers == number].tolist() == best
