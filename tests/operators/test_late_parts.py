"""Late elements that each fire are taken part by part: a part costs what its own elements cost, however many others come."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators import batch
from fastwin.operators.aligned import operator as aligned
from fastwin.operators.session import operator as session

WINDOWS: dict[str, Any] = {
    "tumbling": fw.TumblingEventTimeWindows.of(50),
    "sliding": fw.SlidingEventTimeWindows.of(60, 20),
    "session": fw.EventTimeSessionWindows.with_gap(3),
}
PARTS = {"tumbling": (aligned, ["_FLUSH_ROWS"]), "sliding": (aligned, ["_FLUSH_ROWS"])}
PARTS["session"] = (session, ["_FLUSH_ROWS", "FIRST_COPIES", "_MOST_LATE"])


def late_rows(n: int) -> pa.Table:
    dice = np.random.default_rng(5)
    names = pa.array([f"name {i}" for i in range(n)])
    return pa.table({
        "k": pa.DictionaryArray.from_arrays(pa.array(dice.integers(0, n, n), pa.int32()), names),
        "t": dice.integers(0, 900, n),
        "v": pa.array(dice.integers(0, 99, n), mask=dice.random(n) < 0.1),
        "text": pa.array(["ab" * int(i) for i in dice.integers(0, 5, n)], mask=dice.random(n) < 0.1),
    })  # fmt: skip


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_part_looks_at_its_own_elements(name: str, owned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n, table, copied = 600, late_rows(600), []
    spec = fw.key_by("k").event_time("t", unit="ms").window(WINDOWS[name]).allowed_lateness(2_000)
    texts: dict[str, Any] = {"all": fw.Collect("text"), "last": fw.Last("text")} if owned else {}
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("v"), first=fw.First("v"), **texts)

    def run() -> pa.Table:
        stream = spec.open(schema=table.schema)
        stream.process(table.slice(0, 100))
        stream.advance_watermark(1_000)
        return pa.concat_tables([stream.process(table).main, stream.advance_watermark(1_100).main])

    expected = run()
    assert expected.num_rows >= n
    module, limits = PARTS[name]
    for limit in limits:
        monkeypatch.setattr(module, limit, 8)
    select = batch.Batch.select
    monkeypatch.setattr(batch.Batch, "select", lambda on, rows: copied.append(len(on)) or select(on, rows))
    assert run().to_pylist() == expected.to_pylist()
    assert sum(copied) <= 5 * n, f"{sum(copied)} elements were looked at, to take parts of {n}"
