"""``export_state``: what is in the checkpoint of a stopped query, for people, and for another query to go on from."""

import logging
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.run.choice import trigger_of
from fastwin.run.replica import Replica
from fastwin.state.chunks import owner
from fastwin.state.identity import StateSpec
from spark_glue.state.cutparts import STATE, cut
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint, files_in, local_folder
from spark_glue.state.stored import Checkpoint, replica_of, stopped_checkpoint, types_of

__all__ = ["export_state"]

_LOG = logging.getLogger(__name__)

WATERMARK_COLUMN = "watermark"


def export_state(
    checkpoint: str | Path | StreamingQuery, spec: fw.WindowSpec, path: str | Path, operator: int = 0
) -> int:
    """Writes the state of a stopped query to files: Parquet that people can read, and what another query starts from.

    checkpoint: the folder that the query was given as ``checkpointLocation``, or the query itself. spec: that of
    ``apply``. path: a folder of this machine, which must not be there yet; it gets a file for each share. Where another
    query starts from it on a cluster, it is on a disk that driver and executors share. operator: which of the query's
    stateful operators, as Spark counts them.

    There is a row for each open window, with what it would give if it fired now: the columns are those of the result
    and ``watermark`` (``watermark_`` where the result has that), which the share had when it was visited last. Windows
    that have fired, and are kept for late elements alone, are not among them. With a trigger that does not fire each
    window once at its end, such as CountTrigger, the columns are those of ``Stream.inspect``, with timers and what has
    fired, and ``watermark``.

    Beside these, where readers of Parquet do not look, is all state as it is: ``apply(..., history=path)`` goes on from
    it, with other numbers of key groups and partitions too. The checkpoint is only read. State passes through the
    driver, share by share. Returns how many windows were written for people.

    The files appear all at once, when the last one is written. The input of the other query begins where the last
    finished micro-batch has ended; its number is ``batch`` in ``_savepoint.json``. Raises SpecError if there is no
    Spark session, if ``path`` is there, or is a URI such as ``s3://...``, for a checkpoint without state, for a
    micro-batch that was begun and not finished, or if the query goes on meanwhile; StateError for state of another
    spec.
    """
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    folder = _folder(path)
    stored = Checkpoint(stopped_checkpoint(checkpoint), operator, "export_state")
    if folder.exists():
        raise SpecError(f"path: {path} is there already; name a new folder")
    hidden = folder.with_name(f".{folder.name}.{os.getpid()}")
    written, watermark, fingerprint = 0, fw.MIN_TIMESTAMP, b""
    types: StateSpec | None = None
    heads = stored.heads.values()
    last = stored.last_batch()
    try:
        (hidden / STATE_FOLDER).mkdir(parents=True)
        for share, deltas in stored.shares():
            if not deltas:
                continue
            stream = replica_of(spec, deltas, "export_state")
            types = types_of(stream, types, "export_state")
            fingerprint, watermark = owner(deltas[-1]), max(watermark, stream.watermark)
            parts = stream.parts(next(iter(heads)).key_groups)
            state = pa.Table.from_batches(cut(parts), STATE)
            # In one row group, so that one task reads all pieces of a part.
            path = hidden / STATE_FOLDER / f"share-{share:05d}.parquet"
            pq.write_table(state, path, row_group_size=max(1, state.num_rows))
            table = _windows(spec, stream)
            if table.num_rows:
                pq.write_table(table, hidden / f"share-{share:05d}.parquet")
                written += table.num_rows
        if not fingerprint:
            raise SpecError(
                "export_state: the checkpoint has no state: no good row has come yet, or all windows are gone; start "
                "the new query without history="
            )
        progress = stored.progress()
        marks = []
        if progress is not None and stored.operators == 1:  # else it may be the watermark of others
            marks = [progress.watermark, progress.next_watermark]
        reached = max([watermark, *(mark for mark in marks if mark is not None)])
        mark = None if reached < 0 else reached
        stored.last_batch()  # asked again: the query may have gone on meanwhile
        files = files_in(hidden / STATE_FOLDER)
        told = None if types is None else types.to_json()
        key_groups = next(iter(heads)).key_groups
        Savepoint(key_groups, mark, fingerprint.hex(), last, stored.time_zone, files, told).write(hidden)
        hidden.rename(folder)
        _LOG.info("export_state: %s has %d windows, and all state up to micro-batch %d", folder, written, last)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return written


def _folder(path: object) -> Path:
    folder = local_folder(path) if isinstance(path, str | Path) and str(path) else None
    if folder is None:
        raise SpecError(
            f"export_state: path must be a folder that this process can write, such as '/mnt/shared/saved', "
            f"got {path!r}"
        )
    return folder


def _fires_once(spec: fw.WindowSpec) -> bool:
    """Returns whether each window fires once, at its end."""
    if spec.assigner is None:
        return True
    trigger = trigger_of(spec)
    inner = trigger.trigger if isinstance(trigger, fw.PurgingTrigger) else trigger
    return isinstance(inner, fw.EventTimeTrigger | fw.ProcessingTimeTrigger)


def _windows(spec: fw.WindowSpec, stream: Replica) -> pa.Table:
    """Returns the windows of a stream for people; the stream is of no use then."""
    watermark = stream.watermark
    if _fires_once(spec):
        fired = [stream.advance_watermark(fw.MAX_TIMESTAMP).main, stream.finish_processing_time().main]
        table = pa.concat_tables(fired)
    else:
        table = stream.inspect()
    told = None if watermark == fw.MIN_TIMESTAMP else watermark
    name, names = WATERMARK_COLUMN, {column.lower() for column in table.column_names}
    while name in names:  # Spark would not read two of one name
        name += "_"
    return table.append_column(name, pa.array([told] * table.num_rows, pa.timestamp("ms", tz="UTC")))
