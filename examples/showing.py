"""Shows an example's results: `python NAME.py` over a table, `python NAME.py --spark` on a Spark stream."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import fastwin as fw

__all__ = ["show"]


def show(spec: fw.WindowSpec, batches: Sequence[pa.Table], watermark: str | None) -> None:
    """Prints what a spec makes of some batches of events.

    watermark: for the Spark stream, how far events may be out of order; None: the windows need no event time.
    """
    if "--spark" in sys.argv[1:]:
        _show_stream(spec, batches, watermark)
    else:
        print("over the whole table:")
        _print(spec.run(pa.concat_tables(batches)).main)


def _show_stream(spec: fw.WindowSpec, batches: Sequence[pa.Table], watermark: str | None) -> None:
    import spark_glue

    config = {"spark.ui.enabled": False, "spark.log.level": "ERROR"}
    spark = spark_glue.session(app_name="fastwin example", master="local[2]", config=config)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "events")
        files.mkdir()
        for number, batch in enumerate(batches):
            pq.write_table(batch, files / f"{number}.parquet")
        schema = spark.read.parquet(str(files)).schema
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
        frame = spark_glue.apply(spec.bad_rows("drop"), events, watermark=watermark, key_groups=4)

        def sink(rows, batch_id: int) -> None:
            print(f"micro-batch {batch_id}:")
            _print(rows.toArrow())

        writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{folder}/checkpoint")
        writer.foreachBatch(sink).start().awaitTermination()
    spark.stop()


def _print(table: pa.Table) -> None:
    for row in table.to_pylist():
        words = (
            f"{name}={value:%H:%M:%S}" if hasattr(value, "strftime") else f"{name}={value}"
            for name, value in row.items()
        )
        print("  " + ", ".join(words))
