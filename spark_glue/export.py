"""``export_state``: the open windows in the checkpoint of a stopped query, as files that people can read."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.run.choice import trigger_of
from spark_glue.state.stored import Checkpoint, checkpoint_of, replica_of

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

    The files appear all at once, when the last one is written. Raises SpecError if there is no Spark session, if
    ``path`` is there, or for a trigger that does not fire each window once at its end, such as CountTrigger; StateError
    for state of another spec.
    """
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    _check_trigger(spec)
    stored = Checkpoint(checkpoint_of(checkpoint), operator, "export_state")
    folder = Path(path)
    if folder.exists():
        raise SpecError(f"path: {path} is there already; name a new folder")
    hidden = folder.with_name(f".{folder.name}.{os.getpid()}")
    written = 0
    try:
        for share, deltas in stored.shares():
            table = _open_windows(spec, deltas)
            if table.num_rows:
                hidden.mkdir(parents=True, exist_ok=True)
                pq.write_table(table, hidden / f"share-{share:05d}.parquet")
                written += table.num_rows
        if written:
            hidden.rename(folder)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return written


def _check_trigger(spec: fw.WindowSpec) -> None:
    """Raises SpecError unless each window fires once at its end."""
    if spec.assigner is None:
        return
    trigger = trigger_of(spec)
    inner = trigger.trigger if isinstance(trigger, fw.PurgingTrigger) else trigger
    if not isinstance(inner, fw.EventTimeTrigger | fw.ProcessingTimeTrigger):
        raise SpecError(
            f"export_state: it writes what windows give at their end, and the trigger {trigger} fires at other times; "
            f"EventTimeTrigger and ProcessingTimeTrigger can be exported"
        )


def _open_windows(spec: fw.WindowSpec, deltas: list[bytes]) -> pa.Table:
    if not deltas:
        return pa.table({})
    stream = replica_of(spec, deltas, "export_state")
    watermark = stream.watermark
    fired = [stream.advance_watermark(fw.MAX_TIMESTAMP).main, stream.finish_processing_time().main]
    table = pa.concat_tables(fired)
    told = None if watermark == fw.MIN_TIMESTAMP else watermark
    return table.append_column(WATERMARK_COLUMN, pa.array([told] * table.num_rows, pa.timestamp("ms", tz="UTC")))
