"""The rows that travel between the stages: packed input on the way in, result blobs and counters on the way out.

A blob is one Arrow record batch as an IPC message without its schema, which both sides know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd
import pyarrow as pa

from spark_glue.plan.outputs import ResultKind
from spark_glue.stages.counters import counters_text

__all__ = [
    "BLOB_BYTES",
    "LARGE_RESULT_BYTES",
    "MAX_BLOB_BYTES",
    "MOST_BINARY",
    "PACKED",
    "RESULT",
    "PackedRow",
    "Packet",
    "PacketKind",
    "cuts",
    "decode",
    "encode",
    "packed_batch",
    "packets_in",
    "pieces",
    "result_frames",
]

BLOB_BYTES = 128 << 10
"""Of how many bytes blobs are, about, in what grows with a backlog.

Spark puts blobs into record batches of at most 10,000 rows, and a column of binary values holds 2 GiB. So many of these
blobs are 1.3 GB, and the larger ones of all tasks (``pack.LARGE_BLOB_BYTES``) and of results fit beside them. That does
not hold for single rows that are longer: a blob has one at least. For these, Spark has to be set to fewer rows.
"""
LARGE_RESULT_BYTES = 256 << 20
"""How many bytes of results a task may hand out in larger blobs, each of which costs less than many small ones."""
MAX_BLOB_BYTES = 16 << 20
"""A result row holds at most about this many bytes; larger results are split."""

MOST_BINARY = 2**31 - 1
"""How many bytes a column of binary values holds: its int32 offsets reach no further."""

# Results up to so many bytes are put together first: offsets of 32 bits may not reach more lists or states.
_TOGETHER = 1 << 30

TIMESTAMP = pa.timestamp("us", tz="UTC")


PackedRow = tuple[int, int, int, int, int, pa.Buffer | None, int | None]
"""The values of one row of PACKED, with the carrier in microseconds."""


class PacketKind(IntEnum):
    """What a packed row holds."""

    GOOD = 0  # rows for the operator
    BAD = 1  # rows that the policy diverts; or, without a blob, only their number
    RECORD = 2  # nothing: it makes the query's own record be compared; and, where Spark makes the watermark, as CLOCK
    PARTIAL = 3  # partial results for the operator
    CLOCK = 4  # nothing: ``rows`` is the newest time, ms, of the input whose number is ``seq``


PACKED = pa.schema(
    [
        ("key_group", pa.int32()),  # the id of the key group, see keygroups
        ("mapper", pa.int32()),  # the packing task
        ("seq", pa.int32()),  # counts the task's flushes
        ("kind", pa.int32()),
        ("rows", pa.int64()),
        ("blob", pa.binary()),
        ("carrier", TIMESTAMP),  # null but in the row that carries the task's newest event time
    ]
)

RESULT = pa.schema(
    [
        ("kind", pa.int32()),
        ("blob", pa.binary()),
        ("counters", pa.string()),  # see counters_text
    ]
)


@dataclass(frozen=True, order=True, slots=True)
class Packet:
    """One packed row as the operator sees it; packets sort into the order in which they are used."""

    mapper: int
    seq: int
    kind: int
    rows: int
    blob: bytes | None


def encode(batch: pa.RecordBatch) -> pa.Buffer:
    """Returns a record batch as a blob. A slice costs only its own rows."""
    return batch.serialize()


def decode(blob: bytes | pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the record batch in a blob; zero-copy. ``schema`` is that of the batch when it was encoded."""
    return pa.ipc.read_record_batch(pa.py_buffer(blob), schema)


def packed_batch(rows: Sequence[PackedRow]) -> pa.RecordBatch:
    """Returns packed rows as a record batch; the blobs are copied once."""
    *numbers, blobs, carriers = zip(*rows, strict=True)
    columns = [pa.array(values, field.type) for values, field in zip(numbers, PACKED, strict=False)]
    return pa.RecordBatch.from_arrays([*columns, _binary(blobs), pa.array(carriers, TIMESTAMP)], schema=PACKED)


def packets_in(batch: pa.RecordBatch) -> Iterator[Packet]:
    """Yields the packed rows in a record batch."""
    names = ("mapper", "seq", "kind", "rows", "blob")
    return map(Packet, *(batch.column(name).to_pylist() for name in names))


def _binary(blobs: Sequence[pa.Buffer | None]) -> pa.Array:
    ends = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum([0 if blob is None else blob.size for blob in blobs], out=ends[1:])
    if ends[-1] > MOST_BINARY:
        raise OverflowError(
            f"packed rows of {ends[-1]} bytes, at most {MOST_BINARY} fit in a column of binary values: let Spark hand "
            f"over fewer rows at once (spark.sql.execution.arrow.maxRecordsPerBatch)"
        )
    data = b"".join(blob for blob in blobs if blob is not None)
    buffers = [_validity(blobs), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(blobs), buffers)


def _validity(blobs: Sequence[pa.Buffer | None]) -> pa.Buffer | None:
    if all(blob is not None for blob in blobs):
        return None
    return pa.array([blob is not None for blob in blobs]).buffers()[1]


def cuts(rows: pa.RecordBatch, most: int | None, span: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a span in pieces of about so many bytes; None: in one piece.

    Long rows may lie side by side, so a piece is halved until it is small enough, or one row.
    """
    waiting = [span]
    while waiting:
        begin, end = waiting.pop()
        if begin == end:
            continue
        piece = rows.slice(begin, end - begin)
        steps = 1 if most is None else -(-piece.nbytes // most)
        if steps <= 1 or end - begin == 1:
            yield piece
            continue
        step = -(-(end - begin) // min(steps, end - begin))
        waiting += reversed([(at, min(at + step, end)) for at in range(begin, end, step)])


def pieces(table: pa.Table) -> list[pa.RecordBatch]:
    """Returns a result table in batches of at most about MAX_BLOB_BYTES each; none for an empty one."""
    rows = max(1, int(table.num_rows * min(1.0, MAX_BLOB_BYTES / max(1, table.nbytes))))
    if table.nbytes <= _TOGETHER:
        table = table.combine_chunks()
    return table.to_batches(max_chunksize=rows)


def result_frames(blobs: Iterable[tuple[int, bytes]], counters: Mapping[str, int]) -> Iterator[pd.DataFrame]:
    """Yields result blobs as rows of RESULT, a few small ones or one large one per frame.

    The first row has the counters, the others none; without blobs, there is a row for the counters alone.
    """
    kinds: list[int] = []
    held: list[bytes | None] = []
    counts: str | None = counters_text(counters)
    size = 0
    for kind, blob in blobs:
        if held and size + len(blob) > MAX_BLOB_BYTES:
            yield _result_frame(kinds, held, counts)
            kinds, held, counts, size = [], [], None, 0
        kinds.append(int(kind))
        held.append(blob)
        size += len(blob)
    if held or counts is not None:
        yield _result_frame(kinds or [int(ResultKind.MAIN)], held or [None], counts)


def _result_frame(kinds: list[int], blobs: list[bytes | None], counts: str | None) -> pd.DataFrame:
    return pd.DataFrame({"kind": kinds, "blob": blobs, "counters": [counts, *[None] * (len(blobs) - 1)]})
