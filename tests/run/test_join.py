"""Window joins: names that collide, watermarks of two inputs, state, and what is refused."""

import copy
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import BadRowError, SpecError, StateError, UserFunctionError

LEFT = pa.table({"k": ["a", "b"], "ts": [1, 2], "v": [1.0, 2.0]})
RIGHT = pa.table({"k": ["a", "a"], "ts": [3, 14], "v": [[1], [2, 3]]})
START = fw.key_by("k").event_time("ts")
WINDOW = fw.TumblingEventTimeWindows.of(10)
JOIN = fw.window_join(START, START, WINDOW)


def table_at(time):
    return pa.table({"k": ["a"], "ts": pa.array([time], pa.int64())})


def fails(key, window, left, right):
    raise KeyError("no")


def test_names_that_are_taken_get_the_suffix():
    main = JOIN.run(LEFT, RIGHT).main
    assert main.column_names == ["k", "window_start", "window_end", "ts", "v", "ts_right", "v_right"]
    assert main["v_right"].to_pylist() == [[1]]
    other = fw.window_join(START, START, WINDOW, "full", suffix="2").run(
        LEFT, RIGHT.append_column("ts_right", [[5, 6]])
    )
    assert other.main.column_names[3:] == ["ts", "v", "ts2", "v2", "ts_right"]
    assert other.main.num_rows == 3


def test_a_join_says_what_its_inputs_are():
    late = fw.key_by("id").event_time("at", unit="s").allowed_lateness("5 s").side_output_late_data()
    join = fw.window_join(START, late, WINDOW, "left")
    sides = [
        "  left: keys k; event time 'ts'",
        "  right: keys id; event time 'at', in s; allowed lateness 5 s; late rows in result.side['late_right']",
    ]
    first, operator, *rest = join.explain().splitlines()
    assert first == "window_join(left, right, TumblingEventTimeWindows(size_ms=10, offset_ms=0), how='left')"
    assert operator.startswith("  operator: rows, because")
    assert rest[1:4] == ["  fires: when the watermark passes the end, which is the lesser of both inputs'", *sides]
    assert rest[4].startswith("  allowed lateness: windows are kept for 5 s")
    assert [line for line in repr(join).splitlines() if line in (*sides, "  how: left")] == ["  how: left", *sides]
    grouped = fw.co_group(START, late, WINDOW, fails, output="n int")
    assert "  function: fails" in repr(grouped).splitlines()
    assert grouped.explain().splitlines()[0].endswith("offset_ms=0), fails)")


@pytest.mark.parametrize("place", ["left", "right"])
@pytest.mark.parametrize("coalesce", [True, False])
def test_either_input_may_say_how_late_rows_fire(place, coalesce):
    sides = {"left": START, "right": START} | {place: START.allowed_lateness(50, coalesce=coalesce)}
    join = fw.window_join(**sides, window=WINDOW)
    stream = join.open(schemas=(LEFT.schema, RIGHT.schema))
    stream.process(LEFT, RIGHT)
    stream.advance_watermark(left=9, right=9)
    late = pa.concat_tables([LEFT.slice(0, 1)] * 2) if place == "left" else pa.concat_tables([RIGHT.slice(0, 1)] * 2)
    assert stream.process(**{place: late}).main.num_rows == (3 if coalesce else 2 + 3)


def test_time_is_the_lesser_of_both_watermarks():
    stream = JOIN.open(watermark=("0 s", 5), schemas=(LEFT.schema, RIGHT.schema))
    stream.process(left=LEFT)
    assert stream.watermark == -(2**63)
    assert stream.process(right=RIGHT).main.num_rows == 0
    assert stream.watermark == 1
    assert stream.advance_watermark(left=50).main.num_rows == 0
    assert stream.advance_watermark(right=9).main.num_rows == 1
    assert stream.metrics.events == 4


