"""Window joins on Spark: the same as in this process, with late rows of each input, and as Spark's own join."""

import threading
import warnings
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import TimerValues

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from fastwin.run.inputclocks import InputClocks
from spark_glue.plan.frameplan import FramePlan, JoinInput
from spark_glue.plan.keygroups import RECORD_ID
from spark_glue.plan.settings import FORMAT_KEY
from spark_glue.stages import joined, running
from spark_glue.stages.operator import WindowProcessor
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.packets import PacketKind
from tests.support.spark_events import START_MS
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_harness import packet_row
from tests.support.spark_streams import Recorder, Source, assert_same_rows, micro_batches, part, start
from tests.support.spark_versions import second_format

LEFT = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("v", pa.string())])
RIGHT = pa.schema([("id", pa.int32()), ("v", pa.int64()), ("at", pa.int64())])
DELAYS = (2_000, 10_000)
WINDOW = fw.SlidingEventTimeWindows.of("20 s", "10 s")


def left_rows(number: int) -> pa.Table:
    places = [(37 * i + 11 * number) % 101 for i in range(40)]
    times = [(START_MS + 30_000 * number + 500 * at) * 1_000 for at in places]
    return pa.table([[at % 7 for at in places], times, [f"{number}-{at}" for at in places]], schema=LEFT)


