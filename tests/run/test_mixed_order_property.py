"""A table in no order of time, with equal times and values in a key, gives what a stream gives that gets the same rows."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("id", pa.int64())])
SPAN = 60
KEYED = fw.key_by("k").event_time("ts")
TEN = KEYED.window(fw.TumblingEventTimeWindows.of(10))
# Equal values and times are decided by the order of arrival, which is that of the rows.
PICKED = {
    "n": fw.Count(), "first": fw.First("id"), "last": fw.Last("id"), "arrived": fw.FirstArrived("id"),
    "newest": fw.LastArrived("id"), "low": fw.ArgMin("id", "v"), "high": fw.ArgMax("id", "v"), "all": fw.Collect("id"),
    "few": fw.Collect("id", limit=2), "top": fw.TopK("v", 2), "mode": fw.Mode("v"),
}  # fmt: skip
SPECS = {
    "tumbling": TEN.aggregate(**PICKED),
    "sliding": KEYED.window(fw.SlidingEventTimeWindows.of(20, 5)).aggregate(**PICKED),
    "sessions": KEYED.window(fw.EventTimeSessionWindows.with_gap(3)).aggregate(**PICKED),
    "several": KEYED.windows(
        a=fw.TumblingEventTimeWindows.of(5), b=fw.TumblingEventTimeWindows.of(20)
    ).aggregate(**PICKED),
    "empty ones, too": KEYED.window(fw.TumblingEventTimeWindows.of(2), fill="empty").aggregate(**PICKED),
    "general": TEN.with_pane_info().aggregate(**PICKED),
    "first row": TEN.deduplicate(),
    "last row": TEN.deduplicate("last"),
    "top": TEN.top(2, by="v"),
    "top of sessions": KEYED.window(fw.EventTimeSessionWindows.with_gap(3)).top(2, by="v"),
    "reduced": TEN.reduce(lambda a, b: a if a.v >= b.v else b),
}  # fmt: skip
rows = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, SPAN - 1), st.integers(0, 2)), min_size=1, max_size=40)


def rows_of(result: pa.Table) -> list[str]:
    return sorted(str(tuple(row.items())) for row in result.to_pylist())


@settings(max_examples=40)
@given(rows, st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_a_table_is_a_stream_of_its_rows(given_rows: Any, cuts: list[int], chunked: bool) -> None:
    table = pa.Table.from_pylist(
        [{"k": key, "ts": time, "v": value, "id": i} for i, (key, time, value) in enumerate(given_rows)], SCHEMA
    )
    bounds = [0, *sorted(min(cut, len(table)) for cut in cuts), len(table)]
    parts = [table.slice(begin, end - begin) for begin, end in zip(bounds, bounds[1:], strict=False)]
    for name, spec in SPECS.items():
        stream = spec.open(watermark=SPAN)
        fired = [stream.process(part).main for part in parts]
        fired.append(stream.advance_watermark(10_000).main)
        found = rows_of(pa.concat_tables(fired))
        assert rows_of(spec.run(pa.concat_tables(parts) if chunked else table).main) == found, name


@settings(max_examples=20)
@given(rows, rows, st.integers(0, 40))
def test_joined_tables_are_joined_streams(left_rows: Any, right_rows: Any, cut: int) -> None:
    left, right = (
        pa.Table.from_pylist(
            [{"k": key, "ts": time, "v": value, "id": i} for i, (key, time, value) in enumerate(some)], SCHEMA
        )
        for some in (left_rows, right_rows)
    )
    join = fw.window_join(KEYED, KEYED, fw.TumblingEventTimeWindows.of(10), "full")
    stream = join.open(watermark=(SPAN, SPAN), schemas=(SCHEMA, SCHEMA))
    fired = [stream.process(left.slice(0, cut), right.slice(cut)).main]
    fired.append(stream.process(left.slice(cut), right.slice(0, cut)).main)
    fired.append(stream.advance_watermark(left=10_000, right=10_000).main)
    assert rows_of(join.run(left, right).main) == rows_of(pa.concat_tables(fired))
