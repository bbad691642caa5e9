"""A key group of a batch frame: whatever of it comes as partial results and whatever as rows, it gives what a run does."""

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import fastwin as fw
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import output_for
from spark_glue.stages import batchframe, history, pack
from spark_glue.stages.packets import PACKED, PacketKind
from spark_glue.state.cutparts import Pieces
from tests.support.spark_events import START_MS, events
from tests.support.spark_jobs import SPEC, frame_plan_for
from tests.support.spark_packing import packed
from tests.support.spark_streams import rows_of

ENDINGS = {
    "tumbling": SPEC.aggregate(n=fw.Count(), s=fw.Sum("v"), first=fw.FirstArrived("v"), all=fw.Collect("v")),
    "sliding": fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of("2 min", "1 min")),
    "session": fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("1 min")),
    "bad rows": SPEC.bad_rows("divert"),
}
SPECS = {name: spec if spec.ending else spec.aggregate(n=fw.Count(), s=fw.Sum("v")) for name, spec in ENDINGS.items()}


def batch_plan(table: pa.Table, spec: fw.WindowSpec = SPEC, **changes: Any) -> FramePlan:
    return frame_plan_for(table, spec, streaming=False, carrier=False, **changes)


def hot(seed: int, n: int) -> pa.Table:
    """Rows of few keys."""
    return events(seed, n)


def cold(seed: int, n: int) -> pa.Table:
    """Rows of which hardly two meet in a window."""
    table = events(seed, n)
    return table.set_column(table.schema.get_field_index("k"), "k", pa.array(range(seed * 10**6, seed * 10**6 + n)))


def groups_of(rows: list[dict]) -> list[pa.RecordBatch]:
    """Returns packed rows as Spark hands them over: those of a key group at a time."""
    groups = sorted({row["key_group"] for row in rows})
    return [pa.RecordBatch.from_pylist([row for row in rows if row["key_group"] == one], PACKED) for one in groups]


def run_groups(frame_plan: FramePlan, rows: list[dict]) -> pa.Table:
    """Returns what all key groups give."""
    output = output_for(frame_plan, from_arrow_schema(frame_plan.schema), True)
    given = [batchframe._run_group(frame_plan, output, iter([batch])) for batch in groups_of(rows)]
    return pa.Table.from_batches(chain.from_iterable(given))


@pytest.mark.parametrize(("make", "kind"), [(hot, PacketKind.PARTIAL), (cold, PacketKind.GOOD)])
def test_a_task_sends_partial_results_where_rows_meet_and_else_all_as_rows(monkeypatch, make, kind):
    """Also of the first flush, by which it has found out."""
    monkeypatch.setattr(pack, "FLUSH_ROWS", 1_000)
    table = make(1, 5_000)
    rows = packed(batch_plan(table), table, size=500)
    assert {row["kind"] for row in rows} == {kind}
    assert sum(row["rows"] for row in rows) == 5_000
    assert kind == PacketKind.GOOD or len(rows) <= 8


@pytest.mark.parametrize("kinds", [(hot, hot), (cold, cold), (hot, cold), (cold, hot)])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_group_gives_what_a_run_does(spec, kinds):
    tables = [make(seed, 2_000) for seed, make in enumerate(kinds)]
    frame_plan = batch_plan(tables[0], spec)
    rows = [row for mapper, table in enumerate(tables) for row in packed(frame_plan, table, mapper)]
    ways = {row["kind"] for row in rows} - {PacketKind.BAD}
    assert ways <= {PacketKind.GOOD, PacketKind.PARTIAL}
    assert (PacketKind.PARTIAL in ways) == (hot in kinds)
    whole = spec.run(pa.concat_tables(tables)).main
    assert rows_of(run_groups(frame_plan, rows).select(whole.column_names)) == rows_of(whole)


@pytest.mark.parametrize("kinds", [(hot, hot), (cold, cold), (hot, cold), (cold, hot)])
def test_history_is_the_same_however_its_rows_travel(kinds):
    tables = [make(seed, 2_000) for seed, make in enumerate(kinds)]
    frame_plan, until_ms = batch_plan(tables[0]), START_MS + 60_000
    packets = [row for mapper, table in enumerate(tables) for row in packed(frame_plan, table, mapper)]
    assert any(row["kind"] == PacketKind.PARTIAL for row in packets) == (hot in kinds)
    parts = []
    for batch in groups_of(packets):
        for state in history._state_of_group(frame_plan, until_ms, iter([batch])):
            parts += Pieces().joined(zip(*(column.to_pylist() for column in state.columns), strict=True))
    found = history.gathered_stream(frame_plan, [part for _, part in parts])
    stream = SPEC.open()
    stream.process(pa.concat_tables(tables))
    assert stream.advance_watermark(until_ms).main.num_rows > 0
    expected = stream.advance_watermark(fw.MAX_TIMESTAMP).main
    assert expected.num_rows > 0
    assert rows_of(found.advance_watermark(fw.MAX_TIMESTAMP).main) == rows_of(expected)


@pytest.mark.parametrize("make", [hot, cold])
def test_what_goes_on_leaves_open_windows_out(make):
    """Be it given as rows or as partial results."""
    table = make(3, 2_000)
    until_ms = START_MS + 60_000
    frame_plan = batch_plan(table, until_ms=until_ms)
    found = run_groups(frame_plan, packed(frame_plan, table))
    stream = SPEC.open()
    stream.process(table)
    assert rows_of(found) == rows_of(stream.advance_watermark(until_ms).main)
