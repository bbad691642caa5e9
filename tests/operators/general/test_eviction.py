"""Built-in evictors and aggregates of what they leave: as lists of rows in Python have it, for each type of column."""

from collections import defaultdict
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw

COUNTED = fw.key_by("k").event_time("ts", unit="ms").window(fw.GlobalWindows.create())
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_binary(), pa.decimal128(9, 2)),
    *(pa.date32(), pa.timestamp("ns", "UTC"), pa.duration("us"), pa.dictionary(pa.int8(), pa.string())),
]


def values_of(kind: pa.DataType, rows: int, nulls: bool) -> pa.Array:
    """Returns values of a type that differ often, some of them null."""
    dice = np.random.default_rng(rows)
    numbers = dice.integers(0, 100, rows)
    if pa.types.is_dictionary(kind):
        found = pa.array([str(number) for number in numbers]).dictionary_encode().cast(kind)
    elif pa.types.is_decimal(kind):
        found = pa.array([Decimal(int(number)) / 4 for number in numbers], kind)
    elif pa.types.is_large_binary(kind):
        found = pa.array([b"%d\xff" % number for number in numbers], kind)
    elif pa.types.is_float16(kind):
        found = pa.array(numbers.astype(np.float16))
    elif pa.types.is_boolean(kind):
        found = pa.array(numbers % 2 == 0)
    elif pa.types.is_date(kind):
        found = pa.array(numbers, pa.int32()).cast(kind)
    else:
        found = pa.array(numbers, pa.int64()).cast(kind)
    if not nulls:
        return found
    mask = pa.array(dice.random(rows) < 0.2)
    return pa.compute.if_else(mask, pa.scalar(None, kind), found)


class Told(fw.ProcessWindowFunction):
    """Tells how many rows it is handed, and what they have."""

    def process(self, key, ctx, rows):
        yield {"n": len(rows), "s": sum(row.v for row in rows)}


class Same(fw.ProcessWindowFunction):
    """Hands the results of aggregates on."""

    def process(self, key, ctx, results):
        for row in results:
            yield {"s": row.s, "n": row.n}


class AskedCount(fw.CountEvictor):
    """As its base, but asked in Python."""


class AskedTime(fw.TimeEvictor):
    """As its base, but asked in Python."""


def in_pieces(spec: fw.WindowSpec, table: pa.Table, piece: int) -> list[dict]:
    """Returns what fires where each call has so many rows, restored in the middle."""
    stream = spec.open(schema=table.schema)
    found = []
    for at in range(0, len(table), piece):
        found += stream.process(table[at : at + piece]).main.to_pylist()
        if at == len(table) // piece // 2 * piece:
            state, stream = stream.snapshot(), spec.open(schema=table.schema)
            stream.restore([state])
    return found


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_of_column_comes_to_its_aggregates(kind, nulls):
    rows, size = 90, 7
    table = pa.table(
        {"k": np.arange(rows) % 2, "ts": np.arange(rows), "v": values_of(kind, rows, nulls), "w": np.arange(rows) / 4}
    )
    spec = COUNTED.trigger(fw.CountTrigger.of(3)).evictor(fw.CountEvictor.of(size))
    asked = {"n": fw.Count("v"), "all": fw.Collect("v"), "w": fw.Sum("w")}
    expected, windows, since = [], defaultdict(list), defaultdict(int)
    for row in table.to_pylist():
        window = windows[row["k"]]
        window.append(row)
        since[row["k"]] += 1
        if since[row["k"]] == 3:
            since[row["k"]] = 0
            del window[:-size]
            there = [one["v"] for one in window if one["v"] is not None]
            expected.append((row["k"], len(there), there, sum(one["w"] for one in window)))
    for piece in (rows, 1, 8):
        found = in_pieces(spec.aggregate(**asked), table, piece)
        assert [(row["k"], row["n"], row["all"], row["w"]) for row in found] == expected


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("most", [0, 1, 5, 40, 2**63 - 1])
@pytest.mark.parametrize(("evictor", "asked"), [(fw.CountEvictor, AskedCount), (fw.TimeEvictor, AskedTime)])
def test_built_in_evictors_leave_what_they_say_in_python(evictor, asked, most, after):
    dice = np.random.default_rng(most % 97)
    times = np.concatenate([dice.integers(-60, 60, 300), [10**13, -(10**13), 5]])
    table = pa.table({"k": dice.integers(0, 3, 303), "ts": times, "v": dice.random(303)})
    spec = COUNTED.trigger(fw.CountTrigger.of(4))
    for ending in ("aggregate", "process"):
        results = []
        for kind in (evictor, asked):
            evicting = spec.evictor(kind(most, do_evict_after=after))
            if ending == "aggregate":
                ended = evicting.aggregate(n=fw.Count(), s=fw.Sum("v"), times=fw.Collect("ts"))
            else:
                ended = evicting.process(Told(), output="n bigint, s double")
            results.append([in_pieces(ended, table, piece) for piece in (303, 10)])
        assert results[0] == results[1]


def test_a_time_beyond_64_bits_leaves_all():
    table = pa.table({"k": [1, 1], "ts": [-(10**13), 10**13], "v": [1, 2]})
    spec = COUNTED.trigger(fw.CountTrigger.of(2)).evictor(fw.TimeEvictor(2**70))
    assert spec.aggregate(s=fw.Sum("v")).run(table).main["s"].to_pylist() == [3]


@pytest.mark.parametrize("size", [1, 900, 70_000, 140_000])
def test_many_elements_are_noted_and_few(size):
    # 65,536 are noted at once: firings that end just there, that are longer, and that are many.
    rows = 150_000
    table = pa.table({"k": np.zeros(rows, dtype=np.int64), "ts": np.arange(rows), "v": np.arange(rows)})
    step = max(size // 4, 500)
    spec = COUNTED.trigger(fw.CountTrigger.of(step)).evictor(fw.CountEvictor.of(size))
    found = spec.aggregate(s=fw.Sum("v"), n=fw.Count(), texts=fw.CountDistinct("v")).run(table).main
    ends = range(step, rows + 1, step)
    assert found["n"].to_pylist() == found["texts"].to_pylist() == [min(size, end) for end in ends]
    assert found["s"].to_pylist() == [sum(range(max(end - size, 0), end)) for end in ends]


def test_windows_of_which_nothing_is_left_have_results_of_nothing():
    table = pa.table({"k": [1, 2, 1], "ts": [0, 1, 2], "v": [1.0, 2.0, 3.0]})
    spec = COUNTED.trigger(fw.CountTrigger.of(1)).evictor(fw.CountEvictor.of(0))
    found = spec.aggregate(s=fw.Sum("v"), n=fw.Count()).run(table).main
    assert (found["s"].to_pylist(), found["n"].to_pylist()) == ([None] * 3, [0] * 3)


def test_functions_behind_aggregates_see_each_firing():
    rows = 40
    table = pa.table({"k": np.arange(rows) % 3, "ts": np.arange(rows), "v": np.arange(rows)})
    aggregated = COUNTED.trigger(fw.CountTrigger.of(2)).evictor(fw.CountEvictor.of(3))
    plain = aggregated.aggregate(s=fw.Sum("v"), n=fw.Count())
    behind = aggregated.aggregate(s=fw.Sum("v"), n=fw.Count(), then=Same(), output="s bigint, n bigint")
    wanted = [(row["k"], row["s"], row["n"]) for row in plain.run(table).main.to_pylist()]
    assert [(row["k"], row["s"], row["n"]) for row in behind.run(table).main.to_pylist()] == wanted
