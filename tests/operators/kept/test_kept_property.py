"""Deduplicate and top answer as naive models do, and as the general operator; however they are saved and restored."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.operators.kept import byslice, picks, pruning
from fastwin.run.planner import plan
from tests.support.kept_models import ApartModel, FirstsModel, RowsModel, last_row, top_rows
from tests.support.kept_steps import SCHEMA, follow, steps, windows

LATENESS = st.sampled_from([0, 1, 10, 50])


@contextmanager
def few(pruned: bool) -> Iterator[None]:
    """Has rows that no window picks go at once, as of large batches, or stay for long."""
    with mock.patch.object(pruning, "_FEW", 0 if pruned else 4_096), mock.patch.object(pruning, "_MOST_STAY", 1.0):
        yield


def spec_of(assigner: Any, lateness: int) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("ts").allowed_lateness(lateness).side_output_late_data()
    return spec if assigner is None else spec.window(assigner)


@given(windows, LATENESS, st.booleans(), st.booleans(), steps)
def test_the_last_row_of_each_window(pair: Any, lateness: int, coalesce: bool, scanned: bool, steps: Any) -> None:
    spec = spec_of(pair[0], lateness).deduplicate("last")
    bound = plan(spec, SCHEMA, coalesce=coalesce)
    assert bound.operator == "rows"
    # Late rows are few beside those kept, or many: then all are looked at.
    with mock.patch.object(byslice, "_SCAN", 1 << 20 if scanned else 0), few(scanned):
        follow(bound, RowsModel(pair[1], last_row, lateness, coalesce), steps)


@given(windows, LATENESS, st.booleans(), st.integers(1, 4), st.booleans(), st.booleans(), st.booleans(), steps)
def test_the_best_rows_of_each_window(
    pair: Any, lateness: int, coalesce: bool, n: int, ascending: bool, pruned: bool, inserted: bool, steps: Any
) -> None:
    spec = spec_of(pair[0], lateness).top(n, by="v", ascending=ascending)
    model = RowsModel(pair[1], top_rows(n, ascending), lateness, coalesce)
    with few(pruned), mock.patch.object(picks, "_MOST_INSERTED", 16 if inserted else 0):
        follow(plan(spec, SCHEMA, coalesce=coalesce), model, steps)


@settings(max_examples=20)
@given(windows, LATENESS, st.booleans(), steps)
def test_the_general_operator_answers_the_same(pair: Any, lateness: int, last: bool, steps: Any) -> None:
    spec = spec_of(pair[0], lateness)
    spec = spec.deduplicate("last") if last else spec.top(2, by="v")
    model = RowsModel(pair[1], last_row if last else top_rows(2), lateness, False)
    follow(plan(spec, SCHEMA, general=True), model, steps)


@given(windows, LATENESS, st.booleans(), steps)
def test_the_first_row_of_each_window(pair: Any, lateness: int, coalesce: bool, steps: Any) -> None:
    spec = spec_of(pair[0], lateness).deduplicate()
    follow(plan(spec, SCHEMA, coalesce=coalesce), FirstsModel(pair[1], lateness, coalesce), steps)


@given(st.integers(1, 60), LATENESS, st.booleans(), steps)
def test_rows_apart(within: int, lateness: int, coalesce: bool, steps: Any) -> None:
    spec = spec_of(None, lateness).deduplicate(within=within)
    follow(plan(spec, SCHEMA, coalesce=coalesce), ApartModel(within, lateness, coalesce), steps)
