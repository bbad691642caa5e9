"""The elements that a ProcessWindowFunction is handed: a sequence of rows, and their columns."""

import pickle
import tracemalloc
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.columns import windowrows

SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("ts", pa.int64()),
        ("value", pa.int64()),
        ("price", pa.float64()),
        ("small", pa.int16()),
        ("flag", pa.bool_()),
        ("page", pa.string()),
        ("gone", pa.int64()),
    ]
)
TYPES = {"value": np.int64, "price": np.float64, "small": np.int16, "flag": np.bool_, "page": object, "gone": object}
START = fw.key_by("key").event_time("ts")
TUMBLING = START.window(fw.TumblingEventTimeWindows.of("10 ms"))


def table(keys, times):
    n = len(keys)
    columns = {
        "key": keys,
        "ts": times,
        "value": range(n),
        "price": [i / 4 for i in range(n)],
        "small": [i % 100 for i in range(n)],
        "flag": [i % 3 == 0 for i in range(n)],
        "page": [f"/{i}" for i in range(n)],
        "gone": [None if i % 2 == 0 else i for i in range(n)],
    }
    return pa.table(columns, schema=SCHEMA)


class Told(fw.ProcessWindowFunction):
    """All that there is to know of the elements, in several ways that agree."""

    def __init__(self):
        self.kept = []

    def process(self, key, context, elements):
        self.kept.append(elements)
        rows = list(elements)
        assert isinstance(elements, Sequence)
        assert len(elements) == len(rows) > 0
        assert elements == rows
        assert [elements[i] for i in range(-len(rows), len(rows))] == rows + rows
        assert elements[1:] == rows[1:]
        assert elements.index(rows[-1]) <= len(rows) - 1
        for name, dtype in TYPES.items():
            values, array = elements.to_list(name), elements.to_numpy(name)
            assert values == [row[name] for row in rows] == [getattr(row, name) for row in elements]
            assert array.tolist() == values
            assert array.dtype == (object if None in values else np.int64 if name == "gone" else dtype)
            assert not array.flags.writeable
        pairs = [(a.value, b.value) for a, _ in zip(elements, range(3), strict=False) for b in elements]
        assert pairs == [(a.value, b.value) for a in rows[:3] for b in rows]
        yield (str([row._asdict() for row in rows]),)


