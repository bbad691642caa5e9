"""AggregateFunction.add_many: comes to what add comes to, whatever windows and triggers do with the elements."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw

SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.int64()), ("value", pa.int64()), ("page", pa.string())])
OUTPUT = "text string"


class OneByOne(fw.AggregateFunction):
    """What came, in order."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append((value.value, value.page))
        return accumulator

    def get_result(self, accumulator):
        return str(accumulator)

    def merge(self, a, b):
        return [*a, *b]


class Many(OneByOne):
    """The same, many at once; ``runs`` are the lengths of what was handed over."""

    def __init__(self):
        self.runs = []

    def add(self, value, accumulator):
        return super().add(value, accumulator)

    def add_many(self, values, accumulator):
        self.runs.append(len(values))
        assert [row.value for row in values] == values.to_list("value") == values.to_numpy("value").tolist()
        return [*accumulator, *zip(values.to_list("value"), values.to_list("page"), strict=True)]


class EachThird(fw.Trigger):
    """Fires, and purges, by what it sees."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return [fw.TriggerResult.CONTINUE, fw.TriggerResult.FIRE, fw.TriggerResult.PURGE][(element.value or 0) % 3]

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


START = fw.key_by("key").event_time("ts")
TUMBLING = START.window(fw.TumblingEventTimeWindows.of("10 ms"))
SESSIONS = START.window(fw.EventTimeSessionWindows.with_gap("5 ms"))
SHAPES = {
    "tumbling": lambda f: TUMBLING.aggregate(f, output=OUTPUT),
    "beside others": lambda f: TUMBLING.aggregate(
        total=fw.Sum("value"), mine=f, other=OneByOne(), output="mine string, other string"
    ),
    "sliding": lambda f: START.window(fw.SlidingEventTimeWindows.of("10 ms", "4 ms")).aggregate(f, output=OUTPUT),
    "sessions": lambda f: SESSIONS.aggregate(f, output=OUTPUT),
    "sessions, late": lambda f: SESSIONS.allowed_lateness("20 ms").aggregate(f, output=OUTPUT),
    "late": lambda f: TUMBLING.allowed_lateness("20 ms").aggregate(f, output=OUTPUT),
    "late, coalesced": lambda f: TUMBLING.allowed_lateness("20 ms", coalesce=True).aggregate(f, output=OUTPUT),
    "count": lambda f: TUMBLING.trigger(fw.CountTrigger.of(3)).aggregate(f, output=OUTPUT),
    "purging": lambda f: TUMBLING.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(3))).aggregate(f, output=OUTPUT),
    "own trigger": lambda f: TUMBLING.trigger(EachThird()).aggregate(f, output=OUTPUT),
    "evictor": lambda f: TUMBLING.evictor(fw.CountEvictor.of(2)).aggregate(f, output=OUTPUT),
}


def answers(spec, batches):
    """What comes of batches, each with a watermark behind it, restored half-way."""
    stream, found = spec.open(), []
    for at, (rows, watermark) in enumerate(batches):
        table = pa.table(list(zip(*rows, strict=True)) or [[]] * 4, schema=SCHEMA)
        found.append(stream.process(table).main.to_pylist())
        if at == len(batches) // 2:
            chunks = [stream.snapshot()]
            stream = spec.open()
            stream.restore(chunks)
        found.append(stream.advance_watermark(watermark).main.to_pylist())
    return [*found, stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()]


ROWS = st.tuples(
    st.integers(0, 2), st.integers(0, 60), st.none() | st.integers(-5, 50), st.none() | st.sampled_from(["/", "/buy"])
)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25, deadline=None)
@given(batches=st.lists(st.tuples(st.lists(ROWS, max_size=30), st.integers(0, 60)), min_size=1, max_size=4))
def test_comes_to_what_add_comes_to(shape, batches):
    build = SHAPES[shape]
    assert answers(build(Many()), batches) == answers(build(OneByOne()), batches)


SIX = [(i, "/") for i in range(6)]


def table(n=6, **columns):
    given = {"key": [1] * n, "ts": list(range(n)), "value": list(range(n)), "page": ["/"] * n, **columns}
    return pa.table(given)


def test_a_window_that_only_waits_is_handed_all_elements_of_a_call_at_once():
    many = Many()
    stream = TUMBLING.aggregate(many, output=OUTPUT).open()
    stream.process(table())
    assert stream.advance_watermark(100).main["text"].to_pylist() == [str(SIX)]
    assert many.runs == [6]


def test_a_growing_session_is_handed_them_at_once_too():
    many = Many()
    assert SESSIONS.aggregate(many, output=OUTPUT).run(table()).main["text"].to_pylist() == [str(SIX)]
    assert many.runs == [6]


def test_sessions_that_become_one_are_handed_theirs_before():
    many, bridged = Many(), table(5, ts=[0, 1, 8, 9, 5])
    expected = SESSIONS.aggregate(OneByOne(), output=OUTPUT).run(bridged).main
    assert SESSIONS.aggregate(many, output=OUTPUT).run(bridged).main.equals(expected)
    assert many.runs == [2, 2]


def test_a_firing_ends_a_run():
    many = Many()
    spec = TUMBLING.trigger(fw.CountTrigger.of(4)).aggregate(many, output=OUTPUT)
    stream = spec.open()
    assert stream.process(table()).main["text"].to_pylist() == [str(SIX[:4])]
    assert many.runs == [4, 2]


class Looks(fw.AggregateFunction):
    def __init__(self):
        self.seen = []

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return accumulator

    def add_many(self, values, accumulator):
        self.seen = [values.to_numpy(name) for name in ("value", "small", "price", "flag", "page", "gone")]
        self.rows = [values[0], values[-1], *values[1:3]]
        with pytest.raises(KeyError, match="no column 'nothing'"):
            values.to_list("nothing")
        with pytest.raises(IndexError, match="there are 6 of them, got index 6"):
            values[6]
        with pytest.raises(ValueError, match="read-only"):
            self.seen[0][0] = 1
        self.kept = values
        return accumulator

    def get_result(self, accumulator):
        return ""


def test_columns_have_their_dtypes_and_rows_stay():
    looks = Looks()
    data = table(
        small=pa.array(range(6), pa.int16()),
        price=pa.array([0.5] * 6),
        flag=pa.array([True] * 6),
        gone=pa.array([1, None, 3, 4, 5, 6]),
    )
    stream = TUMBLING.aggregate(looks, output="text string").open()
    stream.process(data)
    assert [a.dtype for a in looks.seen] == [np.int64, np.int16, np.float64, np.bool_, object, object]
    assert looks.seen[5].tolist() == [1, None, 3, 4, 5, 6]
    assert [row.value for row in looks.rows] == [0, 5, 1, 2]
    with pytest.raises(fw.StateError, match="the call that they were handed to is over"):
        looks.kept.to_list("value")


class OnlyAdd(Many):
    """Overrides ``add`` alone: the inherited ``add_many`` would come to something else."""

    def add(self, value, accumulator):
        accumulator.append((-value.value, value.page))
        return accumulator


def test_a_subclass_that_overrides_add_alone_is_asked_through_add():
    function = OnlyAdd()
    assert TUMBLING.aggregate(function, output=OUTPUT).run(table(2)).main["text"].to_pylist() == [
        "[(0, '/'), (-1, '/')]"
    ]
    assert function.runs == []


class Fails(OneByOne):
    def add(self, value, accumulator):
        return accumulator

    def add_many(self, values, accumulator):
        raise ValueError("no")


def test_an_error_names_function_key_and_window():
    with pytest.raises(fw.UserFunctionError, match=r"Fails\.add_many: for key 1, .*ValueError: no"):
        TUMBLING.aggregate(Fails(), output=OUTPUT).run(table())