def right_rows(number: int) -> pa.Table:
    places = [(53 * i + 7 * number) % 97 for i in range(30)]
    seconds = [START_MS // 1_000 + 30 * number - 15 + at for at in places]
    return pa.table([[at % 8 for at in places], places, seconds], schema=RIGHT)


def matches(key, window, left, right):
    """How many pairs there are, and the first on the left, for each key and window of either input."""
    yield len(left) * len(right), min((row.v for row in left), default=None)


def inputs(lateness: str) -> tuple[fw.WindowSpec, fw.WindowSpec]:
    left = fw.key_by("k").event_time("ts").allowed_lateness(lateness).side_output_late_data()
    return left, fw.key_by("id").event_time("at", unit="s").side_output_late_data()


def join_of(how: str = "full", lateness: str = "0 s") -> fw.JoinSpec:
    return fw.window_join(*inputs(lateness), WINDOW, how)


def grouped(lateness: str = "0 s") -> fw.JoinSpec:
    return fw.co_group(*inputs(lateness), WINDOW, matches, output="pairs bigint, first string")


@pytest.fixture
def metrics(spark):
    """What a listener is told of the micro-batches while a test runs."""
    told: list[spark_glue.BatchMetrics] = []
    listener = spark_glue.metrics_listener(told.append)
    spark.streams.addListener(listener)
    yield told
    spark.streams.removeListener(listener)


def assert_holders(spark, told, batches, numbers) -> None:
    """Raises AssertionError unless a run was told who holds time back: the lesser of what its inputs have brought."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    clocks, left = InputClocks.begin(2, 0), iter(numbers)
    found = {one.batch_id: one for one in told}
    for batch in batches:
        if batch.inputs:
            number = next(left)
            newest = pc.max(left_rows(number)["ts"].cast(pa.int64())).as_py() // 1_000
            clocks = clocks.hear([newest, 1_000 * pc.max(right_rows(number)["at"]).as_py()], 0)
        one = found[batch.id]
        if batch is not batches[0]:
            assert (one.held_by_frame, one.held_by) == ("fastwin", clocks.holder(DELAYS, 0, None)), batch.id


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("made", [join_of, pytest.param(grouped, marks=pytest.mark.long)])
def test_a_stream_that_starts_again_gives_what_this_process_gives(spark, tmp_path, made, metrics):
    join = made(lateness="5 s")
    tables = ("left", LEFT, left_rows), ("right", RIGHT, right_rows)
    sources, batches = {}, []
    for name, schema, _ in tables:
        (tmp_path / name).mkdir()
        sources[name] = Source(tmp_path / name, schema)
    for numbers in ((0, 1), (2, 3)):
        for name, _, rows in tables:
            sources[name].put(*map(rows, numbers))
        frames = tuple(source.frame(spark) for source in sources.values())
        frame = spark_glue.apply(join, frames, watermark=tuple(f"{delay} ms" for delay in DELAYS), key_groups=4)
        recorder = Recorder()
        query = start(frame, tmp_path, recorder, available_now=True)
        query.awaitTermination()
        run = micro_batches(query, recorder)
        assert_holders(spark, metrics, run, numbers)
        batches += run
    stream = join.open(schemas=(LEFT, RIGHT))
    late = 0
    numbers = iter(range(4))
    for batch in batches:
        fired = [stream.advance_watermark(batch.watermark_ms)] if batch.watermark_ms is not None else []
        if batch.inputs:
            number = next(numbers)
            told = stream.process(left_rows(number), right_rows(number))
            for side in ("late_left", "late_right"):
                found, wanted = part(batch.rows, f"side_{side}"), told.side[side]
                if wanted.num_rows:
                    assert found.schema.field(0).type == wanted.schema.field(0).type  # the key is that of its input
                assert_same_rows(found.cast(wanted.schema) if wanted.num_rows else wanted, wanted)
                late += told.side[side].num_rows
            fired.append(told)
        mains = [result.main for result in fired if result.main.num_rows]
        found = part(batch.rows, "main")
        assert found.num_rows == sum(main.num_rows for main in mains)
        if mains:
            assert_same_rows(found, pa.concat_tables(mains))
    assert late > 0
    assert sum(batch.rows.num_rows for batch in batches) > 100
    told = spark_glue.inspect(str(tmp_path / "checkpoint"), join).toArrow()
    held = stream.inspect()
    names = ["k", "window_start", "window_end", "left_rows", "right_rows", "gone_at"]
    assert held.num_rows > 5
    assert_same_rows(told.select(names), held.select(names))
    report = spark_glue.why(query, join, key=3)
    mine = held.filter(pc.equal(held["k"], 3))
    assert [window.held for window in report.windows] == [True] * mine.num_rows
    assert [window.holds["left_rows"] for window in report.windows] == mine.sort_by("window_end")[
        "left_rows"
    ].to_pylist()
    if made is grouped:
        return
    with pytest.raises(
        StateError,
        match=r"another spec, .*window_join was 'full', .* is 'inner', left=\['ts', 'v'\], right=\['v_right', 'at'\]",
    ):
        spark_glue.why(query, fw.window_join(join.left, join.right, WINDOW), key=3)
    with pytest.raises(StateError, match="and not those of a join"):
        spark_glue.why(query, fw.window_join(join.right, join.left, WINDOW), key=3)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_batch_gives_what_spark_s_own_join_gives(spark, how):
    left, right = (pa.concat_tables([rows(0), rows(1)]) for rows in (left_rows, right_rows))
    frames = spark.createDataFrame(left), spark.createDataFrame(right)
    found = spark_glue.apply(join_of(how), frames, key_groups=4)
    found = found.drop("side_late_left", "side_late_right")
    assert_same_rows(found.toArrow(), join_of(how).run(left, right).main)
    window = F.window("ts", "20 seconds", "10 seconds").alias("w")
    theirs = F.window(F.timestamp_seconds("at"), "20 seconds", "10 seconds").alias("w")
    native = frames[0].select("*", window).alias("l").join(
        frames[1].select("*", theirs).alias("r"), F.expr("l.k = r.id and l.w = r.w"), how
    )  # fmt: skip
    native = native.selectExpr("l.k", "l.w.start window_start", "l.w.end window_end", "ts", "l.v", "r.v v_right", "at")
    assert_same_rows(found.select(native.columns).toArrow(), native.toArrow())


@pytest.mark.usefixtures("adaptive")
def test_a_function_is_given_the_rows_of_both(spark):
    left, right = (pa.concat_tables([rows(0), rows(1)]) for rows in (left_rows, right_rows))
    frames = spark.createDataFrame(left), spark.createDataFrame(right)
    found = spark_glue.apply(grouped(), frames, key_groups=4).drop("side_late_left", "side_late_right").toArrow()
    assert found.num_rows > 50
    assert_same_rows(found, grouped().run(left, right).main)


@second_format
def test_a_join_of_streams_is_warned_of_as_other_streams_are(spark, tmp_path):
    rate = spark.readStream.format("rate").load()
    frames = rate.selectExpr("value k", "timestamp ts", "'' v"), rate.selectExpr("1 id", "value v", "value at")
    spark.conf.set(FORMAT_KEY, "1")
    try:
        with pytest.warns(UserWarning, match=": ") as told:
            spark_glue.apply(join_of("inner"), frames, watermark=("1 s", "1 s"))
    finally:
        spark.conf.set(FORMAT_KEY, "2")
    texts = [str(one.message) for one in told if one.filename == __file__]
    assert [text.split(": ")[0] for text in texts] == [f"{FORMAT_KEY} is 1", "bad_rows"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark_glue.apply(join_of("inner"), frames, watermark=("1 s", "1 s"), max_future_skew=None)


@pytest.mark.parametrize("kind", ["int", "double", "date", "string", "timestamp"])
def test_event_times_are_of_the_types_that_one_input_may_have(spark, kind):
    left = spark.createDataFrame(left_rows(0))
    right = spark.createDataFrame(right_rows(0)).selectExpr("id", "v", f"cast(null as {kind}) at")
    with pytest.raises(SpecError, match=r"event_time: .*column 'at' ") as caught:
        spark_glue.apply(join_of("inner"), (left, right))
    alone = join_of("inner").right.window(WINDOW).aggregate(n=fw.Count())
    with pytest.raises(SpecError) as theirs:
        spark_glue.apply(alone, right)
    assert str(caught.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        ("collate('a', 'UTF8_LCASE')", "'a'", "key_by: column 'k' has the collation UTF8_LCASE"),
        ("'a'", "collate('a', 'UTF8_LCASE')", "key_by: column 'id' has the collation UTF8_LCASE"),
        (
            "interval '1' day",
            "interval '1 02:03:04' day to second",
            "window_join: the keys 'k' and 'id' are interval day and interval day to second; cast one of them",
        ),
    ],
)
def test_keys_that_spark_alone_tells_apart_are_refused(spark, left, right, says):
    frames = (
        spark.createDataFrame(left_rows(0)).selectExpr(f"{left} k", "ts", "v"),
        spark.createDataFrame(right_rows(0)).selectExpr(f"{right} id", "v", "at"),
    )
    with pytest.raises(SpecError) as caught:
        spark_glue.apply(join_of("inner"), frames)
    assert says in str(caught.value)


def test_bad_rows_are_told_by_the_column_of_their_input(spark):
    left = spark.createDataFrame(left_rows(0)).selectExpr("k", "cast(null as timestamp) ts", "v")
    frame = spark_glue.apply(join_of("inner"), (left, spark.createDataFrame(right_rows(0))), key_groups=1)
    with pytest.raises(PythonException, match="BadRowError: event_time 'ts': null timestamp in row 0 of the left"):
        frame.collect()


@pytest.fixture
def plans(monkeypatch) -> list[FramePlan]:
    """The plans of the packers and of the operator of a batch, which is not run."""
    found = []

    def pack(frame, plan):
        found.append(plan)
        return pack_frame(frame, plan)

    monkeypatch.setattr(joined, "pack_frame", pack)
    monkeypatch.setattr(running, "run_batch", lambda packed, plan, *_: found.append(plan) or packed)
    monkeypatch.setattr(joined, "_with_late_sides", lambda bound, frames, result: result)
    return found


@pytest.mark.parametrize("naive", [(), (0,), (1,)])
def test_a_checkpoint_is_held_to_the_zone_in_which_times_are_read(spark, plans, naive):
    def read_in(zone: str) -> FramePlan:
        spark.conf.set(key, zone)
        frames = [spark.createDataFrame(left_rows(0)), spark.createDataFrame(right_rows(0))]
        frames[1] = frames[1].selectExpr("id", "v", "timestamp_seconds(at) at")
        for side, time in enumerate(("ts", "at")):
            if side in naive:
                frames[side] = frames[side].withColumn(time, F.col(time).cast("timestamp_ntz"))
        spark_glue.apply(fw.window_join(starts[0], starts[1], WINDOW), tuple(frames))
        return plans[-1]

    def begin(plan: FramePlan) -> None:
        processor = WindowProcessor(plan)
        processor.init(handle)
        handle.key = RECORD_ID
        told = pd.DataFrame([packet_row(kind=int(PacketKind.RECORD))])
        list(processor.handleInputRows((RECORD_ID,), iter([told]), TimerValues(0, 0)))

    handle = FakeHandle()
    starts = fw.key_by("k").event_time("ts"), fw.key_by("id").event_time("at")
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    try:
        berlin, other = read_in("Europe/Berlin"), read_in("America/New_York")
    finally:
        spark.conf.set(key, before)
    begin(replace(berlin, time_zone=None))  # as checkpoints were made before
    begin(berlin)
    begin(berlin)
    if not naive:
        assert other.time_zone is None
        begin(other)
        return
    with pytest.raises(StateError, match=r"read in 'Europe/Berlin', and .* is 'America/New_York' now"):
        begin(other)


def test_each_input_is_packed_as_itself_and_late_rows_go_where_they_are_asked_for(spark, plans):
    left, right = inputs("0 s")
    right = fw.key_by("id").event_time("at")
    frames = spark.createDataFrame(left_rows(0)), spark.createDataFrame(right_rows(0))
    spark_glue.apply(fw.window_join(left, right, WINDOW), frames)
    packers, operator = plans[:2], plans[2]
    assert [one.join_input for one in packers] == [JoinInput("left", "ts", False), JoinInput("right", "at", True)]
    assert (operator.join_input, operator.late_inputs) == (None, (0,))


def test_a_function_that_cannot_travel_is_refused(spark):
    lock = threading.Lock()

    def locked(key, window, left, right):
        with lock:
            yield (len(left),)

    frames = spark.createDataFrame(left_rows(0)), spark.createDataFrame(right_rows(0))
    with pytest.raises(SpecError, match="spec: it cannot be sent to Spark's workers: TypeError: cannot"):
        spark_glue.apply(fw.co_group(*inputs("0 s"), WINDOW, locked, output="n bigint"), frames)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (["k", "ts", "v"], ["id", "at", "V"], "'v' and 'V'"),
        (["k", "ts"], ["id", "at", "K"], "'k' and 'K'"),
        (["k", "ts", "a", "A"], ["id", "at"], "'a' and 'A'"),
    ],
)
def test_columns_that_differ_in_case_alone_are_refused(left, right, says):
    schemas = [pa.schema([(name, pa.int64()) for name in names]) for names in (left, right)]
    sides = fw.key_by("k").event_time("ts"), fw.key_by("id").event_time("at")
    for join in (fw.window_join(*sides, WINDOW), fw.co_group(*sides, WINDOW, matches, output="pairs bigint, v string")):
        with pytest.raises(SpecError) as caught:
            joined._check_names(join.bind(*schemas), join.method)
        assert str(caught.value) == (
            f"{join.method}: the inputs have the columns {says}, which Spark cannot tell apart; rename one of them"
        )
        joined._check_names(join.bind(LEFT, RIGHT), join.method)


def test_arguments_that_do_not_fit_are_refused(spark, tmp_path):
    frames = spark.createDataFrame(left_rows(0)), spark.createDataFrame(right_rows(0))
    for arguments, said in (
        ({"df": frames[0]}, "df: a join needs a pair of Spark DataFrames"),
        ({"df": frames, "chain": True}, "chain: the result of a join"),
        ({"df": frames, "coalesce": "once"}, "coalesce: must be None, True or False, got 'once'"),
        ({"df": (frames[0], frames[1].withColumnRenamed("id", "x"))}, "there is no column 'id'"),
    ):
        with pytest.raises(SpecError) as caught:
            spark_glue.apply(join_of("inner"), **arguments)
        assert said in str(caught.value)
    each = fw.window_join(inputs("0 s")[0], inputs("0 s")[1].allowed_lateness("1 s", coalesce=False), WINDOW)
    with pytest.raises(SpecError, match=r"coalesce: got True, but the spec says allowed_lateness\(..., coalesce=False"):
        spark_glue.apply(each, frames, coalesce=True)
    stream = Source(tmp_path, LEFT).frame(spark)
    with pytest.raises(SpecError, match="two streaming frames, or two batch frames"):
        spark_glue.apply(join_of("inner"), (stream, frames[1]))
    with pytest.raises(SpecError, match="a pair such as"):
        spark_glue.apply(join_of("inner"), (stream, stream.selectExpr("k id", "v", "1L at")), watermark="1 s")
    spec = fw.key_by("k").event_time("ts").window(WINDOW).top(1, by="v")
    with pytest.raises(SpecError, match="a pair goes with a join alone"):
        spark_glue.apply(spec, stream, watermark=("1 s", "1 s"))
