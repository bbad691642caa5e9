"""State divided by key groups and gathered in other streams goes on as one long stream."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.columns.keys import key_hash
from fastwin.errors import StateError
from fastwin.run.replica import Replica, open_replica
from tests.support import newer_specs, stored_specs
from tests.support.stored_streams import BATCHES, SCHEMA, START_MS, STEP_MS, events
from tests.support.variants import variants

SPECS = stored_specs.SPECS | newer_specs.SPECS


def feed(stream: fw.Stream, batch: int, rows: pa.Table) -> list[fw.Result]:
    last = batch == BATCHES - 1
    results = [
        stream.advance_processing_time(START_MS + batch * STEP_MS),
        stream.process(rows),
        stream.advance_watermark(fw.MAX_TIMESTAMP if last else START_MS + (batch + 1) * STEP_MS + 8_000),
    ]
    return [*results, stream.finish_processing_time()] if last else results


def in_group(rows: pa.Table, plan: fw.Plan, key_groups: int, numbers: set[int]) -> pa.Table:
    (batch,) = rows.combine_chunks().to_batches()
    groups = key_hash(batch, plan.spec.keys) % key_groups
    return rows.filter(pa.array([int(group) in numbers for group in groups]))


def replicas(plan: fw.Plan, shares: int) -> list[Replica]:
    return [open_replica(plan) for _ in range(shares)]


def numbers(share: int, shares: int, key_groups: int) -> set[int]:
    return set(range(share, key_groups, shares))


@pytest.mark.parametrize("name", variants(SPECS, *[*SPECS][2::3]))
@settings(max_examples=6)
@given(
    before=st.integers(1, 5),
    after=st.integers(1, 5),
    groups=st.sampled_from([5, 8, 12, 700]),
    others=st.sampled_from([5, 7, 8, 257, 512, 1000]),
    at=st.integers(1, BATCHES - 1),
)
def test_state_in_other_shares_goes_on(name: str, before: int, after: int, groups: int, others: int, at: int) -> None:
    plan = fw.plan(SPECS[name], SCHEMA, coalesce=True)
    old, new = replicas(plan, before), replicas(plan, after)
    alone = open_replica(plan)
    for batch in range(at):
        feed(alone, batch, events(batch))
        for share, stream in enumerate(old):
            feed(stream, batch, in_group(events(batch), plan, groups, numbers(share, before, groups)))
    parts: dict[int, list[bytes]] = {}
    for number, stream in enumerate(old):
        saved = stream.snapshot()
        if number % 2:  # as from a checkpoint
            stream = open_replica(plan)
            stream.catch_up([saved])
        for group, part in stream.parts(others):
            parts.setdefault(group, []).append(part)
    for share, stream in enumerate(new):
        mine = [part for group in sorted(numbers(share, after, others)) for part in parts.get(group, [])]
        if mine:
            stream.gather(mine)
            stream._check_invariants()
        stream.advance_watermark(alone.watermark)
    assert sum(stream.metrics.open_windows for stream in new) == alone.metrics.open_windows
    for batch in range(at, BATCHES):
        wanted = feed(alone, batch, events(batch))
        found = [
            result
            for share, stream in enumerate(new)
            for result in feed(stream, batch, in_group(events(batch), plan, others, numbers(share, after, others)))
        ]
        assert rows_of(found) == rows_of(wanted), batch
        assert sum(result.late.num_rows for result in found) == sum(result.late.num_rows for result in wanted)


def rows_of(results: list[fw.Result]) -> list[str]:
    rows = [row for result in results for row in result.main.to_pylist()]
    # Sums of floats that were saved in between may differ in their last digits.
    return sorted(
        repr({name: f"{value:.9g}" if isinstance(value, float) else value for name, value in row.items()})
        for row in rows
    )


def test_parts_of_another_spec_are_refused() -> None:
    one = open_replica(fw.plan(SPECS["tumbling"], SCHEMA))
    one.process(events(0))
    one.snapshot()
    parts = [part for _, part in one.parts(4)]
    other = open_replica(fw.plan(SPECS["sliding"], SCHEMA))
    with pytest.raises(StateError, match="written by another spec"):
        other.gather(parts)


@pytest.mark.parametrize("key_groups", [1, 12, 256, 257, 512, 1000, 32_768])
@pytest.mark.parametrize("name", ["tumbling", "sliding"])
def test_a_part_is_of_one_key_group_however_many_there_are(name: str, key_groups: int) -> None:
    plan = fw.plan(SPECS[name], SCHEMA, coalesce=True)
    stream = open_replica(plan)
    feed(stream, 0, events(0))
    stream.snapshot()
    windows, found = stream.metrics.open_windows, []
    for group, part in stream.parts(key_groups):
        one = open_replica(plan)
        one.gather([part])
        keys = one.inspect().select(plan.spec.keys).combine_chunks().to_batches()[0]
        assert {int(number) for number in key_hash(keys, plan.spec.keys) % key_groups} == {group}
        found.append((group, one.metrics.open_windows))
    assert [group for group, _ in found] == sorted({group for group, _ in found})
    assert sum(count for _, count in found) == windows > 0


@pytest.mark.parametrize("times", [1, 12])
def test_gathered_rows_are_numbered_one_by_one(times: int) -> None:
    """However often they are, and whatever their numbers were."""
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 h")).top(3, by="v")
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
    plan = fw.plan(spec, schema, coalesce=True)
    groups, stream = 16, open_replica(plan)
    stream._operator._arrived = 2**40
    rows = pa.table({"k": range(60), "ts": range(60), "v": range(60)}, schema=schema)
    stream.process(rows)
    stream.delta()
    for _ in range(times):
        parts = [part for _, part in stream.parts(groups)]
        stream = open_replica(plan)
        stream.gather(parts)
        stream._check_invariants()
    assert stream._operator._arrived == 60
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.sort_by("k")["v"].to_pylist() == list(range(60))
