"""Every public aggregate, in both stores: a window of panes is what the spec itself gives, or it is refused."""

import inspect
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR, spec_of

PUBLIC = {
    kind
    for name in fw.__all__
    if inspect.isclass(kind := getattr(fw, name)) and issubclass(kind, fw.Aggregate) and kind is not fw.Aggregate
}
ARGUMENTS = {
    fw.Count: (),
    fw.ArgMax: ("v", "x"),
    fw.ArgMin: ("v", "x"),
    fw.BoolAnd: ("b",),
    fw.BoolOr: ("b",),
    fw.Corr: ("v", "x"),
    fw.Covar: ("v", "x"),
    fw.Histogram: ("x", [-1, 1]),
    fw.Largest: ("x", 2),
    fw.Quantile: ("x", 0.9),
    fw.Smallest: ("x", 2),
    fw.StringAgg: ("t", "|"),
    fw.TopK: ("t", 2),
}
REFUSED = {
    fw.FirstArrived: "do not tell which of their elements arrived first",
    fw.LastArrived: "do not tell which of their elements arrived first; First and Last go by the event time",
}


def rows(n: int = 300) -> pa.Table:
    dice = np.random.default_rng(5)
    return pa.table(
        {
            "module": pa.array([f"m{i}" for i in dice.integers(0, 3, n)]),
            "ts": pa.array(np.sort(dice.choice(3 * HOUR, n, replace=False)) + FIRST, pa.timestamp("ms", tz="UTC")),
            "v": pa.array(dice.integers(-50, 50, n), mask=dice.random(n) < 0.1),
            "x": dice.integers(-9, 9, n) / 4,  # sums of these are exact in any order
            "t": pa.array([f"t{i}" for i in dice.integers(0, 9, n)]),
            "b": pa.array(dice.random(n) < 0.7),
        }
    )


def made(kind: type) -> fw.Aggregate:
    return kind(*ARGUMENTS.get(kind, ("v",)))


def test_all_are_here():
    """A new aggregate comes by itself; this counts that none was missed by the names of the package."""
    assert {fw.Count, fw.Sum, fw.HyperLogLog, fw.Median, fw.CountDistinct, fw.FirstArrived} <= PUBLIC
    assert set(ARGUMENTS) | set(REFUSED) <= PUBLIC | {fw.NumpyAggregate}


@pytest.mark.parametrize("kind", sorted(PUBLIC - set(REFUSED) - {fw.NumpyAggregate}, key=lambda kind: kind.__name__))
def test_panes_give_what_the_spec_gives(url, kind):
    spec = spec_of("2 hours", "3 minutes", a=made(kind))
    table = rows()
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        end = store.watermark
        found = store.query().sort_by("module")
    expected = spec.run(table).main
    expected = expected.filter(pc.equal(expected["window_end"].cast(pa.int64()), end)).sort_by("module")
    assert found.num_rows == expected.num_rows == 3
    assert found["a"].type == expected["a"].type
    for mine, theirs in zip(found["a"].to_pylist(), expected["a"].to_pylist(), strict=True):
        close = isinstance(theirs, float)
        assert mine == (pytest.approx(theirs, rel=1e-9, abs=1e-12) if close else theirs) and mine is not None


@pytest.mark.parametrize("kind", sorted(REFUSED, key=lambda kind: kind.__name__))
def test_others_are_refused(url, kind):
    spec = spec_of("2 hours", "3 minutes", a=made(kind))
    for ask in (spec.panes, lambda: PaneStore.open(url, spec)):
        with pytest.raises(SpecError, match=REFUSED[kind]):
            ask()


def test_aggregates_of_users_are_refused(url):
    class Mine(fw.NumpyAggregate):
        state: ClassVar = {"n": "int64"}

    spec = spec_of("2 hours", "3 minutes", a=Mine("v"))
    for ask in (spec.panes, lambda: PaneStore.open(url, spec)):
        with pytest.raises(SpecError, match="readers of a store do not have its code; ArgMax, "):
            ask()
