"""Distinct counts, variances, picks, kept values and conditions on Spark: the same as in this process, batch and stream."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import fastwin as fw
import spark_glue
from fastwin import hyperloglog
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import assert_same_rows, parts, run_stream
from tests.support.variants import variants

WINDOWS = {
    "sliding": fw.SlidingEventTimeWindows.of("2 minutes", "25 s"),
    "session": fw.EventTimeSessionWindows.with_gap("3 s"),
}
FAR_MS = START_MS + 86_400_000


def spec_of(windows: str) -> fw.WindowSpec:
    return (
        fw.key_by("k")
        .event_time("ts")
        .window(WINDOWS[windows])
        .aggregate(
            uv=fw.HyperLogLog("w"), sketch=fw.HyperLogLog("v", output="sketch"), var=fw.Variance("v"),
            sd=fw.StdDev("x", ddof=0), first=fw.First("w"), last=fw.Last("v"), low=fw.ArgMin("w", by="x"),
            high=fw.ArgMax("at", by="v"), few=fw.Count(where=pc.field("v") > 0), doubled=fw.Sum(pc.field("v") * 2),
            odd=fw.BitXor("v"), skew=fw.Skewness("v"), covar=fw.Covar("v", "x"), null=fw.First("w", ignore_nulls=False),
            some=fw.Last("w", where=pc.less(pc.utf8_length(pc.field("w")), 3)),
            p90=fw.Quantile("x", 0.9), mid=fw.Median("x"), users=fw.CountDistinct("w"), once=fw.Sum("v", distinct=True),
            top=fw.TopK("w", 3), mode=fw.Mode("v"), newest=fw.Largest("at", 2), least=fw.Smallest("w", 2),
            path=fw.Collect("at", limit=4), texts=fw.CollectSet("w"), joined=fw.StringAgg("w", "|", where=pc.field("v") > 0),
            point=fw.ArgMax("point", "v"), points=fw.Collect("point", limit=2),
        )
    )  # fmt: skip


def with_more(table: pa.Table, seed: int) -> pa.Table:
    """The events at times of which no two are equal, with a text and a time of their own."""
    spread = np.random.default_rng(seed).permutation(len(table)) * 3 + seed % 3
    first = pc.min(table["ts"].cast(pa.int64())).as_py() // 1_000 // 120_000 * 120_000
    times = (
        pa.array(first + spread * 50, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(table.schema.field("ts").type)
    )
    table = table.set_column(table.column_names.index("ts"), "ts", times)
    texts = [None if i % 7 == 0 else f"é{(i * 31 + seed) % 97}" for i in range(len(table))]
    points = [None if text is None else {"text": text, "list": [len(text), None]} for text in texts]
    point = pa.array(points, pa.struct([("text", pa.string()), ("list", pa.list_(pa.int64()))]))
    columns = {"w": pa.array(texts), "at": table["ts"], "point": point}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **columns})


def assert_same(found: pa.Table, wanted: pa.Table) -> None:
    """The same rows; floats may differ in their last digits, which depend on how rows are split."""
    floats = ["var", "sd", "skew", "covar"]
    assert_same_rows(found.drop_columns(floats), wanted.drop_columns(floats))
    order = [("k", "ascending"), ("window_start", "ascending")]
    for name in floats:
        mine, theirs = (table.sort_by(order)[name].to_pylist() for table in (found, wanted))
        assert [value is None for value in mine] == [value is None for value in theirs]
        assert [value for value in mine if value is not None] == pytest.approx(
            [value for value in theirs if value is not None], rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("windows", WINDOWS)
def test_batch_frames(spark, tmp_path, windows):
    tables = [with_more(events(seed, 1_500, keys="bigint"), seed) for seed in range(2)]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    result = spark_glue.apply(spec_of(windows), spark.read.parquet(str(tmp_path)))
    assert result.schema["uv"].dataType == T.LongType()
    assert result.schema["sketch"].dataType == T.BinaryType()
    assert result.schema["first"].dataType == T.StringType()
    assert result.schema["var"].dataType == T.DoubleType()
    assert result.schema["top"].dataType.simpleString() == "array<struct<value:string,count:bigint>>"
    found, wanted = result.toArrow(), spec_of(windows).run(pa.concat_tables(tables)).main
    assert_same(found, wanted)
    assert hyperloglog.estimate(found["sketch"].to_pylist()) == hyperloglog.estimate(
        hyperloglog.sketch(pa.concat_tables(tables)["v"])
    )


@pytest.mark.parametrize("windows", variants(WINDOWS, "session"))
def test_streams(spark, tmp_path, windows):
    tables = [
        with_more(events(i, 600, keys="bigint", start_ms=START_MS + i * 120_000, span_ms=300_000), i) for i in range(3)
    ]
    closing = with_more(events(99, 1, keys="bigint", start_ms=FAR_MS), 1).select(tables[0].column_names)
    batches = run_stream(spark, spec_of(windows), [*tables, closing], tmp_path, watermark="10 minutes")
    main = parts(batches, "main")
    before = pc.less(main["window_start"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), FAR_MS - 200_000)
    wanted = spec_of(windows).run(pa.concat_tables(tables)).main
    assert_same(main.filter(before), wanted)
