"""Steps of a stream in any order, run through an operator: batches, watermarks, saves and restores."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])


def steps_with(elements: Any, watermarks: Any = st.integers(-80, 260)) -> Any:
    """Batches of such elements, watermarks and saves, in any order."""
    return st.lists(
        st.one_of(
            st.tuples(st.just("e"), elements),
            st.tuples(st.just("w"), watermarks),
            st.tuples(st.just("save"), st.booleans()),
        ),
        min_size=2,
        max_size=10,
    )


def run_steps(
    spec: fw.WindowSpec,
    steps: Any,
    *,
    general: bool,
    one_by_one: bool = False,
    coalesce: bool = False,
    end: int = 10_000,
) -> list[Any]:
    """Returns what each step has fired, in an order of its own. end: the last watermark."""
    bound = plan(spec, SCHEMA, general=general, coalesce=coalesce)
    stream = open_plan(bound)
    chunks: list[bytes] = []
    told = []

    def note(*results: fw.Result) -> None:
        rows = [tuple(row.items()) for result in results for row in result.main.to_pylist()]
        late = sorted(str(row) for result in results for row in result.late.to_pylist())
        told.append((sorted(map(str, rows)), late))

    for kind, what in [*steps, ("w", end)]:
        if kind == "e":
            rows = [dict(zip(["k", "ts", "v"], row, strict=True)) for row in what]
            parts = [[row] for row in rows] if one_by_one else [rows]
            note(*(stream.process(pa.Table.from_pylist(part, schema=SCHEMA)) for part in parts))
        elif kind == "w":
            note(stream.advance_watermark(what))
        elif what or not chunks:
            chunks = [stream.snapshot()]
        else:
            chunks.append(stream.delta())
            stream = open_plan(bound)
            stream.restore(chunks)
        stream._check_invariants()
    return told
