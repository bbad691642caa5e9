"""Shows an example's results: `python NAME.py` as a stream in this process, `python NAME.py --spark` on Spark."""

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

    watermark: how far events may be out of order; None: the windows need no event time.
    """
    pairs = isinstance(spec, fw.JoinSpec)
    if "--spark" in sys.argv[1:]:
        _show_on_spark(spec, list(zip(*batches, strict=True)) if pairs else [batches], watermark)
        return
    stream = spec.open(watermark=watermark)
    for number, batch in enumerate(batches, 1):
        result = stream.process(*batch) if pairs else stream.process(batch)
        _show(f"batch {number}", result)  # the watermark has moved behind the newest event of the batch
    _show("the end of the input", stream.advance_watermark(fw.MAX_TIMESTAMP))


def _show(when: str, result: Any) -> None:
    others = {"late": result.late} | {f"side output {tag}": rows for tag, rows in result.side.items()}
    others = {name: rows for name, rows in others.items() if rows.num_rows}
    print(f"{when}:" if result.main.num_rows or others else f"{when}: nothing")
    _print(result.main)
    for name, rows in others.items():
        print(f"  {name}:")
        _print(rows, "    ")


def _show_on_spark(spec: Any, inputs: Sequence[Sequence[pa.Table]], watermark: Any) -> None:
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


def _print(table: pa.Table, indent: str = "  ") -> None:
    rows = table.to_pylist()
    moments = [value for row in rows for value in row.values() if isinstance(value, datetime)]
    shown = "%H:%M:%S" if len({moment.date() for moment in moments}) == 1 else "%Y-%m-%d %H:%M:%S"
    for row in rows:
        words = (
            f"{name}={value:{shown}}" if isinstance(value, datetime) else f"{name}={value}"
            for name, value in row.items()
        )
        print(indent + ", ".join(words))