class Fast(fw.Trigger):
    """Fires, and purges, by what it sees."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return [fw.TriggerResult.CONTINUE, fw.TriggerResult.FIRE, fw.TriggerResult.FIRE_AND_PURGE][element.small % 3]

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


SHAPES = {
    "tumbling": TUMBLING,
    "sliding": START.window(fw.SlidingEventTimeWindows.of("10 ms", "4 ms")),
    "sessions": START.window(fw.EventTimeSessionWindows.with_gap("2 ms")).allowed_lateness("20 ms"),
    "late": TUMBLING.allowed_lateness("20 ms"),
    "trigger": TUMBLING.trigger(Fast()),
    "evictor": TUMBLING.evictor(fw.CountEvictor.of(3)),
}
ROWS = st.tuples(st.integers(0, 1), st.integers(0, 40))
# Calls of a few rows keep them in another way than those of many do.
CALLS = st.tuples(st.lists(ROWS, min_size=1, max_size=5), st.sampled_from([1, 40]), st.integers(0, 40))


def wanted(windows, calls):
    """What a plain list of rows comes to."""

    class Plain(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            return [(str([row._asdict() for row in elements]),)]

    return answers(windows.process(Plain(), output="told string"), calls, range(0))


def answers(spec, calls, saves):
    stream, found, chunks = spec.open(schema=SCHEMA), [], []
    for at, (rows, times, watermark) in enumerate(calls):
        keys, when = zip(*rows, strict=True)
        found.append(stream.process(table(list(keys) * times, list(when) * times)).main.to_pylist())
        if at in saves:
            chunks.append(stream.delta() if chunks else stream.snapshot())
            stream = spec.open(schema=SCHEMA)
            stream.restore(chunks)
        found.append(stream.advance_watermark(watermark).main.to_pylist())
    found.append(stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist())
    return [sorted(rows, key=str) for rows in found]


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8, deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=4), saves=st.sets(st.integers(0, 3)))
def test_elements_are_what_a_list_of_rows_is(shape, calls, saves):
    spec = SHAPES[shape].process(Told(), output="told string")
    assert answers(spec, calls, saves) == wanted(SHAPES[shape], calls)


@pytest.mark.parametrize("n", [5, 200])
def test_what_is_kept_beyond_the_call_stays_as_it_is(n):
    told, again = Told(), []
    stream = TUMBLING.trigger(fw.CountTrigger.of(2)).process(told, output="told string").open(schema=SCHEMA)
    for _ in range(2):
        again += stream.process(table([1] * n, [5] * n)).main["told"].to_pylist()
    stream.advance_watermark(fw.MAX_TIMESTAMP)
    assert [len(elements) for elements in told.kept] == list(range(2, 2 * n + 1, 2))
    assert [str([row._asdict() for row in elements]) for elements in told.kept] == again
    revived = pickle.loads(pickle.dumps(told.kept[-1]))
    assert revived == told.kept[-1]
    assert {name: revived.to_numpy(name).dtype.type for name in ("value", "price", "small", "flag")} == {
        name: TYPES[name] for name in ("value", "price", "small", "flag")
    }
    assert pickle.dumps(pickle.loads(pickle.dumps(revived))) == pickle.dumps(revived)
    assert revived.to_list("page") == told.kept[-1].to_list("page")


def test_rows_that_are_kept_while_others_come_are_rows_of_their_own():
    seen = []

    class Keeping(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            seen.extend(row for row in elements if row.value % 3 == 0)
            seen.extend(elements[-1:])

    stream = TUMBLING.process(Keeping(), output="n bigint").open(schema=SCHEMA)
    stream.process(table([1, 2] * 100, [5] * 200))
    stream.advance_watermark(fw.MAX_TIMESTAMP)
    stream.process(table([], []))
    evens, odds = [i for i in range(0, 200, 2) if i % 3 == 0], [i for i in range(1, 200, 2) if i % 3 == 0]
    assert [row.value for row in seen] == [*evens, 198, *odds, 199]
    assert [row.page for row in seen] == [f"/{row.value}" for row in seen]


def test_neighbours_are_handed_out_without_a_copy():
    arrays = {}

    class Arrays(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            arrays.setdefault(key, []).append(elements.to_numpy("value"))

    spec = TUMBLING.process(Arrays(), output="n bigint")
    spec.run(table([1] * 100, [*range(50), *range(50)]))
    expected = [[*range(i, i + 10), *range(50 + i, 60 + i)] for i in range(0, 50, 10)]
    assert [array.tolist() for array in arrays[1]] == expected
    arrays.clear()
    spec.run(table([1] * 100, list(range(100))))
    whole = arrays[1][0].base
    assert whole is not None
    assert all(array.base is whole for array in arrays[1])


def test_unknown_column():
    class Wrong(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            elements.to_numpy("pages")

    with pytest.raises(fw.UserFunctionError, match=r"Wrong.process: .*no column 'pages'; they have key, ts, value"):
        TUMBLING.process(Wrong(), output="n bigint").run(table([1], [1]))


def test_an_evictor_may_leave_nothing():
    class Sizes(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            assert elements.to_list("page") == elements.to_numpy("value").tolist() == list(elements)
            yield (len(elements),)

    spec = TUMBLING.evictor(fw.CountEvictor.of(0)).process(Sizes(), output="n bigint")
    assert spec.run(table([1], [1])).main["n"].to_pylist() == [0]


@pytest.mark.parametrize("evicts_after", [False, True])
def test_results_that_are_rows_are_none_where_an_evictor_leaves_nothing(evicts_after):
    windows = TUMBLING.evictor(fw.CountEvictor.of(0, evicts_after))
    for spec in (windows.top(2, by="value"), windows.deduplicate("last")):
        assert spec.run(table([1], [1])).main.num_rows == evicts_after


def test_windows_that_keep_a_few_of_each_call_let_go_of_the_others():
    class Sums(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield len(elements), " ".join(elements.to_list("page")[:3])

    stream = TUMBLING.process(Sums(), output="n bigint, pages string").open(schema=SCHEMA)
    arrow = pa.total_allocated_bytes()
    for n in range(30):
        # Two rows stay for long, the others go at once.
        stream.process(table([1] * 1_000, [10 * n] * 998 + [5_000, 6_000]))
        stream.advance_watermark(10 * n + 9)
    held = pa.total_allocated_bytes() - arrow
    assert held < 3 * table([1] * 1_000, [0] * 1_000).nbytes
    rows = stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
    assert [(row["n"], row["pages"]) for row in rows] == [(30, "/998 /998 /998"), (30, "/999 /999 /999")]


class Looking(fw.ProcessWindowFunction):
    """Looks at the elements of the first window that fires as a test tells it to."""

    def __init__(self, look):
        self.look = look

    def process(self, key, context, elements):
        if self.look is not None:
            look, self.look = self.look, None
            look(elements)


def look_at_many_parts(look):
    """Has a look at a window to which each of 300 calls has brought 22 elements."""
    stream = TUMBLING.process(Looking(look), output="n bigint").open(schema=SCHEMA)
    for _ in range(300):
        stream.process(table([1, 2, 2] * 22, [5, 15, 15] * 22))
    stream.advance_watermark(9)


def test_an_element_is_found_by_its_place_in_one_step(monkeypatch):
    steps = []
    monkeypatch.setattr(windowrows, "bisect_right", lambda ends, k: steps.append(k) or bisect_right(ends, k))

    def look(elements):
        values, n = elements.to_list("value"), len(elements)
        assert n == 6_600
        assert [elements[i].value for i in range(-n, n, 101)] == (values + values)[::101]
        assert len(steps) <= 2 * n // 101 + 1
        steps.clear()
        assert [row.value for row in elements[::-1]] == values[::-1]
        assert len(steps) <= 300

    look_at_many_parts(look)
    assert steps


def test_a_slice_makes_the_rows_that_it_asks_for():
    peaks = []

    def look(elements):
        assert elements[5].value == elements.to_list("value")[5]
        for some in (slice(1), slice(-1, None), slice(3_000, 3_010, 3)):
            tracemalloc.start()
            try:
                assert len(elements[some]) == len(range(6_600)[some])
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()

    look_at_many_parts(look)
    assert max(peaks) < 6_600, f"{peaks} bytes; a list of all rows takes eight for each"


def test_letting_go_of_calls_costs_what_is_new():
    """Of each call a few rows stay. What has been let go of before is not touched again."""
    stream = TUMBLING.process(Looking(None), output="n bigint").open(schema=SCHEMA)
    peaks = []
    for n in range(600):
        rows = table([1] * 100, [10 * n] * 80 + [9_000] * 20)
        tracemalloc.start()
        try:
            stream.process(rows)
            stream.advance_watermark(10 * n + 9)
            stream.process(rows[:0])
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert np.median(peaks[-20:]) < np.median(peaks[20:40]) + 20_000, "eight bytes for each of 12,000 rows"
