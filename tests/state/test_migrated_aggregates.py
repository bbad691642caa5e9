"""Aggregates that are removed or renamed, and types that get wider, over a restart: the others go on as they were."""

import random

import pyarrow as pa
import pytest

import fastwin as fw

BASE = fw.key_by("k", "name").event_time("t")
WINDOWS = {
    "tumbling": BASE.window(fw.TumblingEventTimeWindows.of(10)),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(30, 10)),
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap(8)),
    "triggered": BASE.window(fw.TumblingEventTimeWindows.of(20)).trigger(
        fw.after_watermark(early=fw.CountTrigger.of(3))
    ),
    "several": BASE.windows(ten=fw.TumblingEventTimeWindows.of(10), thirty=fw.TumblingEventTimeWindows.of(30)),
}
NARROW = pa.schema(
    [("k", pa.int16()), ("name", pa.string()), ("t", pa.int64()), ("v", pa.int32()), ("x", pa.float32())]
)
WIDE = pa.schema([("k", pa.int64()), ("name", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("x", pa.float64())])
AGGREGATES = {
    "n": fw.Count(),
    "uv": fw.HyperLogLog("v"),
    "total": fw.Sum("v"),
    "low": fw.Min("x"),
    "first": fw.First("v"),
    "all": fw.Collect("v"),
    "median": fw.Median("v"),
}


def rows(dice: random.Random, now: int, schema: pa.Schema) -> pa.Table:
    told = [
        {
            "k": dice.randrange(-2, 3),
            "name": dice.choice("ab"),
            "t": now + dice.randrange(12),
            "v": dice.randrange(-9, 9),
        }
        for _ in range(8)
    ]
    return pa.Table.from_pylist([row | {"x": row["v"] / 4} for row in told], schema)


def run_on(kind: str, aggregates: dict, dice: random.Random) -> tuple[fw.Stream, list[bytes], int]:
    stream, chunks, now = WINDOWS[kind].aggregate(**aggregates).open(schema=NARROW), [], 100
    for _ in range(5):
        stream.advance_watermark(now - 15)
        stream.process(rows(dice, now, NARROW))
        chunks.append(stream.delta() if chunks else stream.snapshot())
        now += 9
    return stream, chunks, now


def goes_on(
    before: fw.Stream, after: fw.Stream, now: int, dice: random.Random, names: dict[str, str], schema: pa.Schema
) -> None:
    """Feeds both the same, and compares columns. names: of the aggregates that are left, before and after."""
    fired = 0
    for step in range(8):
        seed = dice.randrange(1 << 30)
        narrow, wide = (rows(random.Random(seed), now, one) for one in (NARROW, schema))
        for found, expected in (
            (after.advance_watermark(now - 15), before.advance_watermark(now - 15)),
            (after.process(wide), before.process(narrow)),
        ):
            keys = [name for name in expected.main.column_names if name not in AGGREGATES]
            old = expected.main.select([*keys, *names]).rename_columns([*keys, *names.values()])
            assert sorted(map(repr, found.main.select(old.column_names).to_pylist())) == sorted(
                map(repr, old.to_pylist())
            ), step
            fired += old.num_rows
        after._check_invariants()
        now += 9
    assert fired > 10


@pytest.mark.parametrize("kind", WINDOWS)
def test_aggregates_that_are_removed_are_dropped(kind):
    dice = random.Random(kind)
    before, chunks, now = run_on(kind, AGGREGATES, dice)
    left = dice.sample(list(AGGREGATES), 3)
    after = WINDOWS[kind].aggregate(**{name: AGGREGATES[name] for name in left}).open(schema=NARROW)
    with pytest.raises(fw.StateError, match="is missing; migrate='removed aggregates' drops it"):
        after.restore(chunks)
    after.restore(chunks, migrate="removed aggregates")
    goes_on(before, after, now, dice, {name: name for name in left}, NARROW)


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_renamed_aggregate_goes_on(kind):
    dice = random.Random(1)
    before, chunks, now = run_on(kind, {"n": fw.Count(), "total": fw.Sum("v"), "low": fw.Min("x")}, dice)
    spec = WINDOWS[kind].aggregate(lowest=fw.Min("x"), n=fw.Count(), sum_of_v=fw.Sum("v"))
    after = spec.open(schema=NARROW)
    with pytest.raises(fw.StateError, match=r"aggregate low=.* is missing"):
        after.restore(chunks, migrate={"renamed total to sum_of_v", "added aggregates"})
    after.restore(chunks, migrate={"renamed total to sum_of_v", "renamed low to lowest"})
    goes_on(before, after, now, dice, {"n": "n", "total": "sum_of_v", "low": "lowest"}, NARROW)


@pytest.mark.parametrize(
    ("now", "migrate"),
    [
        ({"last": "v", "low": "x"}, {"renamed total to sum", "renamed sum to last"}),  # not visited since the first one
        ({"low": "v", "total": "x"}, {"renamed total to low", "renamed low to total"}),
        ({"low": "v", "last": "x"}, {"renamed total to low", "renamed low to last"}),
    ],
    ids=["one after the other", "swapped", "moved on"],
)
def test_several_renames(now, migrate):
    """Each is told by its column."""
    old = WINDOWS["tumbling"].aggregate(total=fw.Max("v"), low=fw.Max("x")).open(schema=NARROW)
    old.process(pa.table([[1], ["a"], [5], [7], [0.5]], schema=NARROW))
    stream = WINDOWS["tumbling"].aggregate(**{name: fw.Max(column) for name, column in now.items()}).open(schema=NARROW)
    stream.restore(old.snapshot(), migrate=migrate)
    (row,) = stream.advance_watermark(100).main.to_pylist()
    assert {name: row[name] for name in now} == {name: {"v": 7, "x": 0.5}[column] for name, column in now.items()}


@pytest.mark.parametrize("kind", WINDOWS)
def test_wider_types_go_on(kind):
    dice = random.Random(2)
    before, chunks, now = run_on(kind, AGGREGATES, dice)
    spec = WINDOWS[kind].aggregate(**AGGREGATES)
    after = spec.open(schema=WIDE)
    says = (
        r"low was Min.* of float, is .* of double, which migrate='wider types' allows.*the keys were of int16, string, "
    )
    with pytest.raises(fw.StateError, match=says + "are of int64, string, which migrate='wider types' allows$"):
        after.restore(chunks)
    after.restore(chunks, migrate="wider types")
    goes_on(before, after, now, dice, {name: name for name in AGGREGATES}, WIDE)
    back = spec.open(schema=NARROW)
    with pytest.raises(fw.StateError, match=r"the keys were of int64, string, are of int16, string$"):
        back.restore([after.snapshot()], migrate="wider types")


def test_what_is_left_must_have_cells_of_its_own():
    window = WINDOWS["tumbling"]
    stream = window.aggregate(median=fw.Median("v"), p90=fw.Quantile("v", 0.9)).open(schema=NARROW)
    stream.process(rows(random.Random(1), 5, NARROW))
    with pytest.raises(fw.StateError, match=r"aggregate p90 was .* shares its values with other aggregates than now"):
        window.aggregate(p90=fw.Quantile("v", 0.9)).open(schema=NARROW).restore(
            [stream.snapshot()], migrate="removed aggregates"
        )
