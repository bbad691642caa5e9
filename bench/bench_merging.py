"""Accumulators: rows merged and read, beside numpy; aggregates of a table that are no plain sums, beside polars."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from bench.race import OURS, TWO, Contender, Entry, Near, Unavailable, Works, need
from bench.scale import Scale, amount
from fastwin import hyperloglog
from fastwin.core.accumulators.basic import Accumulator, AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.accumulators.moments import Variance
from fastwin.core.accumulators.picks import Pick
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import RowStore
from fastwin.core.sketches.hyperloglog import HyperLogLog, Sketch, redis_hash_int64

WORKS = Works()

ROW = np.int32
# The values of each row, whole numbers: their sums are exact in any order.
MEMBERS: dict[str, tuple[Callable[[], Accumulator], str]] = {
    "count": (Count, "int64"),
    "sum": (Sum, "int64"),
    "min": (Min, "int64"),
    "max": (lambda: Max("float64"), "float64"),
    "mean": (lambda: Mean("float64"), "float64"),
    "variance": (lambda: Variance("float64"), "float64"),
    "first": (lambda: Pick("int64", 0, 1), "int64"),
    "last": (lambda: Pick("int64", 0, 1, last=True), "int64"),
    "argmax": (lambda: Pick("int64", 0, 1, "int64", 0, largest=True), "int64"),
    "hyperloglog": (HyperLogLog, "int64"),
}


class Rows:
    """Rows of one accumulator, `copies` of each, fed with four values each."""

    def __init__(self, name: str, rows: int, copies: int) -> None:
        make, dtype = MEMBERS[name]
        self.members = AccumulatorSet([make()])
        keys = KeyTable("int64")
        self.panes = PaneTable(keys, self.members)
        n = rows * copies
        slots = self.panes.ensure(keys.intern_int64(np.arange(n)), np.zeros(n, dtype=np.int64))
        random = np.random.default_rng(7)
        self.values = random.integers(-1_000, 1_000, 4 * n).astype(dtype)
        self.times = random.permutation(4 * n)
        fed = redis_hash_int64(self.values) if name == "hyperloglog" else self.values
        self.members.add_rows(
            self.panes.rows, np.repeat(slots, 4), [(fed, None), (self.times, None)][: self.members.columns]
        )
        self.slots, self.rows, self.copies = slots, rows, copies

    def merge(self) -> "Rows":
        """Merges all copies into the first one."""
        for copy in range(1, self.copies):
            self.members.merge_rows(
                self.panes.rows, self.slots[: self.rows], self.panes.rows, self.slots[copy * self.rows :][: self.rows]
            )
        return self

    def results(self) -> np.ndarray:
        return self.members.results(self.panes.rows, self.slots[: self.rows])[0][0]


def _by_numpy(name: str, values: np.ndarray, times: np.ndarray) -> Any:
    """The results over values[row, :], as numpy has them."""
    match name:
        case "count":
            return np.full(len(values), values.shape[1])
        case "first" | "last":
            return values[np.arange(len(values)), (times.argmin if name == "first" else times.argmax)(axis=1)]
        case "argmax" | "max":
            return values.max(axis=1)
        case "variance":
            return values.var(axis=1, ddof=1)
        case _:
            return getattr(values, name)(axis=1)


def _rounded(values: Iterable) -> list:
    return [round(value, 6) if isinstance(value, float) else value for value in np.asarray(values).tolist()]


def _add(name: str) -> None:
    copies = 8

    def make(scale: Scale) -> Entry:
        rows = scale.items // 50
        whole = Rows(name, rows, copies)
        by_row = [
            a.reshape(copies, rows, 4).transpose(1, 0, 2).reshape(rows, -1).copy() for a in (whole.values, whole.times)
        ]
        contenders = {
            "fastwin": Contender(Rows.merge, lambda: (Rows(name, rows, copies),), lambda r: _rounded(r.results())),
            # numpy does not merge: it does it all over again from the values.
            "numpy": Contender(lambda: _by_numpy(name, *by_row), answer=_rounded),
        }
        return Entry(f"merge: {name}, {copies} into each of {amount(rows)} rows", rows * (copies - 1), contenders)

    WORKS.add(f"rows-merge-{name}", "merge", ("numpy",))(make)


for _name in MEMBERS:
    if _name != "hyperloglog":
        _add(_name)


@WORKS.add("rows-merge-hyperloglog", "merge", ("numpy",))
def merged_sketches(scale: Scale) -> Entry:
    """Sketches of so many values that they keep all their registers, as numpy's arrays do."""
    copies, rows, values = 8, max(scale.items // 20_000, 1), 4_096
    n = rows * copies
    members = AccumulatorSet([HyperLogLog(output="sketch")])
    hashes = redis_hash_int64(np.arange(n * values))

    def fresh() -> tuple[RowStore, np.ndarray]:
        store = members.new_rows()
        slots = store.fresh(np.arange(n, dtype=ROW), np.zeros(n, dtype=np.int64))
        members.add_rows(store, np.repeat(slots, values), [(hashes, None)])
        return store, slots

    def ours(store: RowStore, slots: np.ndarray) -> tuple[RowStore, np.ndarray]:
        for copy in range(1, copies):
            members.merge_rows(store, slots[:rows], store, slots[copy * rows :][:rows])
        return store, slots[:rows]

    def registers(store: RowStore, slots: np.ndarray) -> np.ndarray:
        ends, data, _ = members.results(store, slots)[0]
        cuts = itertools.pairwise(ends.tolist())
        return np.stack([hyperloglog.registers(data[start:end].tobytes()) for start, end in cuts])

    parts = registers(*fresh()).reshape(copies, rows, -1)
    contenders = {
        "fastwin": Contender(ours, fresh, lambda found: registers(*found).tolist()),
        "numpy": Contender(lambda: np.maximum.reduce(parts), answer=np.ndarray.tolist),
    }
    return Entry(f"merge: hyperloglog, {copies} into each of {rows} rows", rows * (copies - 1), contenders)


def _result(name: str) -> None:
    def make(scale: Scale) -> Entry:
        rows = scale.items // 10 // (10 if name == "hyperloglog" else 1)
        whole = Rows(name, rows, 1)
        values, times = whole.values.reshape(rows, 4), whole.times.reshape(rows, 4)
        contenders = {"fastwin": Contender(whole.results, answer=_rounded)}
        if name != "hyperloglog":
            contenders["numpy"] = Contender(lambda: _by_numpy(name, values, times), answer=_rounded)
        return Entry(f"result: {name}, {amount(rows)} rows", rows, contenders)

    WORKS.add(f"rows-result-{name}", "row", () if name == "hyperloglog" else ("numpy",))(make)


for _name in MEMBERS:
    _result(_name)


def _fed(
    aggregate: fw.Aggregate,
    expression: Callable[[Any], Any],
    label: str,
    compared: Callable[[list], object] = _rounded,
) -> Callable[[Scale], Entry]:
    """Returns a work: one tumbling window a key over a table of events, by the whole operator.

    expression: the same said to polars, whose module it is given. compared: makes of the results, in the order of the
    keys, what is compared.
    """

    def make(scale: Scale) -> Entry:
        random, n = np.random.default_rng(3), scale.items
        table = pa.table(
            {
                "k": random.integers(0, 1_000, n),
                "ts": random.permutation(n),
                "v": random.integers(0, 1_000_000, n),
                "x": random.random(n),
            }
        )
        spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(2**40)).aggregate(r=aggregate)

        def answer(result: fw.Result) -> object:
            return compared(result.main.sort_by("k")["r"].to_pylist())

        contenders: dict[str, Contender | Unavailable] = {
            name: Contender(lambda threads=threads: spec.run(table, threads=threads), answer=answer, threads=threads)
            for name, threads in ((OURS, 1), (TWO, 2))
        }
        contenders["polars"] = _polars(table, expression, compared)
        return Entry(f"{label}, {amount(n)} values, 1,000 keys", n, contenders)

    return make


