"""What streams of the specs in ``stored_specs`` are fed with, and where lies what they have saved."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

import fastwin as fw

__all__ = [
    "BATCHES", "EVENTS", "SAVED", "SCHEMA", "START_MS", "STEP_MS", "STORED", "events", "feed", "folder_of", "main_rows",
]  # fmt: skip

STORED = Path(__file__).resolve().parent / "stored"
EVENTS = STORED / "state" / "events.arrow"
"""What all streams are fed with; the column ``batch`` says in which of the BATCHES an event comes."""

START_MS = 1_700_000_000_000
STEP_MS = 20_000
BATCHES = 4
SAVED = ("snapshot", "delta1", "delta2")
"""What is saved after each batch but the last."""

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("i", pa.int32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.decimal128(12, 2)),
        ("s", pa.string()),
        ("gap", pa.int64()),
    ]
)


def events(batch: int) -> pa.Table:
    """Returns the events of a batch."""
    table = pa.ipc.open_file(EVENTS).read_all()
    return table.filter(pa.compute.equal(table["batch"], batch)).drop_columns(["batch"]).cast(SCHEMA)


def feed(stream: fw.Stream, batch: int, rows: pa.Table | None = None) -> list[fw.Result]:
    """Feeds a batch, or ``rows`` for it, to a stream, then the watermark behind it; after the last one, that of the end."""
    last = batch == BATCHES - 1
    results = [
        stream.advance_processing_time(START_MS + batch * STEP_MS),
        stream.process(events(batch) if rows is None else rows),
        stream.advance_watermark(fw.MAX_TIMESTAMP if last else START_MS + (batch + 1) * STEP_MS + 8_000),
    ]
    return [*results, stream.finish_processing_time()] if last else results


def folder_of(version: int) -> Path:
    """Returns where state of a format lies."""
    return STORED / ("state" if version == 4 else f"state-{version}")


def main_rows(results: Iterable[fw.Result]) -> pa.Table:
    """Returns the main rows of results, in the order of their columns' values."""
    table = pa.concat_tables([result.main for result in results])
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