def test_watermarks_may_be_integers_of_numpy():
    stream = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
    stream.process(LEFT, RIGHT)
    latest = LEFT["ts"].to_numpy().max()
    stream.advance_watermark(latest)
    assert stream.watermark == 2
    assert stream.advance_watermark(left=latest + 7, right=np.int32(9)).main.num_rows == 1
    assert type(stream.watermark) is int


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_suspicious_unit_of_an_input_is_warned_of_once(side):
    usual, seconds = (table_at(time) for time in (1_704_067_200_000, 1_704_067_200))
    tables = {"left": usual, "right": usual} | {side: seconds}
    with pytest.warns(UserWarning, match=r"event_time 'ts': .*event_time\('ts', unit='s'\)") as caught:
        JOIN.run(**tables)
    assert [one.filename for one in caught] == [__file__]
    said = START if side == "right" else fw.key_by("k").event_time("ts", unit="s")
    other = START if side == "left" else fw.key_by("k").event_time("ts", unit="s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fw.window_join(said, other, WINDOW).run(**tables)
        JOIN.run(usual, usual)
        stream = JOIN.open()
        with pytest.raises(UserWarning, match="event_time 'ts'"):
            stream.process(**tables)
        assert stream.metrics.events == 0
        stream.process(**tables)
        stream.process(**{side: seconds})
    assert stream.metrics.events == 3


def test_a_restored_stream_knows_both_watermarks():
    stream = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
    stream.process(LEFT, RIGHT)
    stream.advance_watermark(left=50, right=5)
    chunks = [stream.snapshot()]
    again = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
    again.restore(chunks)
    assert again.advance_watermark(right=20).main.num_rows == 1
    for broken in (b"", chunks[0][40:], chunks[0][:9] + b"x" + chunks[0][10:], chunks[0][:-3]):
        with pytest.raises(StateError):
            JOIN.open(schemas=(LEFT.schema, RIGHT.schema)).restore([broken])
    for odd, said in (([], "at least a snapshot"), ([3], "got int"), ({}, "takes a list of bytes"), (3, "got int")):
        with pytest.raises(StateError, match=said):
            JOIN.open(schemas=(LEFT.schema, RIGHT.schema)).restore(odd)
    with pytest.raises(StateError, match="no schema yet"):
        JOIN.open().restore(chunks)
    other = fw.window_join(START, START, WINDOW, "left").open(schemas=(LEFT.schema, RIGHT.schema))
    with pytest.raises(StateError, match="window_join"):
        other.restore(chunks)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_state_is_taken_as_any_bytes(kind):
    stream = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
    stream.process(LEFT, RIGHT)
    saved = kind(stream.snapshot())
    for chunks in (saved, [saved], (saved,)):
        again = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
        again.restore(chunks)
        assert again.metrics.state_rows == stream.metrics.state_rows > 0


@pytest.mark.parametrize("copied", [copy.copy, pickle.dumps])
def test_joins_cannot_be_copied(copied):
    with pytest.raises(StateError, match=r"^stream: it cannot be copied or pickled; snapshot\(\) .*restore\(\)"):
        copied(JOIN.open())


def test_bad_rows_are_told_by_the_column_of_their_input():
    bad = pa.table({"k": ["a"], "ts": pa.array([None], pa.int64()), "v": [1.0]})
    says = r"event_time 'ts': null timestamp in row 0 of the {} input .* 1 of 1 rows are bad; bad_rows\('drop'\) goes"
    with pytest.raises(BadRowError, match=says.format("left")):
        JOIN.run(bad, RIGHT)
    with pytest.raises(BadRowError, match=says.format("right")):
        JOIN.run(LEFT, bad)
    dropping = START.bad_rows("drop")
    stream = fw.window_join(dropping, dropping, WINDOW).open()
    assert stream.process(bad, RIGHT).bad_dropped == 1
    assert stream.process(LEFT, RIGHT).bad_dropped == 0
    assert (stream.metrics.bad, stream.metrics.events) == (1, 3 + len(LEFT) + len(RIGHT))
    assert fw.window_join(dropping, dropping, WINDOW).run(bad, bad).bad_dropped == 2


@pytest.mark.parametrize("policy", ["raise", "drop"])
def test_int64_times_are_plain_numbers_within_limits(policy):
    far = 2**61
    start = START.bad_rows(policy)
    left = pa.table({"k": ["a", "a"], "ts": [-far, far]})
    right = pa.table({"k": ["a", "a"], "ts": [far, -far]})
    stream = fw.window_join(start, start, fw.TumblingEventTimeWindows.of(8)).open(watermark=("1 s", "1 s"))
    found = stream.process(left, right).main, stream.advance_watermark(fw.MAX_TIMESTAMP).main
    assert [table["ts"].to_pylist() for table in found] == [[-far], [far]]
    assert (stream.metrics.bad, stream.metrics.late, stream.metrics.events) == (0, 0, 4)


@pytest.mark.parametrize(
    ("start", "window", "time", "said"),
    [
        (START, WINDOW, pa.array([2**61 + 1]), r"outside \+-2305843009213693952 ms"),
        (START, fw.CalendarEventTimeWindows.of("1 day", time_zone="UTC"), pa.array([10**15]), "outside years 1 to"),
        (fw.key_by("k").event_time("ts", unit="ms"), WINDOW, pa.array([10**15]), "outside years 1 to"),
        (START, WINDOW, pa.array([10**15], pa.timestamp("ms")), "outside years 1 to"),
    ],
    ids=["plain", "calendar", "unit", "timestamp"],
)
def test_times_beyond_the_limits_are_bad_and_move_no_watermark(start, window, time, said):
    bad, good = pa.table({"k": ["a"], "ts": time}), pa.table({"k": ["a"], "ts": time}).slice(1)
    with pytest.raises(BadRowError, match=f"event_time 'ts': timestamp {said}"):
        fw.window_join(start, start, window).run(bad, good)
    dropping = start.bad_rows("drop")
    stream = fw.window_join(dropping, dropping, window).open(watermark=("1 s", "1 s"))
    stream.process(bad, bad)
    assert (stream.metrics.bad, stream.metrics.events, stream.watermark) == (2, 2, -(2**63))


@pytest.mark.parametrize("encoded", [False, True])
def test_an_unsigned_key_beyond_int64_beside_another_integer_is_refused(encoded):
    right = fw.key_by("paid").event_time("ts")
    keys = pa.chunked_array([pa.array([1, None, 2**63 - 1, 2**63 + 1], pa.uint64())])
    table = pa.table({"paid": keys.dictionary_encode() if encoded else keys, "ts": [1, 2, 3, 4]})
    left = pa.table({"k": [1, 2**63 - 1], "ts": [1, 2]})
    join = fw.window_join(START, right, WINDOW)
    stream = join.open(schemas=(left.schema, table.schema))
    said = (
        f"^window_join: key 'paid' is uint64 .* must be at most {2**63 - 1}, got {2**63 + 1}; cast both to decimal128"
    )
    with pytest.raises(SpecError, match=said):
        stream.process(left, table)
    assert stream.metrics.events == 0
    stream.process(left, table.slice(0, 3))
    assert stream.advance_watermark(9).main["k"].to_pylist() == [1, 2**63 - 1]
    wide = [one.set_column(0, one.column_names[0], pc.cast(one[0], pa.decimal128(20))) for one in (left, table)]
    assert join.run(*wide).main.num_rows == 2


DROPPING = START.bad_rows("drop")
BAD = LEFT.set_column(1, "ts", pa.array([None, 3], pa.int64()))
CALLS = {
    "process": lambda stream: stream.process(BAD, RIGHT),
    "advance_watermark": lambda stream: stream.advance_watermark(left=10**9, right=10**9),
    "snapshot": lambda stream: stream.snapshot(),
    "delta": lambda stream: stream.delta(),
    "restore": lambda stream: stream.restore([]),
    "why": lambda stream: stream.why("a"),
    "inspect": lambda stream: stream.inspect(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("trace", [None, 100])
def test_a_call_of_user_code_is_refused_and_changes_nothing(call, trace):
    told = []

    def calls(key, window, left, right):
        with pytest.raises(StateError) as caught:
            CALLS[call](held[0])
        told.append(str(caught.value))
        return [(len(left) + len(right),)]

    held = [
        fw.co_group(DROPPING, DROPPING, WINDOW, calls, output="n bigint").open(
            watermark=(0, 0), schemas=(LEFT.schema, RIGHT.schema), trace=trace
        )
    ]
    (stream,) = held
    stream.process(LEFT, RIGHT.slice(0, 1))
    assert stream.advance_watermark(9).main["n"].to_pylist() == [2, 1]
    said = f"{call}() was called by code that advance_watermark() runs; it is inside until that returns"
    assert told == [f"stream: {said}, and takes no other call"] * 2
    assert stream.process(left=LEFT.set_column(1, "ts", pa.array([11, 12]))).main.num_rows == 0
    assert stream.watermark == 9
    assert (stream.metrics.events, stream.metrics.bad) == (5, 0)


def test_a_call_after_an_error_changes_nothing():
    stream = fw.co_group(DROPPING, DROPPING, WINDOW, fails, output="n bigint").open(schemas=(LEFT.schema, RIGHT.schema))
    stream.process(LEFT, RIGHT)
    with pytest.raises(UserFunctionError):
        stream.advance_watermark(9)
    before = stream.metrics
    for call in (lambda: stream.advance_watermark(50), lambda: stream.process(left=BAD)):
        with pytest.raises(StateError, match="failed in the middle of a batch"):
            call()
    assert stream.metrics == before
    assert stream._watermarks == [9, 9]


def test_a_watermark_that_is_refused_moves_neither_input():
    stream = JOIN.open(schemas=(LEFT.schema, RIGHT.schema))
    with pytest.raises(SpecError, match="advance_watermark: right: must be an int of milliseconds, got 'x'"):
        stream.advance_watermark(left=50, right="x")
    stream.advance_watermark(right=20)
    assert stream.watermark == -(2**63)


SESSIONS = fw.EventTimeSessionWindows.with_gap(5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: fw.window_join("k", START, WINDOW),
            "window_join: left must be fw.key_by(...).event_time(...), got str",
        ),
        (lambda: fw.window_join(START, fw.key_by("k"), WINDOW), "right needs .event_time(column)"),
        (lambda: fw.window_join(START, START.window(WINDOW), WINDOW), "the window is an argument of window_join"),
        (lambda: fw.window_join(START, START, "10 s"), "window_join: window must be"),
        (lambda: fw.window_join(START, START, SESSIONS), "tumbling, sliding, cumulative or of a calendar"),
        (
            lambda: fw.window_join(START, START, WINDOW, "outer"),
            "how must be one of inner, left, right, full, got 'outer'",
        ),
        (
            lambda: fw.window_join(START, START, WINDOW, suffix=""),
            "suffix must be text of at least one character, got ''",
        ),
        (lambda: fw.window_join(START, fw.key_by().event_time("ts"), WINDOW), "both inputs need as many key columns"),
        (lambda: fw.window_join(START, START.bad_rows("drop"), WINDOW), "the same bad_rows"),
        (
            lambda: fw.window_join(
                START.allowed_lateness(5, coalesce=True), START.allowed_lateness(5, coalesce=False), WINDOW
            ),
            "both inputs need the same coalesce=",
        ),
        (lambda: fw.window_join(START.bad_rows("divert"), START, WINDOW), "left: bad_rows('divert') does not go"),
        (lambda: fw.co_group(START, START, WINDOW, 3, output="n bigint"), "function must be callable"),
        (lambda: JOIN.run(LEFT, RIGHT.rename_columns(["x", "ts", "v"])), "there is no column 'k'"),
        (lambda: JOIN.run(LEFT, RIGHT.set_column(0, "k", pa.array([1, 2]))), "are string and int64; cast one of them"),
        (
            lambda: JOIN.run(LEFT.append_column("v_right", LEFT["v"]), RIGHT),
            "'v_right' twice; suffix='_right' does not",
        ),
        (lambda: JOIN.run(LEFT.rename_columns(["k", "ts", "window_end"]), RIGHT), "'window_end' twice"),
        (
            lambda: JOIN.bind(LEFT.schema, RIGHT.schema.set(1, pa.field("ts", pa.int32()))),
            "event_time: column 'ts' must be a timestamp or int64 milliseconds, got int32",
        ),
        (
            lambda: fw.window_join(START, fw.key_by("k").event_time("ts", unit="s"), WINDOW).bind(
                LEFT.schema, RIGHT.schema.set(1, pa.field("ts", pa.timestamp("us")))
            ),
            "event_time: unit='s' is for int64, but column 'ts' is timestamp[us]; leave it out",
        ),
        (lambda: JOIN.open("10 s"), "watermark: must be a pair"),
        (lambda: JOIN.open().process(left=LEFT), "the first call needs left= and right="),
        (
            lambda: JOIN.open().advance_watermark(left=1.5),
            "advance_watermark: left: must be an int of milliseconds, got 1.5",
        ),
    ],
)
def test_what_does_not_go_is_refused(make, said):
    with pytest.raises(SpecError) as caught:
        make()
    assert said in str(caught.value)


def test_a_row_that_is_late_for_its_input_is_in_no_later_firing():
    """The right input keeps windows longer: they fire again for its rows, without left ones that came too late."""
    patient = START.allowed_lateness(100)
    join = fw.window_join(START, patient, fw.SlidingEventTimeWindows.of(20, 10), "full")
    stream = join.open(schemas=(LEFT.schema, LEFT.schema))
    stream.process(right=pa.table({"k": ["a"], "ts": [5], "v": [1.0]}))
    assert stream.advance_watermark(15).main["ts"].to_pylist() == [None]
    assert stream.process(left=pa.table({"k": ["a"], "ts": [5], "v": [2.0]})).main.num_rows == 0
    again = stream.process(right=pa.table({"k": ["a"], "ts": [6], "v": [3.0]})).main
    assert (again["ts"].to_pylist(), again["v_right"].to_pylist()) == ([None, None], [1.0, 3.0])
    assert stream.advance_watermark(19).main["ts"].to_pylist() == [5, 5]


def test_days_of_a_zone_through_a_restart():
    berlin = fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin")
    join = fw.window_join(START, fw.key_by("k").event_time("at"), berlin)

    def moments(*texts):
        return pa.array([f"2024-03-{text}" for text in texts]).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))

    left = pa.table({"k": ["a", "a"], "ts": moments("30T22:59:59", "30T23:00"), "v": [1, 2]})
    right = pa.table({"k": ["a", "a"], "at": moments("31T21:59:59", "31T22:00"), "w": [3, 4]})
    stream = join.open(schemas=(left.schema, right.schema))
    stream.process(left=left)
    again = join.open(schemas=(left.schema, right.schema))
    again.restore([stream.snapshot()])
    again.process(right=right)
    main = again.advance_watermark(left=2**42, right=2**42).main
    assert main.equals(join.run(left, right).main)
    (row,) = main.to_pylist()  # on a day of 23 hours
    hours = (row["window_end"].timestamp() - row["window_start"].timestamp()) / 3600
    assert (row["v"], row["w"], hours) == (2, 3, 23)


def test_a_first_call_that_is_refused_settles_no_types():
    stream = JOIN.open()
    stream.advance_watermark(3)
    untold = pa.table({"k": pa.nulls(1), "ts": pa.nulls(1), "v": pa.nulls(1)})
    with pytest.raises(fw.BadRowError):
        stream.process(untold, untold)
    told = pa.table({"k": ["a"], "ts": [5], "v": [1]})
    stream.process(told, told)
    assert stream.watermark == 3
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == 1
