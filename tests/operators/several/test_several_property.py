"""Several windows over one stream: each gives what its own spec gives, through lateness, saves and partial results."""

from types import MappingProxyType
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.refresh import Refresh

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
AGGREGATES = {"n": fw.Count(), "s": fw.Sum("v"), "last": fw.Last("v"), "text": fw.Max("k"), "mean": fw.Mean("v")}

durations = st.sampled_from([4, 8, 12, 24])
windows = st.one_of(
    st.builds(lambda size, offset: fw.TumblingEventTimeWindows.of(size, offset % size), durations, st.integers(0, 8)),
    st.builds(fw.TumblingEventTimeWindows.of, durations),
    st.builds(
        lambda size, slide, offset: fw.SlidingEventTimeWindows.of(size + slide, slide, offset % slide),
        st.integers(0, 40), durations, st.sampled_from([0, 0, 4]),
    ),
    st.builds(lambda step, n: fw.CumulativeEventTimeWindows.of(step * n, step), durations, st.integers(1, 4)),
)  # fmt: skip
named = st.lists(windows, min_size=1, max_size=4).map(lambda found: {f"w{i}": one for i, one in enumerate(found)})
elements = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-60, 120)), min_size=1, max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("e"), elements),
        st.tuples(st.just("w"), st.integers(-80, 200)),
        st.tuples(st.sampled_from(["snapshot", "delta", "refresh"]), st.none()),
    ),
    min_size=2,
    max_size=10,
)


def spec_of(lateness: int, hand_out: bool = True) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("ts").allowed_lateness(lateness)
    return spec.side_output_late_data() if hand_out else spec


def told(result: fw.Result) -> tuple[list[str], set[int]]:
    rows = sorted(str(sorted(row.items())) for row in result.main.to_pylist())
    return rows, {row["v"] for row in result.late.to_pylist()}


def run(spec: fw.WindowSpec, steps: Any, *, coalesce: bool, partials: bool = False) -> list[Any]:
    """Returns what each step has fired, and which elements were late. partials: a feeder takes the elements first."""
    bound = plan(spec, SCHEMA, coalesce=coalesce)
    stream, chunks, number, found = open_replica(bound), [], 0, []
    for turn, (kind, what) in enumerate([*steps, ("w", 10_000)]):
        if kind == "e":
            rows = [{"k": key, "ts": time, "v": number + i} for i, (key, time) in enumerate(what)]
            number += len(rows)
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            feeder = bound.new_feeder() if partials else None
            if feeder is None:
                found.append(told(stream.process(table)))
            else:
                (batch,) = table.to_batches()
                feeder.add(bound.batch(batch, bound.times(batch)))
                found.append(told(stream.merge([part.chunk for part in feeder.partials()])))
        elif kind == "w":
            found.append(told(stream.advance_watermark(what)))
        elif kind == "snapshot" or not chunks:
            chunks = [stream.snapshot()]
        else:
            refresh = Refresh(4, (0, 1, 2, 3), turn % 4) if kind == "refresh" else None
            chunks.append(stream.delta(refresh))
            stream = open_replica(bound)
            stream.restore(chunks)
        stream._check_invariants()
    return found


def expected(named: Any, spec: fw.WindowSpec, steps: Any, filling: Any = MappingProxyType({}), **how: Any) -> list[Any]:
    own = [run(spec.window(one, **filling).aggregate(**AGGREGATES), steps, **how) for one in named.values()]
    return [
        (sorted(row for name, found in zip(named, at, strict=True) for row in _with_window(found[0], name)),
         set.intersection(*(late for _, late in at)))
        for at in zip(*own, strict=True)
    ]  # fmt: skip


def _with_window(rows: list[str], name: str) -> list[str]:
    return [row.replace(", ('window_end'", f", ('window', '{name}'), ('window_end'") for row in rows]


@given(named=named, lateness=st.sampled_from([0, 1, 10, 50]), steps=steps, coalesce=st.booleans())
def test_each_equals_its_own_spec(named: Any, lateness: int, steps: Any, coalesce: bool) -> None:
    spec = spec_of(lateness)
    mine = run(spec.windows(**named).aggregate(**AGGREGATES), steps, coalesce=coalesce)
    assert mine == expected(named, spec, steps, coalesce=coalesce)


gaps = st.sampled_from([None, 50, 100, 1_000]).map(lambda gap: {"fill": "empty", "longest_gap": gap})


@given(named=named, lateness=st.sampled_from([0, 1, 10, 50]), steps=steps, coalesce=st.booleans(), filling=gaps)
def test_each_fills_its_gaps_as_its_own_spec_does(
    named: Any, lateness: int, steps: Any, coalesce: bool, filling: Any
) -> None:
    spec = spec_of(lateness)
    mine = run(spec.windows(**named, **filling).aggregate(**AGGREGATES), steps, coalesce=coalesce)
    assert mine == expected(named, spec, steps, filling, coalesce=coalesce)


nested = st.lists(
    st.one_of(
        st.builds(lambda n: fw.TumblingEventTimeWindows.of(4 * n), st.integers(1, 6)),
        st.builds(lambda n, slide: fw.SlidingEventTimeWindows.of(4 * (n + slide), 4 * slide), st.integers(0, 9),
                  st.integers(1, 3)),
        st.builds(lambda n: fw.CumulativeEventTimeWindows.of(8 * n, 8), st.integers(1, 4)),
    ), min_size=1, max_size=3,
).map(lambda found: {"root": fw.TumblingEventTimeWindows.of(4)} | {f"w{i}": one for i, one in enumerate(found)})  # fmt: skip


@example(  # what is late for the root is within the windows that slide on
    named={"root": fw.TumblingEventTimeWindows.of(4), "w0": fw.SlidingEventTimeWindows.of(16, 4)},
    lateness=50,
    filling={},
    steps=[("e", [("a", 1), ("a", 5)]), ("w", 9), ("e", [("a", 5), ("b", 2)]), ("w", 11), ("w", 30)],
)
@given(named=nested, lateness=st.sampled_from([0, 10, 50]), steps=steps, filling=st.just({}) | gaps)
def test_partial_results_give_the_same(named: Any, lateness: int, steps: Any, filling: Any) -> None:
    spec = spec_of(lateness, hand_out=False)
    whole = spec.windows(**named, **filling).aggregate(**AGGREGATES)
    assert plan(whole, SCHEMA, coalesce=True).new_feeder() is not None
    mine = run(whole, steps, coalesce=True, partials=True)
    assert mine == expected(named, spec, steps, filling, coalesce=True, partials=True)
