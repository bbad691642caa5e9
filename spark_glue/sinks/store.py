"""``to_store``: a sink for foreachBatch that keeps the panes of a stream in a pane store."""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, is_remote
from pyspark.sql import functions as F

import fastwin as fw
from fastwin.callers import callers_level
from fastwin.errors import FastwinError, SpecError, StoreError, StoreUnavailableError
from fastwin.spec.panes import window_of
from fastwin.spec.resultcolumns import BOUNDS, WINDOW_END
from fastwin.store import PaneStore, Revision, Written
from fastwin.times import Duration, to_ms
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.catalyst import partitions_of, quoted
from spark_glue.plan.queries import checkpoint_folder, counted, query_id_of, query_of
from spark_glue.plan.types import arrow_schema
from spark_glue.sinks.outputs import check_main_alone
from spark_glue.sinks.patience import patiently
from spark_glue.stages.counters import WATERMARK
from spark_glue.state.checkpointfiles import CheckpointFiles

__all__ = ["StoreSink", "to_store"]

_LOG = logging.getLogger(__name__)
_ROWS_AT_ONCE = 100_000
_REPORT = (
    "stored long, outdated long, expired long, refused long, refused_key string, replaced long, first long, "
    "last long, problem string, server string"
)


def to_store(
    url: str,
    spec: fw.WindowSpec,
    *,
    retention: Duration | None = None,
    patience: Duration = "2 minutes",
    accept_loss: bool = False,
) -> "StoreSink":
    """Returns a function for ``foreachBatch`` that puts the panes of each micro-batch into a store.

    url: see ``PaneStore.open``: ``redis://...`` is written by the executors, each its own rows, in pipelined batches;
        ``rocksdb:PATH`` by the driver, which holds the store open for writing while the sink lives (``close`` it). With
        Spark Connect the sink runs on the server: a URL means what it means there, and the store has no record of which
        batches it was given.
    spec: the windows' specification; the stream runs its panes, as wide as the slide::

            frame = spark_glue.apply(spec.panes(), df, watermark="1 minute")
            query = frame.writeStream.foreachBatch(spark_glue.to_store(url, spec)).start()

        For panes of another width, ``spec.panes(width)`` in both places.
    retention: how long before the watermark panes are kept; None: eight windows. Queries that write into one store
        have one watermark, that of the first of them. The panes of one that lags behind by more than retention are left
        out; the sink warns once, and counts them in ``written``.
    patience: how long a batch goes on trying while the store is out of reach, slow or restarting. Then the task fails,
        and Spark runs it again as often as it does for any task.
    accept_loss: go on with a store that went back, as a Redis does that starts from an old dump. The sink warns, and
        the store's ``since`` moves behind the loss. Otherwise that is an error.

    Every start of a query has an epoch of its own, so that its panes win over those of earlier runs, whose batches can
    not overwrite them any more. A batch that is run again sets the same panes. The store's watermark moves when
    a micro-batch is written whole; the store then also notes the number of the batch. Raises SpecError for arguments
    that do not fit; StoreError ends the query.
    """
    return StoreSink(url, spec, retention, patience, accept_loss)


