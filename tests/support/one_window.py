"""Aggregates over one window that holds all rows, on every operator."""

import pyarrow as pa

import fastwin as fw

ONE = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000))
OPERATORS = {
    "aligned": lambda spec: spec,
    "sliding": lambda spec: spec.window(fw.SlidingEventTimeWindows.of(1_000, 500)),
    "session": lambda spec: spec.window(fw.EventTimeSessionWindows.with_gap(1_000)),
    "general": lambda spec: spec.with_pane_info(),
    "evicting": lambda spec: spec.evictor(fw.CountEvictor.of(1_000)),
}


def run(table: pa.Table, operator: str = "aligned", **aggregates: fw.Aggregate) -> dict:
    """The results of the window that holds all rows."""
    base = fw.key_by().event_time("ts")
    spec = OPERATORS[operator](base if operator in ("sliding", "session") else ONE)
    main = spec.aggregate(**aggregates).run(table).main
    assert main.num_rows == (2 if operator == "sliding" else 1)
    return {name: main[name][-1].as_py() for name in aggregates}
