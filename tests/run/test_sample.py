"""What a sample of a table tells: about how many groups all elements make, and the elements of one window at most."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run import sample
from fastwin.run.grouped import grouped
from fastwin.run.planner import plan

MINUTES = fw.TumblingEventTimeWindows.of(10)


@pytest.mark.parametrize("groups", [1, 100, 4_000, 60_000, 500_000])
def test_the_number_of_groups_follows_from_a_sample(groups: int) -> None:
    random = np.random.default_rng(3)
    keys, times = random.integers(0, groups, 300_000), np.arange(300_000) // 3_000
    table = pa.table({"k": keys, "t": np.zeros(len(keys), np.int64)})
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(n=fw.Count())
    found = grouped(plan(spec, table.schema), table.to_batches())
    cuts = [0, 7_000, 7_001, 290_000, 300_000]
    parts = [(table.to_batches()[0].slice(a, b - a), times[a:b] * 0) for a, b in zip(cuts, cuts[1:], strict=False)]
    assert 0.9 * len(np.unique(keys)) <= sample.number_of_groups(found, parts) <= min(1.1 * groups, len(keys))
    parts = [(rows, times[a:b]) for (rows, _), a, b in zip(parts, cuts, cuts[1:], strict=False)]
    assert 8 * min(groups, 30_000) <= sample.number_of_groups(found, parts)  # in ten windows


def test_groups_of_all_windows_are_counted_where_rows_are_in_order() -> None:
    """Neighbours tell of their own window alone: here are 1,000, of 300 keys each."""
    keys, times = np.random.default_rng(3).integers(0, 300, 600_000), np.arange(600_000) // 600 * 10
    table = pa.table({"k": keys, "t": times})
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(n=fw.Count())
    found = grouped(plan(spec, table.schema), table.to_batches())
    parts = [(rows, rows.column("t").to_numpy()) for rows in table.to_batches(max_chunksize=70_000)]
    assert 250_000 <= sample.number_of_groups(found, parts) <= 350_000
    assert 250 <= sample.most_groups(found, parts) <= 1_000


def test_where_a_sample_has_no_two_elements_of_a_group_each_makes_one() -> None:
    table = pa.table({"k": np.arange(50_000), "t": np.zeros(50_000, np.int64)})
    spec = fw.key_by("k").event_time("t", unit="ms").window(MINUTES).aggregate(n=fw.Count())
    found = grouped(plan(spec, table.schema), table.to_batches())
    assert sample.number_of_groups(found, [(table.to_batches()[0], table["t"].to_numpy())]) == 50_000
