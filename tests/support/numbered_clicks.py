"""Batches of clicks that tell by their number what is in a store: for a writer that is killed."""

import pyarrow as pa

import fastwin as fw
from tests.support.clicks import FIRST, MINUTE, spec_of

__all__ = ["MODULES", "batch", "spec"]

MODULES = [f"m{i}" for i in range(50)]


def spec() -> fw.WindowSpec:
    return spec_of("1 hour", "3 minutes", pv=fw.Count())


def batch(number: int) -> pa.Table:
    """Every module gets ``number + 1`` clicks in pane ``number`` of the first hours."""
    start = pa.array([FIRST + number % 100 * 3 * MINUTE] * len(MODULES), pa.timestamp("ms", tz="UTC"))
    return pa.table({"module": MODULES, "window_start": start, "pv": [number + 1] * len(MODULES)})
