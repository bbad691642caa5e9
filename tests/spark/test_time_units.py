"""int64 event times in seconds: read so on batch and streaming frames; warned of where nothing says so."""

import warnings

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from spark_glue.stages.pack import Packer
from tests.support.spark_events import START_MS, events
from tests.support.spark_jobs import frame_plan_for
from tests.support.spark_streams import assert_same_rows, part, parts, run_stream

SPEC = fw.key_by("k").window(fw.TumblingEventTimeWindows.of("1 minute"))


def spec_of(unit: str | None = "s") -> fw.WindowSpec:
    return SPEC.event_time("ts", unit=unit).aggregate(n=fw.Count(), total=fw.Sum("v"))  # type: ignore[arg-type]


def table(seed: int, n: int, start_ms: int = START_MS) -> pa.Table:
    made = events(seed, n, keys="bigint", start_ms=start_ms, span_ms=300_000)
    at = made.column_names.index("ts")
    seconds = made["ts"].cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    return made.set_column(at, "ts", seconds)


def test_a_batch_frame(spark):
    found = part(spark_glue.apply(spec_of(), spark.createDataFrame(table(1, 500))).toArrow(), "main")
    assert_same_rows(found, spec_of().run(table(1, 500)).main)


def test_a_stream(spark, tmp_path):
    tables = [table(i, 400) for i in range(3)]
    end = table(9, 1, START_MS + 86_400_000)
    batches = run_stream(spark, spec_of(), [*tables, end], tmp_path, watermark="10 minutes")
    assert_same_rows(parts(batches, "main"), spec_of().run(pa.concat_tables(tables)).main)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_timestamps_say_their_own_unit(spark, kind):
    frame = spark.range(3).selectExpr("id k", f"cast(timestamp_seconds(id) as {kind}) ts", "id v")
    with pytest.raises(fw.SpecError, match="event_time: unit='s' is for int64, but column 'ts' is timestamp"):
        spark_glue.apply(spec_of(), frame)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_task_warns_of_a_suspicious_unit_once(streaming):
    made = table(1, 100)

    def pack(unit: str | None) -> None:
        packer = Packer(frame_plan_for(made, spec_of(unit), streaming=streaming), 0)
        for batch in made.select(["k", "ts", "v"]).to_batches(max_chunksize=10):
            packer.add(batch.columns)
            packer._flush()

    with pytest.warns(UserWarning, match="event_time 'ts': .*unit='s'") as caught:
        pack(None)
    assert len([one for one in caught if "event_time" in str(one.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pack("s")


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_joined_frames(spark, unit):
    """Also of a time that overflows as milliseconds, and of one that doubles are too coarse for."""
    per_ms = {"s": 1, "ns": 1_000_000}[unit]
    times = [1_700_000_000_250 * per_ms, 2**63 - 1, -(2**63), None]
    side = fw.key_by("k").event_time("ts", unit=unit).bad_rows("drop")
    join = fw.window_join(side, side, fw.TumblingEventTimeWindows.of(250))
    left, right = (pa.table({"k": [1] * 4, "ts": pa.array(times, pa.int64()), name: range(4)}) for name in "ab")
    found = spark_glue.apply(join, (spark.createDataFrame(left), spark.createDataFrame(right))).toArrow()
    assert_same_rows(part(found, "main"), join.run(left, right).main)


def test_joined_frames_take_the_times_that_each_input_takes(spark):
    """Plain numbers beyond year 9999 on the one side; on the other they are instants."""
    plain, seconds = (fw.key_by("k").event_time("ts", unit=unit).bad_rows("drop") for unit in (None, "s"))
    join = fw.window_join(plain, seconds, fw.TumblingEventTimeWindows.of(1_000), "full")
    left, right = (
        pa.table({"k": [1, 2], "ts": [10**15, 10**15 // per], name: range(2)}) for name, per in (("a", 1), ("b", 1_000))
    )
    found = spark_glue.apply(join, (spark.createDataFrame(left), spark.createDataFrame(right))).toArrow()
    assert part(found, "main").num_rows == 2
    assert_same_rows(part(found, "main"), join.run(left, right).main)
