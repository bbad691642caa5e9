"""A query that counts a few events, and is left running."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
import spark_glue
from tests.support.spark_events import events
from tests.support.spark_streams import Recorder, Source, start

__all__ = ["started"]

SPEC = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute")).aggregate(n=fw.Count())


def started(spark: SparkSession, folder: Path, sink: Any = None) -> tuple[StreamingQuery, Recorder]:
    """Starts it in a new folder; the rows come to the sink, or to the recorder where there is none."""
    folder.mkdir()
    table = events(1, 200)
    source = Source(folder, table.schema)
    source.put(table)
    recorder = Recorder()
    query = start(spark_glue.apply(SPEC, source.frame(spark), watermark="1 minute"), folder, sink or recorder)
    return query, recorder
