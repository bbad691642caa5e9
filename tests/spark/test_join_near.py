"""Rows that are near in time, as docs/recipes.md joins them: on Spark each pair once, from tables and from streams."""

import itertools

import pyarrow as pa
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from tests.support.spark_streams import Recorder, Source, micro_batches, part, start

LEFT = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("at", pa.int64())])
NEAR, SLIDE = 30_000, 30_000
JOIN = fw.window_join(
    fw.key_by("k").event_time("ts"),
    fw.key_by("id").event_time("at"),
    fw.SlidingEventTimeWindows.of(NEAR + SLIDE, SLIDE),
)


def rows(step: int, number: int) -> list[tuple[int, int]]:
    """Times of up to four minutes a batch, not in order; some are whole slides apart."""
    return [(i % 3, 200_000 * number + i * step % 240 * 1_000) for i in range(30)]


def wanted(lefts: list[tuple[int, int]], rights: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    pairs = itertools.product(lefts, rights)
    return sorted((key, ts, at) for (key, ts), (other, at) in pairs if key == other and abs(at - ts) <= NEAR)


def kept(frame):
    """Those of the first window that has both; a window's end is a timestamp, times are milliseconds."""
    first = F.greatest("ts", "at") >= F.unix_millis("window_end") - SLIDE
    return frame.where(first & (F.abs(F.col("at") - F.col("ts")) <= NEAR))


def table(data: list[tuple[int, int]], schema: pa.Schema) -> pa.Table:
    return pa.table([list(column) for column in zip(*data, strict=True)], schema=schema)


def test_tables(spark):
    lefts, rights = rows(90, 0) + rows(7, 1), rows(30, 0) + rows(11, 1)
    frames = [spark.createDataFrame(table(*side)) for side in ((lefts, LEFT), (rights, RIGHT))]
    found = kept(spark_glue.apply(JOIN, tuple(frames), key_groups=3)).select("k", "ts", "at").collect()
    assert len(found) > 50
    assert sorted(map(tuple, found)) == wanted(lefts, rights)


def test_streams(spark, tmp_path):
    sources = []
    for name, schema, step in (("left", LEFT, 90), ("right", RIGHT, 30)):
        (tmp_path / name).mkdir()
        sources.append(Source(tmp_path / name, schema))
        sources[-1].put(*(table(rows(step, number), schema) for number in range(2)), table([(9, 10**7)], schema))
    frame = spark_glue.apply(JOIN, tuple(one.frame(spark) for one in sources), watermark=("1 hour",) * 2, key_groups=3)
    recorder = Recorder()
    query = start(kept(frame), tmp_path, recorder, available_now=True)
    query.awaitTermination()
    mains = [part(batch.rows, "main") for batch in micro_batches(query, recorder)]
    found = [tuple(row.values()) for main in mains for row in main.select(["k", "ts", "at"]).to_pylist()]
    assert len(found) > 50
    lefts, rights = ([row for number in range(2) for row in rows(step, number)] for step in (90, 30))
    assert sorted(found) == wanted(lefts, rights)  # those of the last rows have not fired
