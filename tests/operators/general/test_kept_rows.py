"""Windows that stay open keep the rows that they need, and not the batches that these came in."""

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

SCHEMA = pa.schema(
    [("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("text", pa.string()), ("x", pa.float64())]
)
ROWS, BATCHES = 1_000, 15
BASE = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000))


class Latest(fw.AggregateFunction):
    """Its accumulator is the newest row."""

    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value

    def get_result(self, accumulator):
        return accumulator.v


class LatestInside(Latest):
    """Its accumulator holds the newest row somewhere inside."""

    def create_accumulator(self):
        return {"row": None}

    def add(self, value, accumulator):
        accumulator["row"] = (value,)
        return accumulator

    def get_result(self, accumulator):
        return accumulator["row"][0].v


class Remembering(fw.Trigger):
    """Keeps the newest row in state."""

    def __init__(self, descriptor: Any, method: str) -> None:
        self.descriptor, self.method = descriptor, method

    def on_element(self, element, timestamp, window, ctx):
        state = ctx.get_partitioned_state(self.descriptor)
        if self.method == "put":
            state.put("row", element)
        elif self.method == "update_list":
            state.update([element])
        else:
            getattr(state, self.method)(element)
        return fw.TriggerResult.CONTINUE


def _newer(a: Any, b: Any) -> Any:
    return b


SPECS = {
    "reduce": BASE.reduce(_newer),
    "aggregate": BASE.aggregate(Latest(), output="v bigint"),
    "aggregate, inside": BASE.aggregate(LatestInside(), output="v bigint"),
    "delta trigger": BASE.trigger(fw.DeltaTrigger.of(-1, lambda a, b: b.v)).aggregate(n=fw.Count()),
    "value state": BASE.trigger(Remembering(fw.ValueStateDescriptor("x"), "update")).aggregate(n=fw.Count()),
    "list state": BASE.trigger(Remembering(fw.ListStateDescriptor("x"), "update_list")).aggregate(n=fw.Count()),
    "map state": BASE.trigger(Remembering(fw.MapStateDescriptor("x"), "put")).aggregate(n=fw.Count()),
    "reducing state": BASE.trigger(Remembering(fw.ReducingStateDescriptor("x", _newer), "add")).aggregate(n=fw.Count()),
    "evictor": BASE.trigger(fw.CountTrigger.of(1)).evictor(fw.CountEvictor.of(1, True)).aggregate(s=fw.Sum("v")),
}


def _batch(n: int) -> pa.RecordBatch:
    """Rows of one busy key, and two of a key that comes in no other batch."""
    keys = [0] * (ROWS - 2) + [n + 1] * 2
    texts = [f"{n} {i} {'x' * 100}" for i in range(ROWS)]
    columns = [keys, [5] * ROWS, range(ROWS), texts, [float(i) for i in range(ROWS)]]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@pytest.mark.parametrize("case", SPECS)
def test_open_windows_do_not_keep_their_batches(case: str) -> None:
    stream = SPECS[case].open(schema=SCHEMA)
    stream.process(_batch(-1))  # what is allocated once, is
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for n in range(BATCHES):
            stream.process(_batch(n))
        python = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    size = _batch(0).nbytes
    assert pa.total_allocated_bytes() - arrow < 3 * size
    assert python < 3 * size
    assert stream.metrics.open_windows == BATCHES + 1


def test_a_kept_row_stays_what_it_was() -> None:
    stream = SPECS["reduce"].open(schema=SCHEMA)
    for n in range(3):
        stream.process(_batch(n))
    rows = stream.advance_watermark(fw.MAX_TIMESTAMP).main.sort_by("k").to_pylist()
    assert [row["text"].split()[:2] for row in rows] == [["2", "997"], ["0", "999"], ["1", "999"], ["2", "999"]]


class Texts(fw.ProcessWindowFunction):
    """Gives the first words of its elements."""

    def process(self, key, context, elements):
        yield " ".join(element.text.partition(" x")[0] for element in elements)


def _two_windows(n: int, time: int = 5) -> pa.RecordBatch:
    """As many rows, but for two in a later window."""
    batch = _batch(n)
    times = pa.array([time] * (ROWS - 2) + [5_000] * 2)
    return batch.set_column(1, SCHEMA.field("ts"), times)


def test_of_many_rows_that_were_kept_a_few_stay_without_the_others() -> None:
    stream = BASE.process(Texts(), output="texts string").open(schema=SCHEMA)
    stream.process(_two_windows(-1))
    stream.advance_watermark(999)
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for n in range(BATCHES):
            stream.process(_two_windows(n, 1_005))
        assert stream.advance_watermark(1_999).main.num_rows == 1
        stream.process(pa.RecordBatch.from_pylist([], SCHEMA))
        python = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    size = _batch(0).nbytes
    assert pa.total_allocated_bytes() - arrow < 3 * size
    assert python < 3 * size
    rows = stream.advance_watermark(fw.MAX_TIMESTAMP).main.sort_by("k").to_pylist()
    assert [row["texts"] for row in rows] == [f"{n} 998 {n} 999" for n in range(-1, BATCHES)]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1_000])
def test_rows_in_several_windows_that_go_one_after_another(rows: int) -> None:
    spec = fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(400, 100))
    table = pa.table({"k": [0] * rows, "ts": range(rows), "text": [f"{i} x" for i in range(rows)]})
    stream = spec.process(Texts(), output="texts string").open(schema=table.schema)
    stream.process(table)
    fired = [row for at in range(0, 1_500, 50) for row in stream.advance_watermark(at).main.to_pylist()]
    assert len(fired) == (rows + 99) // 100 + 3
    for row in fired:
        start = round(row["window_start"].timestamp() * 1_000)
        assert row["texts"] == " ".join(str(i) for i in range(max(start, 0), min(start + 400, rows)))


def test_a_row_that_is_kept_twice_is_one_value() -> None:
    kept = []

    class Keeping(Latest):
        def add(self, value, accumulator):
            kept.append(value)
            return accumulator or value

    stream = BASE.aggregate(Keeping(), output="v bigint").open(schema=SCHEMA)
    for n in range(2):
        stream.process(_batch(n))
    assert [row.v for row in kept] == [*range(ROWS)] * 2
    del kept[1:]
    stream.process(_batch(2).slice(0, 0))
    assert (kept[0].k, kept[0].text.split()[:2], kept[0].x) == (0, ["0", "0"], 0.0)
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["v"].to_pylist()[0] == 0