def _polars(
    table: pa.Table, expression: Callable[[Any], Any], compared: Callable[[list], object]
) -> Contender | Unavailable:
    pl = need("polars")
    if isinstance(pl, Unavailable):
        return pl
    frame = pl.from_arrow(table)
    return Contender(
        lambda: frame.group_by("k").agg(expression(pl).alias("r")),
        answer=lambda found: compared(found.sort("k")["r"].to_list()),
        threads=pl.thread_pool_size(),
    )


def _add_table(name: str, make: Callable[[Scale], Entry]) -> None:
    WORKS.add(f"table-{name}", "value", (TWO, "polars"))(make)


_add_table("variance", _fed(fw.Variance("x"), lambda pl: pl.col("x").var(), "table: variance"))
_add_table("last", _fed(fw.Last("v"), lambda pl: pl.col("v").get(pl.col("ts").arg_max()), "table: last by time"))
_add_table(
    "argmax",
    _fed(fw.ArgMax("v", by="x"), lambda pl: pl.col("v").get(pl.col("x").arg_max()), "table: value at the extreme"),
)
# polars as its eager frames answer it, with 16,384 registers and an error of 0.6 % here, as ours is; its lazy frames
# answer sooner, with an error of 6 %. Two such sketches of a key may be some errors apart.
_add_table(
    "distinct",
    _fed(
        fw.HyperLogLog("v"),
        lambda pl: pl.col("v").approx_n_unique(),
        "table: distinct, about",
        lambda found: Near(found, 0.06),
    ),
)
_add_table("count-distinct", _fed(fw.CountDistinct("v"), lambda pl: pl.col("v").n_unique(), "table: distinct, exact"))
# The value at the same place: polars' own is that place's, ours within 1 % of it.
_add_table(
    "quantile",
    _fed(
        fw.Quantile("x", 0.99),
        lambda pl: pl.col("x").quantile(0.99, interpolation="lower"),
        "table: quantile, to 1 % (polars: exact)",
        lambda found: Near(found, 0.01),
    ),
)
# Which of values that are equally frequent are among the ten is left open by polars: their counts are compared.
_add_table(
    "top",
    _fed(
        fw.TopK(pc.field("v") / 1_000, 10),
        lambda pl: (pl.col("v") // 1_000).value_counts(sort=True).head(10),
        "table: ten most frequent",
        lambda found: [[one["count"] for one in some] for some in found],
    ),
)


@WORKS.add("sketch", "value", ("numpy",))
def sketch(scale: Scale) -> Entry:
    """One dense sketch, fed with hashes; numpy raises the same registers."""
    hashes = redis_hash_int64(np.arange(scale.items, dtype=np.int64))

    def ours(found: Sketch) -> Sketch:
        found.add_hashes(hashes)
        return found

    def theirs() -> np.ndarray:
        bits = hashes.view(np.uint64)
        rest = (bits >> np.uint64(14)) | np.uint64(1 << 50)
        lowest = rest & (~rest + np.uint64(1))
        registers = np.zeros(16_384, dtype=np.uint8)
        np.maximum.at(registers, (bits & np.uint64(16_383)).astype(np.int64), (np.log2(lowest) + 1).astype(np.uint8))
        return registers

    contenders = {
        "fastwin": Contender(ours, lambda: (Sketch(),), lambda found: found.registers().tolist()),
        "numpy": Contender(theirs, answer=np.ndarray.tolist),
    }
    return Entry(f"one sketch, {amount(scale.items)} hashes", scale.items, contenders)


@WORKS.parametrize
def test_merging(race, work, contender):
    race(work, contender)
