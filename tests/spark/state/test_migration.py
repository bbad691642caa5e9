"""A query that goes on with the checkpoint of an earlier spec: what may change, with ``migrate=`` or without, and what
may not."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.run.replica import open_replica
from tests.soak.workload import tables
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import MicroBatch, Recorder, Source, assert_same_rows, micro_batches, part, start
from tests.support.variants import variants

BASE = fw.key_by("k").event_time("ts").bad_rows("drop")
SLIDING = BASE.window(fw.SlidingEventTimeWindows.of("1 minute", "20 seconds"))
KINDS = {
    "sliding": SLIDING,
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap("20 seconds")),
    "short sessions": BASE.window(fw.EventTimeSessionWindows.with_gap("3 seconds")),
    "general": BASE.window(fw.TumblingEventTimeWindows.of("1 minute")).with_pane_info(),
    "triggered": BASE.window(fw.TumblingEventTimeWindows.of("1 minute")).trigger(
        fw.after_watermark(early=fw.CountTrigger.of(5))
    ),
    "several": BASE.windows(
        one=fw.TumblingEventTimeWindows.of("1 minute"), two=fw.SlidingEventTimeWindows.of("2 minutes", "1 minute")
    ),
}
NARROW = pa.schema([("k", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int32()), ("x", pa.float32())])
WIDE = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64()), ("x", pa.float64())])
INPUTS = [events(i, 120, keys="int", start_ms=START_MS + i * 60_000, span_ms=90_000).cast(NARROW) for i in range(4)]
BEFORE, AFTER = INPUTS[:2], INPUTS[2:]


class Checkpoint:
    """A query over a folder, which is started again with one spec after the other."""

    def __init__(self, spark, folder, schema: pa.Schema) -> None:
        self.spark, self.folder = spark, folder
        self.source = Source(folder, schema)

    def put(self, inputs: list[pa.Table], schema: pa.Schema | None = None) -> None:
        """Adds input. schema: of all that is read from now on; Spark reads what is there already as wider, too."""
        self.source.schema = schema or self.source.schema
        self.source.put(*inputs)

    def frame(self) -> DataFrame:
        schema = self.spark.createDataFrame(self.source.schema.empty_table()).schema
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.source.folder))

    def go_on(self, spec: fw.WindowSpec, migrate=None, frame: DataFrame | None = None) -> list[MicroBatch]:
        """Runs a spec until all input is read."""
        frame = self.frame() if frame is None else frame
        frame = spark_glue.apply(spec, frame, watermark="5 s", key_groups=4, migrate=migrate)
        recorder = Recorder()
        query = start(frame, self.folder, recorder, available_now=True)
        query.awaitTermination()
        return micro_batches(query, recorder)

    def refuses(self, spec: fw.WindowSpec, says: str, migrate=None) -> None:
        """A start with this spec ends with a sentence, and the checkpoint is none the worse for it."""
        with pytest.raises(StreamingQueryException, match=f"{says}.*such a query needs a new checkpoint"):
            self.go_on(spec, migrate)


class Model:
    """A stream in this process, of the spec that the query began with; nothing stops it."""

    def __init__(self, spec: fw.WindowSpec, schema: pa.Schema) -> None:
        self.stream = open_replica(fw.plan(spec, schema, coalesce=True))

    def rows(self, batches: list[MicroBatch], inputs: list[pa.Table]) -> Iterator[pa.Table]:
        """Yields what it gives for each micro-batch."""
        left = iter(inputs)
        for batch in batches:
            results = [self.stream.advance_watermark(batch.watermark_ms or fw.MIN_TIMESTAMP)]
            if batch.inputs:
                results.append(self.stream.process(next(left)))
            yield pa.concat_tables([result.main for result in results])
        assert not list(left)

    def assert_gives(
        self, batches: list[MicroBatch], inputs: list[pa.Table], now: Callable[[pa.Table], pa.Table] = lambda rows: rows
    ) -> int:
        """Compares each micro-batch. now: gives rows as the spec that the query has now would. Returns how many."""
        count = 0
        for batch, rows in zip(batches, self.rows(batches, inputs), strict=True):
            assert_same_rows(part(batch.rows, "main"), now(rows))
            count += rows.num_rows
        return count


OLD = {"n": fw.Count(), "total": fw.Sum("v")}
NEW = {"high": fw.Max("v"), "n": fw.Count(), "total": fw.Sum("v"), "uv": fw.HyperLogLog("v")}


@pytest.mark.parametrize("kind", variants(["sliding", "sessions", "general"], "sliding"))
def test_a_longer_lateness_and_added_aggregates(spark, tmp_path, kind):
    """What windows that are open get from an aggregate that is new, a stream says that is restored in the same way."""

    inputs, state = tables(5, 9, 200), None
    checkpoint = Checkpoint(spark, tmp_path, inputs[0].schema)
    other_options = NEW | {"total": fw.Sum("v", on_overflow="null"), "uv": fw.HyperLogLog("v", output="sketch")}
    for start_number, (lateness, aggregates) in enumerate((("10 s", OLD), ("30 s", NEW), ("40 s", other_options))):
        spec, some = KINDS[kind].allowed_lateness(lateness).aggregate(**aggregates), inputs[:3]
        del inputs[:3]
        checkpoint.put(some)
        if start_number == 1:
            checkpoint.refuses(spec, r"high=Max\(.*\) is new.*migrate='added aggregates' allows that")
        model = Model(spec, some[0].schema)
        if state is not None:
            model.stream.restore(state, migrate="added aggregates")
        migrate = "added aggregates" if start_number == 1 else None
        assert model.assert_gives(checkpoint.go_on(spec, migrate), some)
        state = model.stream.snapshot()


MANY = {
    "n": fw.Count(),
    "total": fw.Sum("v"),
    "low": fw.Min("x"),
    "high": fw.Max("x"),
    "uv": fw.HyperLogLog("v"),
    "all": fw.Collect("v"),
    "first": fw.First("x"),
}
LEFT = ("uv", "low", "n")
CHANGES = {
    "removed": (
        "sliding",
        {name: MANY[name] for name in LEFT},
        {name: name for name in LEFT},
        "removed aggregates",
        r"aggregate all=Collect.* is missing; migrate='removed aggregates' drops it",
    ),
    "renamed": (
        "short sessions",
        MANY | {"high": fw.Min("x"), "low": fw.Max("x")},  # they change places
        {name: {"low": "high", "high": "low"}.get(name, name) for name in MANY},
        {"renamed low to high", "renamed high to low"},
        None,
    ),
    "wider": (
        "triggered",
        MANY,
        {name: name for name in MANY},
        "wider types",
        r"the keys were of int32, are of int64, which migrate='wider types' allows",
    ),
    "all at once": (
        "several",
        {"number": MANY["n"], "all": MANY["all"], "uv": MANY["uv"]},
        {"n": "number", "all": "all", "uv": "uv"},
        ["renamed n to number", "removed_aggregates", "wider_types"],
        None,
    ),
}


@pytest.mark.parametrize("change", variants(CHANGES, "all at once"))
def test_what_is_left_goes_on_as_if_nothing_had_changed(spark, tmp_path, change):
    """The rows are those of the first spec, which this process goes on with: under other names, without some columns,
    or of wider types."""
    kind, aggregates, names, migrate, says = CHANGES[change]
    first, then = KINDS[kind].aggregate(**MANY), KINDS[kind].aggregate(**aggregates)
    checkpoint, model = Checkpoint(spark, tmp_path, NARROW), Model(first, NARROW)
    checkpoint.put(BEFORE)
    assert model.assert_gives(checkpoint.go_on(first), BEFORE)

    def now(rows: pa.Table) -> pa.Table:
        others = [name for name in rows.column_names if name not in MANY]
        renamed = rows.select([*others, *names]).rename_columns([*others, *names.values()])
        return renamed.select([*others, *(name for name in aggregates)])

    checkpoint.put(AFTER[:1], WIDE if "wider" in str(migrate) else None)
    if says is not None:  # what a start without permission is told
        checkpoint.refuses(then, says)
    assert model.assert_gives(checkpoint.go_on(then, migrate), AFTER[:1], now)
    if change == "all at once":  # once all state has been written anew, the query needs no permission
        checkpoint.put(AFTER[1:])
        assert model.assert_gives(checkpoint.go_on(then), AFTER[1:], now)


@pytest.mark.long
def test_what_cannot_go_on_is_refused_and_nothing_is_lost(spark, tmp_path):
    spec, checkpoint = SLIDING.aggregate(**MANY), Checkpoint(spark, tmp_path, WIDE)
    model = Model(spec, WIDE)
    checkpoint.put(BEFORE)
    assert model.assert_gives(checkpoint.go_on(spec), BEFORE)
    every = {"added aggregates", "removed aggregates", "changed functions", "wider types"}
    checkpoint.put(AFTER, NARROW)
    checkpoint.refuses(
        spec, r"aggregate total was Sum\(.*\) of int64, is .* of int32.*keys were of int64, are of int32", every
    )
    checkpoint.put([], WIDE)
    says = "window was SlidingEventTimeWindows.*, is EventTimeSessionWindows"
    checkpoint.refuses(KINDS["sessions"].aggregate(**MANY), says, every)
    with pytest.raises(SpecError, match=r"migrate: must be None, .* got 'narrower types'"):
        checkpoint.go_on(spec, "narrower types")
    assert model.assert_gives(checkpoint.go_on(spec), AFTER)


@pytest.mark.long
def test_a_longer_varchar_goes_on_without_permission(spark, tmp_path):
    """Spark hands both over as text."""
    schema = pa.schema(
        [("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("name", pa.string()), ("v", pa.int64())]
    )
    spec = SLIDING.aggregate(n=fw.Count(), last=fw.Last("name"), names=fw.CollectSet("name"), total=fw.Sum("v"))
    checkpoint, model = Checkpoint(spark, tmp_path, schema), Model(spec, schema)
    made = []
    for number in range(4):
        rows = events(number, 120, keys="tinyint", start_ms=START_MS + number * 60_000, span_ms=90_000)
        texts = rows["k"].cast(pa.string())
        made.append(pa.table([texts, rows["ts"], texts, rows["v"]], schema=schema))
    try:
        for kind, some in (("VARCHAR(4)", made[:2]), ("VARCHAR(9)", made[2:3]), ("STRING", made[3:])):
            checkpoint.put(some)
            spark.sql("DROP TABLE IF EXISTS texts")
            spark.sql(
                f"CREATE TABLE texts (k {kind}, ts TIMESTAMP, name {kind}, v BIGINT) USING parquet "
                f"LOCATION '{checkpoint.source.folder}'"
            )
            frame = spark.readStream.option("maxFilesPerTrigger", 1).table("texts")
            assert model.assert_gives(checkpoint.go_on(spec, frame=frame), some)
    finally:
        spark.sql("DROP TABLE IF EXISTS texts")
