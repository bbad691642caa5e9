"""Rows as user code sees them, over every kind of column and when they outlive their batch."""

import gc

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw

N = 300
RNG = np.random.default_rng(5)
NULLS = RNG.random(N) < 0.3


def columns(begin: int) -> pa.Table:
    """Numbers of 64 bits with and without nulls, and others, each cut so that its buffers do not begin with it."""
    whole = RNG.integers(-(2**62), 2**62, N)
    table = pa.table(
        {
            "key": pa.array(np.zeros(N, np.int64)),
            "ts": pa.array(np.arange(N), pa.timestamp("ms")),
            "whole": pa.array(whole),
            "gaps": pa.array(whole, mask=NULLS),
            "real": pa.array(RNG.random(N)),
            "real_gaps": pa.array(RNG.random(N), mask=NULLS),
            "short": pa.array(whole % 100, pa.int32(), mask=NULLS),
            "text": pa.array([str(i) for i in range(N)]),
        }
    )
    return table.slice(begin)


def values(row):
    return tuple(row)


@pytest.mark.parametrize("begin", [0, 3, 11])
def test_every_column_as_arrow_tells_it(begin):
    """In the window's own call, when the watermark comes later, and when most rows of the batch have gone."""
    table = columns(begin)
    kept = []

    class Seen(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            kept.extend(elements)
            yield (len(elements),)

    spec = (
        fw.key_by("key")
        .event_time("ts")
        .window(fw.TumblingEventTimeWindows.of("1 ms"))
        .process(Seen(), output="n long")
    )
    stream = spec.open()
    stream.process(table)
    stream.advance_watermark(fw.MAX_TIMESTAMP)
    told = [tuple(row.values()) for row in table.to_pylist()]
    assert [values(row) for row in kept] == told
    assert all(
        type(a) is type(b) for row, other in zip(kept, told, strict=True) for a, b in zip(row, other, strict=True)
    )
    del kept[10:]
    gc.collect()
    stream.process(table)  # ends the call that they came with; all are late
    assert [values(row) for row in kept] == told[:10]
