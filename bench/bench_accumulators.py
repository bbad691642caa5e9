"""Accumulators: fresh rows of an aggregate, values added to them in random order, ten a row, and their results."""

from collections.abc import Callable

import numpy as np

from bench.race import Contender, Entry, Near, Works
from bench.scale import Scale, amount
from fastwin.core.accumulators.basic import Accumulator, AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.accumulators.moments import Variance
from fastwin.core.accumulators.picks import Pick
from fastwin.core.sketches.hyperloglog import HyperLogLog

WORKS = Works()


def _same(found: np.ndarray) -> object:
    return found.tolist()


def _work(
    name: str, member: Callable[[], Accumulator], dtype: str, answer: Callable[[np.ndarray], object] = _same
) -> Callable:
    """Declares a work; the decorated function does it with numpy: ``(slots, values, rows) -> results``.

    answer: makes of the results what is compared.
    """

    def declare(by_numpy: Callable) -> Callable:
        def make(scale: Scale) -> Entry:
            random, rows = np.random.default_rng(9), scale.items // 10
            slots = random.integers(0, rows, scale.items).astype(np.int32)
            values = random.integers(-1_000, 1_000, scale.items).astype(dtype)
            counts_only = name == "count"
            columns = [] if counts_only else [(values, None)]
            ids, starts = np.arange(rows, dtype=np.int32), np.zeros(rows, dtype=np.int64)

            def run(accumulators: AccumulatorSet) -> np.ndarray:
                # As numpy does: room for all rows, then the values, then an array of results.
                found = accumulators.new_rows()
                every = found.fresh(ids, starts)
                accumulators.add_rows(found, slots, columns)
                return accumulators.results(found, every)[0][0]

            contenders = {
                "fastwin": Contender(run, setup=lambda: (AccumulatorSet([member()]),), answer=answer),
                "numpy": Contender(lambda: by_numpy(slots, values, rows), answer=answer),
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


def _rounded(found: np.ndarray) -> object:
    return np.nan_to_num(np.round(found, 6)).tolist()


@_work("variance", lambda: Variance("float64"), "float64", answer=_rounded)
def variance(slots, values, rows):
    n = np.bincount(slots, minlength=rows)
    total, squares = (np.bincount(slots, weights=weights, minlength=rows) for weights in (values, values * values))
    return np.divide(squares - total * total / np.maximum(n, 1), n - 1, out=np.zeros(rows), where=n > 1)


@_work("last", lambda: Pick("int64", time=0, last=True), "int64")
def last(slots, values, rows):
    """The values are the times as well."""
    latest = np.full(rows, np.iinfo(np.int64).min)
    np.maximum.at(latest, slots, values)
    return np.where(latest == np.iinfo(np.int64).min, 0, latest)


@_work("argmin", lambda: Pick("int64", time=0, order_dtype="int64", order=0), "int64")
def argmin(slots, values, rows):
    """The value at the least value, which is that value."""
    least = np.full(rows, np.iinfo(np.int64).max)
    np.minimum.at(least, slots, values)
    return np.where(least == np.iinfo(np.int64).max, 0, least)


def _in_all(found: np.ndarray) -> object:
    return Near(found.sum(), 0.01)


@_work("distinct", HyperLogLog, "int64", answer=_in_all)
def distinct(slots, values, rows):
    """Exactly, where HyperLogLog estimates."""
    pairs = np.unique(slots.astype(np.int64) << 32 | values + 1_000)
    return np.bincount(pairs >> 32, minlength=rows)


@WORKS.parametrize
def test_add(race, work, contender):
    race(work, contender)
