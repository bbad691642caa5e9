"""Shows an example's results: `python NAME.py` over a table, `python NAME.py --spark` on a Spark stream."""

import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fastwin as fw

__all__ = ["show"]


def show(spec: Any, batches: Sequence[Any], watermark: Any) -> None:
    """Prints what a spec makes of some batches of events; of a join, a batch is a pair of tables.

    watermark: for the Spark stream, how far events may be out of order; None: the windows need no event time.
    """
    inputs = zip(*batches, strict=True) if isinstance(spec, fw.JoinSpec) else [batches]
    if "--spark" in sys.argv[1:]:
        _show_stream(spec, list(inputs), watermark)
    else:
        print("over the whole table:")
        found = spec.run(*map(pa.concat_tables, inputs))
        _print(found.main)
        for tag, rows in found.side.items():
            if rows.num_rows:
                print(f"side output {tag}:")
                _print(rows)


def _show_stream(spec: Any, inputs: Sequence[Sequence[pa.Table]], watermark: Any) -> None:
    import spark_glue

    config = {"spark.ui.enabled": False, "spark.log.level": "ERROR"}
    spark = spark_glue.session(app_name="fastwin example", master="local[2]", config=config)
    with tempfile.TemporaryDirectory() as folder:
        frames = [_frame(spark, Path(folder, f"input {i}"), batches) for i, batches in enumerate(inputs)]
        if len(frames) == 1:
            frame = spark_glue.apply(spec.bad_rows("drop"), frames[0], watermark=watermark, key_groups=4)
        else:
            frame = spark_glue.apply(spec, tuple(frames), watermark=watermark, key_groups=4)

        def sink(rows, batch_id: int) -> None:
            print(f"micro-batch {batch_id}:")
            _print(rows.toArrow())

        writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{folder}/checkpoint")
        writer.foreachBatch(sink).start().awaitTermination()
    spark.stop()


def _frame(spark: Any, files: Path, batches: Sequence[pa.Table]) -> Any:
    """Returns a streaming frame that brings a batch at a time."""
    files.mkdir()
    for number, batch in enumerate(batches):
        path = files / f"{number}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (number, number))  # Spark takes the oldest first
    schema = spark.read.parquet(str(files)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))


def _print(table: pa.Table) -> None:
    rows = table.to_pylist()
    moments = [value for row in rows for value in row.values() if isinstance(value, datetime)]
    shown = "%H:%M:%S" if len({moment.date() for moment in moments}) == 1 else "%Y-%m-%d %H:%M:%S"
    for row in rows:
        words = (
            f"{name}={value:{shown}}" if isinstance(value, datetime) else f"{name}={value}"
            for name, value in row.items()
        )
        print("  " + ", ".join(words))