class StoreSink:
    """The sink that ``to_store`` returns; call it with the frame and the number of each micro-batch, empty ones too.

    written: what was done in all its batches: panes stored, those that were left out, and values that were mended.
    """

    def __init__(
        self,
        url: str,
        spec: fw.WindowSpec,
        retention: Duration | None,
        patience: Duration,
        accept_loss: bool,
    ) -> None:
        if not isinstance(spec, fw.WindowSpec):
            raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
        self._url, self._retention, self._accept_loss = url, retention, accept_loss
        self._patience = to_ms(patience, argument="patience") / 1_000
        self._panes = spec if spec.origin is not None else spec.panes()
        # With Spark Connect the sink travels to the server, and opens the store there.
        self._store: PaneStore | None = None if is_remote() else self._opened()
        self._closed = False
        self._epoch = self._last = -1
        self.written = Written()
        assert self._panes.ending is not None
        self._columns = [*self._panes.keys, *BOUNDS, *self._panes.ending.names]

    def close(self) -> None:
        """Lets go of the store, for another writer."""
        if self._store is not None:
            self._store.close()
            self._store = None
        self._closed = True

    def _opened(self) -> PaneStore:
        return PaneStore.open(self._url, self._panes, retention=self._retention)

    def __call__(self, frame: DataFrame, batch_id: int) -> Written:
        """Writes the panes of one micro-batch; returns what was done."""
        if self._closed:
            raise StoreError("to_store: this sink was closed")
        check_main_alone(frame, "to_store")
        if self._store is None:
            self._store = self._opened()
        store = self._store
        written = patiently(lambda: self._write(store, frame, batch_id), self._patience)
        self.written += written
        return written

    def _write(self, store: PaneStore, frame: DataFrame, batch_id: int) -> Written:
        if batch_id < self._last or self._epoch < 0:  # counted anew: another checkpoint
            self._epoch = store.new_epoch()
        query = query_id_of(frame)
        if query is not None:
            self._check_known(store, frame, query, batch_id)
        try:
            store.begin_batch()
        except StoreUnavailableError:
            raise
        except StoreError as problem:
            self._lost(store, str(problem))
            store.begin_batch()
        self._last = batch_id
        there = [name for name in self._columns if name != WINDOW_END or name in frame.columns]
        panes = frame.select(*(F.col(quoted(name)) for name in there))
        write = self._from_driver if store.one_writer else self._from_executors
        written = write(panes, (self._epoch, batch_id))
        mark = None if query is None else (query, batch_id)
        end = self._end(store, frame, written.last)
        if end is not None or mark is not None:
            store.advance_watermark(end, written.first, mark=mark)
        left_out = written.expired + written.refused
        _LOG.debug("to_store: batch %d: %d panes were put, %d left out", batch_id, written.stored, left_out)
        return written

    def _end(self, store: PaneStore, frame: DataFrame, last: int | None) -> int | None:
        """Returns up to where all panes are there now, ms: by the stream's watermark, which goes on in quiet times.

        last: the start of the last pane that was not left out. None: neither tells.
        """
        query = query_of(frame)
        ends = [] if last is None else [last + window_of(self._panes)[0]]
        watermark = None if query is None else query.watermark
        if watermark is None and query is not None and query.processing_time:  # with idle=, shares make it themselves
            watermark = counted(frame, WATERMARK)
        if watermark is not None and (ends or store.meta() is not None):
            ends.append(watermark + 1)  # what ends by then has fired
        return max(ends, default=None)

    def _check_known(self, store: PaneStore, frame: DataFrame, query: str, batch_id: int) -> None:
        """Looks whether the store has all batches of this query before this one."""
        known = store.batch_of(query)
        # This object knows which batches it was handed; one that has just been made goes by the checkpoint's count.
        before = batch_id - 1 if self._last < 0 else min(self._last, batch_id - 1)
        if before < 0 or (known is not None and known >= before):
            return
        if known is not None:
            if _without_sink(frame, query).issuperset(range(known + 1, before + 1)):
                return
            self._lost(
                store,
                f"to_store: the last batch that the store has of this query is {known}, and this is batch {batch_id}: "
                f"it went back, and panes are missing (or the sink was not called for each batch); start with an empty "
                f"store and a fresh checkpoint, or go on without them: to_store(..., accept_loss=True)",
            )
        elif self._last < 0 and ((meta := store.meta()) is None or meta.identity):
            warnings.warn(
                f"to_store: the store has nothing of this query's batches before {batch_id}, so it was emptied since, "
                f"or is another one; panes of those batches do not come back",
                stacklevel=callers_level(),
            )
            store.accept_loss()

    def _lost(self, store: PaneStore, what: str) -> None:
        if not self._accept_loss:
            raise StoreError(what)
        warnings.warn(what, stacklevel=callers_level())
        _LOG.warning("to_store: the store goes on without the batches that it has lost, as accept_loss=True says")
        store.accept_loss()

    def _from_driver(self, panes: DataFrame, revision: Revision) -> Written:
        """Fetches whole partitions, some together if they are small, and puts a bounded number of panes at a time."""
        assert self._store is not None
        done = Written()
        schema = arrow_schema(panes.schema)
        alone = partitions_of(panes) == 1  # then nothing needs to be counted, nor kept for a second look
        if not alone:
            panes.persist()
        try:
            for some in [panes] if alone else _portions(panes):
                table = some.toArrow().cast(schema)
                for first in range(0, max(table.num_rows, 1), _ROWS_AT_ONCE):
                    done += self._store.put(table.slice(first, _ROWS_AT_ONCE), revision, advance=False)
        finally:
            if not alone:
                panes.unpersist()
        return done

    def _from_executors(self, panes: DataFrame, revision: Revision) -> Written:
        """Lets every task put its own rows."""
        assert self._store is not None
        schema = arrow_schema(panes.schema)
        writer = _writer(self._url, self._panes, self._retention, revision, schema, self._patience)
        done = Written()
        for row in panes.mapInArrow(writer, _REPORT).collect():
            if row.problem is not None:
                raise StoreError(row.problem)
            if None not in (row.server, self._store.server) and row.server != self._store.server:
                raise StoreUnavailableError(
                    "to_store: a task has put its panes into another server than the one where the batch began, as in "
                    "a failover that not all know of yet; the batch is to be put again"
                )
            done += Written(*(row[field.name] for field in fields(Written)))
        self._store.warn_of(done)
        return done


