"""The input of ``make soak`` has what is to be disturbed: keys that go on, windows that fire, and some late rows."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.run.stream import open_plan
from tests.soak.workload import KINDS, spec_of, tables

DELAY_MS = 5_000


def test_a_key_has_rows_all_the_time():
    inputs = tables(7, 13)
    assert {table.num_rows for table in inputs} == {500}
    for table in inputs:
        assert pc.count_distinct(table["k"], mode="all").as_py() > 130  # of 150
    assert sum(table["ts"].null_count for table in inputs) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_windows_fire_in_each_micro_batch_and_some_rows_are_late(kind):
    inputs, late = tables(7, 13), 0
    stream = open_plan(fw.plan(spec_of(kind), inputs[0].schema, coalesce=kind != "user-written"))
    newest = []
    for table in inputs:
        fired = 0
        if newest:
            fired += stream.advance_watermark(max(newest) - DELAY_MS).main.num_rows
        result = stream.process(table)
        assert not newest or fired + result.main.num_rows > 100
        late += result.late.num_rows
        newest.append(pc.max(table["ts"].cast(pa.int64())).as_py() // 1000)
    if spec_of(kind).late_output:
        assert 0.01 < late / 6_500 < 0.2
