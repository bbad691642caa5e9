"""Accumulators: rows merged and read, beside numpy; aggregates of a table that are no plain sums, beside polars."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from bench.race import OURS, TWO, Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin import hyperloglog
from fastwin.core.accumulators.basic import Accumulator, AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.accumulators.moments import Variance
from fastwin.core.accumulators.picks import Pick
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
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
        case "hyperloglog":
            return None
        case _:
            return getattr(values, name)(axis=1)


def _rounded(values: Iterable) -> list:
    return [round(value, 6) if isinstance(value, float) else value for value in np.asarray(values).tolist()]


def _add(name: str) -> None:
    copies = 8

    def make(scale: Scale) -> Entry:
        rows = scale.items // 50 // (20 if name == "hyperloglog" else 1)
        whole = Rows(name, rows, copies)
        by_row = [
            a.reshape(copies, rows, 4).transpose(1, 0, 2).reshape(rows, -1).copy() for a in (whole.values, whole.times)
        ]
        contenders = {
            "fastwin": Contender(Rows.merge, lambda: (Rows(name, rows, copies),), lambda r: _rounded(r.results()))
        }
        if name == "hyperloglog":
            some = by_row[0][: max(rows // 20, 1)].reshape(-1, copies, 4)
            parts = [[hyperloglog.registers(hyperloglog.sketch(pa.array(four))) for four in row] for row in some]
            contenders["numpy"] = Contender(
                lambda: [np.maximum.reduce(row) for row in parts], units=len(parts) * (copies - 1)
            )
        else:
            # numpy does not merge: it does it all over again from the values.
            contenders["numpy"] = Contender(lambda: _by_numpy(name, *by_row), answer=_rounded)
        return Entry(f"merge: {name}, {copies} into each of {amount(rows)} rows", rows * (copies - 1), contenders)

    WORKS.add(f"rows-merge-{name}", "merge", ("numpy",))(make)


for _name in MEMBERS:
    _add(_name)


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


def _fed(aggregate: fw.Aggregate, others: Callable[[pa.Table], dict[str, Contender]], label: str) -> Callable:
    """A work: one tumbling window a key over a table of events, by the whole operator."""

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

        def answer(result: fw.Result) -> list:
            return _rounded(result.main.sort_by("k")["r"].to_pylist())

        ours = {
            name: Contender(lambda threads=threads: spec.run(table, threads=threads), answer=answer, threads=threads)
            for name, threads in ((OURS, 1), (TWO, 2))
        }
        return Entry(f"{label}, {amount(n)} values, 1,000 keys", n, {**ours, **others(table)})

    return make


def _polars(expression: Callable[[Any], Any]) -> Callable[[pa.Table], dict[str, Contender]]:
    def contenders(table: pa.Table) -> dict[str, Contender]:
        import polars as pl

        frame = pl.from_arrow(table)
        run = lambda: frame.group_by("k").agg(expression(pl).alias("r"))  # noqa: E731
        return {"polars": Contender(run, answer=lambda found: _rounded(found.sort("k")["r"].to_list()), threads=2)}

    return contenders


WORKS.add("table-variance", "value", (TWO, "polars"))(
    _fed(fw.Variance("x"), _polars(lambda pl: pl.col("x").var()), "table: variance")
)
WORKS.add("table-last", "value", (TWO, "polars"))(
    _fed(fw.Last("v"), _polars(lambda pl: pl.col("v").get(pl.col("ts").arg_max())), "table: last by time")
)
WORKS.add("table-argmax", "value", (TWO, "polars"))(
    _fed(
        fw.ArgMax("v", by="x"),
        _polars(lambda pl: pl.col("v").get(pl.col("x").arg_max())),
        "table: value at the extreme",
    )
)


def _near(aggregate: fw.Aggregate, expression: Callable[[Any], Any], label: str) -> Callable[[Scale], Entry]:
    """The same where the results are near those of polars, or of equal rank, and not equal."""

    def make(scale: Scale) -> Entry:
        entry = _fed(aggregate, _polars(expression), label)(scale)
        contenders = {name: Contender(one.run, threads=one.threads) for name, one in entry.contenders.items()}
        return Entry(entry.label, entry.units, contenders)

    return make


# polars as its eager frames answer it, with 16,384 registers and an error of 0.6 % here, as ours is; its lazy frames
# answer sooner, with an error of 6 %.
WORKS.add("table-distinct", "value", (TWO, "polars"))(
    _near(fw.HyperLogLog("v"), lambda pl: pl.col("v").approx_n_unique(), "table: distinct, about")
)
WORKS.add("table-count-distinct", "value", (TWO, "polars"))(
    _fed(fw.CountDistinct("v"), _polars(lambda pl: pl.col("v").n_unique()), "table: distinct, exact")
)
WORKS.add("table-quantile", "value", (TWO, "polars"))(
    _near(fw.Quantile("x", 0.99), lambda pl: pl.col("x").quantile(0.99), "table: quantile, to 1 % (polars: exact)")
)
WORKS.add("table-top", "value", (TWO, "polars"))(
    _near(
        fw.TopK(pc.field("v") / 1_000, 10),
        lambda pl: (pl.col("v") // 1_000).value_counts(sort=True).head(10),
        "table: ten most frequent",
    )
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