def _without_sink(frame: DataFrame, query: str) -> set[int]:
    """Returns the numbers of a query's micro-batches that ``rescale`` has run, and so no sink has seen."""
    spark, nothing = frame.sparkSession, set[int]()
    folder = checkpoint_folder(spark, query)
    if folder is None:
        return nothing
    return ask_spark("the micro-batches of rescale", lambda: CheckpointFiles(spark, folder).without_sink(), nothing)


def _portions(panes: DataFrame) -> Iterator[DataFrame]:
    """Yields a persisted frame in portions of whole partitions; counting them computes all of the frame once."""
    sizes = panes.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    some: list[int] = []
    rows = 0
    for row in sorted(sizes):
        if some and rows + row["count"] > _ROWS_AT_ONCE:
            yield panes.where(F.spark_partition_id().isin(some))
            some, rows = [], 0
        some.append(row["partition"])
        rows += row["count"]
    if some:
        yield panes if len(some) == len(sizes) else panes.where(F.spark_partition_id().isin(some))


def _writer(
    url: str,
    spec: fw.WindowSpec,
    retention: Duration | None,
    revision: Revision,
    schema: pa.Schema,
    patience: float,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns what a task does with its rows: a store of its own, and one row of report.

    What is wrong for good is in the report, so that the driver tells it without a worker's traceback around it. What
    may be right later is raised, so that Spark runs the task again.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = Written()
        problem = None
        opened: list[PaneStore] = []

        def put(table: pa.Table) -> Written:
            if not opened:
                opened.append(PaneStore.open(url, spec, retention=retention))
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # the driver warns, once
                return opened[0].put(table, revision, advance=False)

        try:
            for batch in batches:
                if batch.num_rows:
                    table = pa.Table.from_batches([batch]).cast(schema)
                    done += patiently(partial(put, table), patience)
        except StoreUnavailableError:
            raise
        except FastwinError as error:
            problem = str(error)
        finally:
            for store in opened:
                store.close()
        server = next((store.server for store in opened), None)
        row = asdict(done) | {"problem": problem, "server": server}
        texts = ("refused_key", "problem", "server")
        columns = [pa.array([value], pa.string() if name in texts else pa.int64()) for name, value in row.items()]
        yield pa.RecordBatch.from_arrays(columns, list(row))

    return write
