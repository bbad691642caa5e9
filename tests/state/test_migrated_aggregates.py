"""Aggregates that are removed or renamed, and types that get wider, over a restart: the others go on as they were."""

import random
from decimal import Decimal

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
    "filled": BASE.window(fw.TumblingEventTimeWindows.of(10), fill="empty"),
    "several filled": BASE.windows(
        ten=fw.TumblingEventTimeWindows.of(10), thirty=fw.TumblingEventTimeWindows.of(30), fill="empty"
    ),
}
NARROW = pa.schema(
    [
        ("k", pa.int16()),
        ("name", pa.string()),
        ("t", pa.int64()),
        ("v", pa.int32()),
        ("x", pa.float32()),
        ("d", pa.decimal128(9, 2)),
    ]
)
WIDE = NARROW.set(0, pa.field("k", pa.int64())).set(3, pa.field("v", pa.int64())).set(4, pa.field("x", pa.float64()))
AGGREGATES = {
    "n": fw.Count(),
    "uv": fw.HyperLogLog("v"),
    "total": fw.Sum("v"),
    "low": fw.Min("x"),
    "first": fw.First("v"),
    "all": fw.Collect("v"),
    "median": fw.Median("v"),
}
SHARING = {
    "n": fw.Count(),
    "p50": fw.Quantile("v", 0.5),
    "p90": fw.Quantile("v", 0.9),
    "middle": fw.Median("v"),
    "values": fw.CountDistinct("v"),
    "total": fw.Sum("v", distinct=True),
    "top": fw.TopK("name", 2),
    "often": fw.Mode("name"),
    "counts": fw.CountDistinct("d"),
    "totals": fw.Sum("d", distinct=True),
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
    return pa.Table.from_pylist([row | {"x": row["v"] / 4, "d": Decimal(row["v"])} for row in told], schema)


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
            keys = [name for name in expected.main.column_names if name not in {*AGGREGATES, *SHARING}]
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
    old.process(pa.table([[1], ["a"], [5], [7], [0.5], [None]], schema=NARROW))
    stream = WINDOWS["tumbling"].aggregate(**{name: fw.Max(column) for name, column in now.items()}).open(schema=NARROW)
    stream.restore(old.snapshot(), migrate=migrate)
    (row,) = stream.advance_watermark(100).main.to_pylist()
    assert {name: row[name] for name in now} == {name: {"v": 7, "x": 0.5}[column] for name, column in now.items()}


@pytest.mark.parametrize(("name", "migrate"), [("t", {"renamed n to t", "renamed s to t"}), ("s", {"renamed n to s"})])
def test_two_aggregates_of_one_name_are_refused(name, migrate):
    old = WINDOWS["tumbling"].aggregate(n=fw.Count(), s=fw.Max("v")).open(schema=NARROW)
    old.process(pa.table([[1], ["a"], [5], [7], [0.5], [None]], schema=NARROW))
    after = WINDOWS["tumbling"].aggregate(**{name: fw.Max("v")}).open(schema=NARROW)
    with pytest.raises(fw.StateError, match=f"migrate= makes one aggregate, {name}, of n and s"):
        after.restore(old.snapshot(), migrate={*migrate, "added aggregates", "removed aggregates"})


class Elements(fw.AggregateFunction):
    """A count in Python."""

    create_accumulator = int

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator


def test_without_a_built_in_aggregate_the_error_says_that_one_is_needed():
    window = WINDOWS["tumbling"]
    old = window.aggregate(n=fw.Count(), x=Elements(), output="x bigint").open(schema=NARROW)
    old.process(pa.table([[1], ["a"], [5], [7], [0.5], [None]], schema=NARROW))
    after = window.aggregate(x=Elements(), output="x bigint").open(schema=NARROW)
    with pytest.raises(fw.StateError, match=r"n=.* is missing; without any built-in aggregate it cannot go on"):
        after.restore(old.snapshot(), migrate="removed aggregates")


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


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize(
    ("was", "now", "migrate"),
    [
        ("p50 n p90 values total", "p90 total n values p50", None),
        ("p50 n p90 values total", "total p90 n", "removed aggregates"),
        ("n p50 total", "p90 values n total middle p50", "added aggregates"),
        ("p50 n p90 values total", "middle total p90", {"added aggregates", "removed aggregates"}),
        ("often n top", "n top", "removed aggregates"),
        ("top often", "often top", None),
        ("totals counts n values", "values counts totals", "removed aggregates"),
    ],
)
def test_aggregates_that_share_values_go_on_in_any_order(kind, was, now, migrate):
    """Whichever of them came first, and whichever does now."""
    dice = random.Random(kind)
    before, chunks, at = run_on(kind, {name: SHARING[name] for name in was.split()}, dice)
    spec = WINDOWS[kind].aggregate(**{name: SHARING[name] for name in now.split()})
    after = spec.open(schema=NARROW)
    after.restore(chunks, migrate=migrate)
    left = [name for name in was.split() if name in now.split()]
    goes_on(before, after, at, dice, {name: name for name in left}, NARROW)
    again = spec.open(schema=NARROW)
    again.restore([after.snapshot()])
    assert again.snapshot() == after.snapshot()


def test_what_shares_values_from_before_has_them_all():
    window = WINDOWS["tumbling"]
    old = window.aggregate(p90=fw.Quantile("v", 0.9)).open(schema=NARROW)
    old.process(rows(random.Random(1), 5, NARROW))
    spec = window.aggregate(least=fw.Quantile("v", 0), p90=fw.Quantile("v", 0.9), other=fw.Quantile("v", 0, 0.1))
    new = spec.open(schema=NARROW)
    with pytest.raises(fw.StateError, match=r"aggregate least=.* is new"):
        new.restore([old.snapshot()])
    new.restore([old.snapshot()], migrate="added aggregates")
    main = new.advance_watermark(100).main
    expected = spec.run(rows(random.Random(1), 5, NARROW)).main
    assert sorted(main["least"].to_pylist()) == sorted(expected["least"].to_pylist())
    assert set(main["other"].to_pylist()) == {None}


class Named(fw.Quantile):
    """Shares its values, and its text does not say so."""


def test_values_that_go_on_nowhere_are_refused():
    window = WINDOWS["tumbling"]
    ones = {"p50": fw.Quantile("v", 0.5), "p90": Named("v", 0.9)}
    stream = window.aggregate(**ones).open(schema=NARROW)
    stream.process(rows(random.Random(1), 5, NARROW))
    other = window.aggregate(**dict(reversed(ones.items()))).open(schema=NARROW)
    with pytest.raises(fw.StateError, match=r"aggregate p90=.* shares its values with other aggregates than before; "):
        other.restore([stream.snapshot()])


def test_names_of_any_letters_can_be_renamed():
    base = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    before = base.aggregate(**{"p99.9 ms": fw.Max("v")}).open()
    before.process(pa.table({"k": [1], "ts": [1], "v": [7]}))
    after = base.aggregate(**{"p999-ms": fw.Max("v")}).open()
    after.restore([before.snapshot()], migrate="renamed p99.9 ms to p999-ms")
    assert after.advance_watermark(fw.MAX_TIMESTAMP).main["p999-ms"].to_pylist() == [7]
