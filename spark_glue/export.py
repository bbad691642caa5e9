"""``export_state``: the open windows in the checkpoint of a stopped query, as files that people can read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import fastwin as fw
from fastwin.columns.schemas import text_to_schema
from fastwin.errors import SpecError, StateError
from fastwin.run.replica import open_replica
from fastwin.state.chunks import decode, owner
from spark_glue.plan.frameplan import LOCAL_MS
from spark_glue.plan.keygroups import LEDGER_ID, number_of
from spark_glue.state.log import joined, log_in

__all__ = ["export_state"]

WATERMARK_COLUMN = "watermark"


def export_state(checkpoint: str, spec: fw.WindowSpec, path: str, operator: int = 0) -> int:
    """Writes the open windows of a stopped query to Parquet files: what each would give if it fired now.

    checkpoint: the folder that the query was given as ``checkpointLocation``. spec: that of ``apply``. path: a local
    folder, which must not be there yet; it gets a file for each share. operator: which of the query's stateful
    operators, as Spark counts them.

    The columns are those of the result and ``watermark``, which the share had when it was visited last. Windows that
    have fired, and are kept for late elements alone, are not among them. The checkpoint is only read. State passes
    through the driver, share by share. Returns how many windows were written.

    Raises SpecError if there is no Spark session or ``path`` is there, StateError for state of another spec.
    """
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise SpecError("export_state: needs a Spark session; call spark_glue.session() first")
    folder = Path(path)
    if folder.exists():
        raise SpecError(f"path: {path} is there already; name a new folder")
    written = 0
    for share, deltas in _logs(spark, checkpoint, operator):
        table = _open_windows(spec, deltas)
        if table.num_rows:
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, folder / f"share-{share:05d}.parquet")
            written += table.num_rows
    return written


def _logs(spark: SparkSession, checkpoint: str, operator: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yields each share's number and the deltas of its log."""
    reader = spark.read.format("statestore").option("operatorId", operator)
    heads = reader.option("stateVarName", "head").load(checkpoint)
    chunks = reader.option("stateVarName", "chunks").load(checkpoint)
    for group, head in heads.select("key.key_group", "value.head").collect():
        if group == LEDGER_ID:
            continue
        mine = chunks.where(F.col("key.key_group") == group)
        parts = {n: bytes(data) for n, data in mine.select("user_map_key.chunk", "user_map_value.data").collect()}
        yield number_of(group), [joined(parts, entry) for entry in log_in(bytes(head)).entries]


def _open_windows(spec: fw.WindowSpec, deltas: list[bytes]) -> pa.Table:
    if not deltas:
        return pa.table({})
    schema = text_to_schema(decode(deltas[-1], owner(deltas[-1])).meta["input_schema"])
    if LOCAL_MS in schema.names:
        spec = replace(spec, time_column=LOCAL_MS)
    stream = open_replica(fw.plan(spec, schema, hidden=(LOCAL_MS,)), coalesce=True)
    try:
        stream.catch_up(deltas)
    except StateError as problem:
        raise StateError(f"export_state: {problem}") from problem
    watermark = stream.watermark
    fired = [stream.advance_watermark(fw.MAX_TIMESTAMP).main, stream.finish_processing_time().main]
    table = pa.concat_tables(fired)
    told = None if watermark == fw.MIN_TIMESTAMP else watermark
    return table.append_column(WATERMARK_COLUMN, pa.array([told] * table.num_rows, pa.timestamp("ms", tz="UTC")))
