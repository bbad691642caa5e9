"""Windows without elements have rows between a key's windows with some, as a naive model has them, through restores."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.chunks import decode, owner
from fastwin.state.refresh import Refresh
from tests.support.kept_steps import SCHEMA, windows
from tests.support.naive import Model, Row, Tumbling, Window

GROUPS = 3
elements = st.lists(st.tuples(st.sampled_from(["a", "a", "a", None]), st.integers(-20, 120)), max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), elements),
        st.tuples(st.just("watermark"), st.integers(-20, 160)),
        st.tuples(st.just("save"), st.booleans()),
    ),
    min_size=6,
    max_size=20,
)
FIVE = fw.TumblingEventTimeWindows.of(5), Tumbling(5)


class Filled:
    """The table that results make: the newest values of each (key, window) that has fired, and what is between."""

    def __init__(self, windows: Any, longest: int) -> None:
        self.longest = longest
        self.fired: dict[Any, dict[int, tuple]] = {}
        every = {window for time in range(-300, 600) for window in windows.assign(time)}
        self.every = sorted(every, key=lambda window: window.end)

    def take(self, fed: Any) -> None:
        for one in fed.emissions:
            self.fired.setdefault(one.key, {})[one.end] = (one.start, one.values)

    def table(self) -> dict[tuple, tuple]:
        found = {}
        for key, ends in self.fired.items():
            found |= {(key, start, end): values for end, (start, values) in ends.items()}
            for last, end in pairwise(sorted(ends)):
                if end - last <= self.longest:
                    found |= {(key, *window): (0, None) for window in self._between(last, end)}
        return found

    def _between(self, last: int, end: int) -> list[Window]:
        return [window for window in self.every if last < window.end < end]


def rows_of(result: fw.Result) -> list[tuple]:
    bounds = [result.main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    return list(zip(*(result.main[name].to_pylist() for name in ("k",)), *bounds,
                    *(result.main[name].to_pylist() for name in ("n", "s")), strict=True))  # fmt: skip


class Log:
    """Deltas, of which those that are not needed any more are forgotten."""

    def __init__(self) -> None:
        self.deltas: list[bytes] = []
        self.turn = 0

    def add(self, stream: Any) -> None:
        self.deltas.append(stream.delta(Refresh(GROUPS, tuple(range(GROUPS)), self.turn)))
        chunk = decode(self.deltas[-1], owner(self.deltas[-1]))
        assert chunk.link is not None
        self.turn = (self.turn + chunk.meta["refreshed"]) % GROUPS
        links = [decode(delta, owner(delta)).link for delta in self.deltas]
        self.deltas = [
            delta for delta, link in zip(self.deltas, links, strict=True)
            if link is not None and link.sequence >= chunk.link.since
        ]  # fmt: skip


@given(st.just(FIVE) | windows, st.sampled_from([0, 1, 10, 30]), st.sampled_from([0, 3, 10, 100]), st.booleans(), steps)
def test_gaps_are_filled_as_the_naive_model_says(
    pair: Any, lateness: int, more: int, coalesce: bool, steps: Any
) -> None:
    step = min(getattr(pair[1], "slide", 10**6), getattr(pair[1], "step", 10**6))
    longest = max(step, lateness) + more
    spec = fw.key_by("k").event_time("ts").window(pair[0], fill="empty", longest_gap=longest)
    spec = spec.allowed_lateness(lateness).aggregate(n=fw.Count(), s=fw.Sum("id"))
    bound = plan(spec, SCHEMA, coalesce=coalesce)
    assert bound.operator == "filling"
    model = Model(pair[1], [("count", None), ("sum", 0)], lateness, False, coalesce)
    expected, table, empties = Filled(pair[1], longest), {}, []
    stream = open_replica(bound)
    chunks: list[bytes] = []
    log = Log()
    logged = sum(len(what) for kind, what in steps if kind == "batch") % 2 == 1
    count = 0
    for kind, what in [*steps, ("watermark", 10_000)]:
        if kind == "save":
            if logged:
                log.add(stream)
            else:
                chunks = [stream.snapshot()] if what or not chunks else [*chunks, stream.delta()]
            stream = open_replica(bound)
            if logged:
                stream.catch_up(log.deltas)
            else:
                stream.restore(chunks)
            continue
        if kind == "batch":
            rows = [Row(count + i, key, time, (count + i,)) for i, (key, time) in enumerate(what)]
            told = [{"k": row.key, "ts": row.time, "id": row.values[0]} for row in rows]
            count += len(rows)
            result, fed = stream.process(pa.Table.from_pylist(told, schema=SCHEMA)), model.batch(rows)
        else:
            result, fed = stream.advance_watermark(what), model.advance(what)
        given_out = rows_of(result)
        with_elements = sorted(str(row) for row in given_out if row[3])
        assert with_elements == sorted(str((one.key, one.start, one.end, *one.values)) for one in fed.emissions)
        empties += [row[:3] for row in given_out if not row[3]]
        filled = {row[:3] for row in given_out if not row[3]}
        assert not filled & {row[:3] for row in given_out if row[3]}, "an empty window has elements in the same call"
        if coalesce or kind == "watermark":
            assert len({row[:3] for row in given_out}) == len(given_out), "a window is there twice"
        table |= {row[:3]: row[3:] for row in given_out}
        expected.take(fed)
        assert table == expected.table()
        for key in {row[0] for row in given_out} if kind == "watermark" else ():
            ends = [row[2] for row in given_out if row[0] == key]
            assert ends == sorted(ends)
        stream._check_invariants()
    assert len(set(empties)) == len(empties), "an empty window was handed out twice"
    assert stream.metrics.state_rows == 0
