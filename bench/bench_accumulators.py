"""Accumulators: values added to the rows of an aggregate, a tenth as many rows as values, in random order."""

from collections.abc import Callable

import numpy as np

from bench.race import Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.core.accumulators import Accumulator, AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.keys import KeyTable
from fastwin.core.panes import PaneTable

WORKS = Works()


def _fresh(member: Accumulator, rows: int) -> tuple[AccumulatorSet, PaneTable, np.ndarray]:
    keys = KeyTable("int64")
    accumulators = AccumulatorSet([member])
    panes = PaneTable(keys, accumulators)
    slots = panes.ensure(keys.intern_int64(np.arange(rows)), np.zeros(rows, dtype=np.int64))
    return accumulators, panes, slots


def _work(name: str, member: Callable[[], Accumulator], dtype: str) -> Callable:
    """Declares a work; the decorated function does it with numpy: ``(slots, values, rows) -> results``."""

    def declare(by_numpy: Callable) -> Callable:
        def make(scale: Scale) -> Entry:
            random, rows = np.random.default_rng(9), scale.items // 10
            slots = random.integers(0, rows, scale.items).astype(np.int32)
            values = random.integers(-1_000, 1_000, scale.items).astype(dtype)
            counts_only = name == "count"
            columns = [] if counts_only else [(values, None)]

            def run(accumulators, panes, _):
                accumulators.add_rows(panes.rows, slots, columns)
                return accumulators, panes

            def results(found):
                accumulators, panes = found
                return accumulators.results(panes.rows, np.arange(rows, dtype=np.int32))[0][0].tolist()

            contenders = {
                "fastwin": Contender(run, setup=lambda: _fresh(member(), rows), answer=results),
                "numpy": Contender(lambda: by_numpy(slots, values, rows), answer=np.ndarray.tolist),
            }
            kind = "" if counts_only else f" {dtype}"
            return Entry(f"add: {name}{kind}, {amount(rows)} rows", scale.items, contenders)

        WORKS.add(f"add-{name}-{dtype}" if name != "count" else "add-count", "value", ("numpy",))(make)
        return by_numpy

    return declare


@_work("count", lambda: Count(column=-1), "int64")
def count(slots, values, rows):
    return np.bincount(slots, minlength=rows)


@_work("sum", Sum, "int64")
def sum_ints(slots, values, rows):
    total = np.zeros(rows, dtype=np.int64)
    np.add.at(total, slots, values)
    return total


@_work("sum", lambda: Sum("float64"), "float64")
def sum_floats(slots, values, rows):
    return np.bincount(slots, weights=values, minlength=rows)


@_work("min", Min, "int64")
def smallest(slots, values, rows):
    least = np.full(rows, np.iinfo(np.int64).max)
    np.minimum.at(least, slots, values)
    return least


@_work("max", lambda: Max("float64"), "float64")
def largest(slots, values, rows):
    most = np.full(rows, -np.inf)
    np.maximum.at(most, slots, values)
    return most


@_work("mean", lambda: Mean("float64"), "float64")
def mean(slots, values, rows):
    n = np.bincount(slots, minlength=rows)
    return np.divide(np.bincount(slots, weights=values, minlength=rows), n, out=np.zeros(rows), where=n > 0)


@WORKS.parametrize
def test_add(race, work, contender):
    race(work, contender)
