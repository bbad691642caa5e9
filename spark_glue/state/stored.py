"""State as it is stored in a checkpoint, read from outside of the query: whether it runs or has been stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
from fastwin.columns.keys import KeyCodec
from fastwin.columns.schemas import text_to_schema
from fastwin.errors import SpecError, StateError
from fastwin.run.replica import Replica, open_replica
from fastwin.spec.joinending import SIDE, TIME
from fastwin.state.chunks import decode, owner
from fastwin.state.identity import StateSpec
from spark_glue.plan.compat import current_session
from spark_glue.plan.frameplan import LOCAL_MS, TimeMode
from spark_glue.plan.keygroups import RECORD_ID, ids, number_of
from spark_glue.plan.queries import runs_from
from spark_glue.plan.settings import BATCH_ROWS_KEY
from spark_glue.state.log import StoredHead, head_in, joined
from spark_glue.state.marks import Marks, marks_in
from spark_glue.state.variables import CHUNK, CHUNKS, CLOCKS, DATA, HEAD, NEXT, SEEN, WATERMARK

__all__ = [
    "UNVISITED",
    "Checkpoint",
    "Progress",
    "checkpoint_of",
    "escaped_in",
    "plan_of",
    "replica_of",
    "shares_in",
    "stopped_checkpoint",
    "types_of",
]

CHUNK_COLUMNS = ["key_group", CHUNK, DATA]
_CHUNK_TYPES = f"key_group int, {CHUNK} bigint, {DATA} binary"
_SMALL_OPERATOR = "applyInPandasWithState"  # the operator, as Spark's metadata has it
UNVISITED = "a share that no micro-batch has visited since the spec changed is still of the one before"
NO_CHUNK = -1
_BATCH_BYTES = 1 << 29  # of a record batch on its way to Python
_PIECE = 1 << 16


@dataclass(frozen=True)
class Progress:
    """The last micro-batch that was committed: its number, and the watermarks of it and of the next one, ms.

    None: there is no watermark yet.
    """

    batch: int
    watermark: int | None
    next_watermark: int | None


def checkpoint_of(query: Any, argument: str = "checkpoint") -> str:
    """Returns the folder of a checkpoint, of which the path or the query is given. Raises SpecError for all else."""
    if isinstance(query, str | Path) and str(query):
        return str(query)
    if isinstance(query, StreamingQuery):
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    raise SpecError(f"{argument}: must be a checkpoint's path or a StreamingQuery, got {query!r}")


def stopped_checkpoint(query: Any) -> str:
    """Returns the folder of a checkpoint as ``checkpoint_of``. Raises SpecError for a query that runs, too.

    By its folder a query is found that runs in this application.
    """
    folder, spark = checkpoint_of(query), current_session()
    active = query.isActive if isinstance(query, StreamingQuery) else spark is not None and runs_from(spark, folder)
    if active:
        raise SpecError("checkpoint: the query runs; stop it first")
    return folder


def escaped_in(path: str) -> str:
    """Returns the characters of a path, in quotes, that have another form in a URI.

    Spark's readers and writers of state make a URI of a path, and look for a folder with its name.
    """
    return ", ".join(sorted({repr(one) for one in path if one in ' "#%<>?[]\\^`{|}'}))


def plan_of(spec: fw.WindowSpec | fw.JoinSpec, delta: bytes) -> fw.Plan:
    """Returns the plan of a spec for the input that a delta was made of. Raises SpecError where it is none of it."""
    meta = _meta(delta)
    schema = text_to_schema(meta["input_schema"])
    if isinstance(spec, fw.JoinSpec):
        return _plan_of_join(spec, schema, StateSpec.from_json(meta["spec"]))
    if LOCAL_MS in schema.names:
        spec = replace(spec, time_column=LOCAL_MS)
    return fw.plan(spec, schema, hidden=(LOCAL_MS,), coalesce=True)


def _meta(delta: bytes) -> dict[str, Any]:
    return decode(delta, owner(delta)).meta


def _plan_of_join(join: fw.JoinSpec, schema: pa.Schema, stored: StateSpec) -> fw.Plan:
    names = [*join.left.keys, SIDE, TIME]
    if schema.names[: len(names)] != names:
        raise SpecError(f"{join.method}: the state has the columns {', '.join(schema.names)}, and not those of a join")
    plans = [fw.plan(spec, schema, coalesce=True) for spec in join.united_specs(schema)]
    columns = _columns_of(join, stored)
    return next((plan for plan in plans if _columns_of(join, plan.config.state) == columns), plans[-1])


def _columns_of(join: fw.JoinSpec, state: StateSpec) -> str:
    """Returns which columns are left ones and right ones, as the state says it."""
    return dict(state.parts).get(join.method, "").partition("left=")[2]


def replica_of(spec: fw.WindowSpec | fw.JoinSpec, deltas: list[bytes], call: str) -> Replica:
    """Returns a stream in the state that the deltas of a share, at least one, lead to. call: for errors.

    Raises StateError where they are of another spec, or damaged.
    """
    hint = ""
    try:
        plan = plan_of(spec, deltas[-1])
        if plan.fingerprint != owner(deltas[-1]):
            hint = f"; {UNVISITED}"
            # In words, and not only by fingerprints, where words can tell it.
            plan.config.state.check_follows(StateSpec.from_json(_meta(deltas[-1])["spec"]), None)
        stream = open_replica(plan)
        stream.catch_up(deltas)
    except StateError as problem:
        raise StateError(f"{call}: {problem}{hint}") from problem
    return stream


def types_of(stream: Replica, others: StateSpec | None, call: str) -> StateSpec | None:
    """Returns what tells the types of a share's state, where it has any; else ``others``, those of other shares.

    Raises StateError if the two differ. The fingerprint of a spec does not tell types, so ``migrate="wider types"`` may
    have reached one of the shares alone.
    """
    if not stream.metrics.state_rows:
        return others
    found = stream.state_spec
    told = found.other_types(others) if others is not None else None
    if told:
        raise StateError(f"{call}: two shares have state of different types ({'; '.join(told)}); {UNVISITED}")
    return found


def shares_in(
    rows: Iterable[tuple[int, int, bytes]], heads: dict[int, StoredHead]
) -> Iterator[tuple[int, list[bytes]]]:
    """Yields each share's number and its deltas.

    rows: those of CHUNK_COLUMNS, a share's one after the other, and the pieces of a chunk in their order; of a share
    without chunks at least one, see ``Checkpoint.chunks``.
    """
    for group, mine in groupby(rows, itemgetter(0)):
        if group in heads:
            parts = {
                number: b"".join(bytes(data) for *_, data in pieces) for number, pieces in groupby(mine, itemgetter(1))
            }
            yield number_of(group), heads[group].deltas(parts)


class Checkpoint:
    """The state of one stateful operator in a checkpoint, as of the last micro-batch that was committed.

    All that is read is of one micro-batch, the last one when it was asked first, though the query may have gone on.

    path: its folder. operator: which of the query's stateful operators, as Spark counts them. call: for errors. Raises
    SpecError where there is no Spark session, or no state to read.
    """

    def __init__(self, path: str, operator: int, call: str) -> None:
        spark = current_session()
        if spark is None:
            raise SpecError(f"{call}: needs a Spark session; call spark_glue.session() first")
        self.spark = spark
        self._path, self._operator, self._call = path.rstrip("/"), operator, call

    def _state(self, variable: str) -> DataFrame:
        if not self.is_small:
            return self._reader().option("stateVarName", variable).load(self._path)
        found = self._reader().load(self._path).select("key", F.col(f"value.groupState.{variable}").alias("value"))
        return found.where("value is not null")

    def _reader(self) -> DataFrameReader:
        reader = self.spark.read.format("statestore").option("operatorId", self._operator)
        return reader if self._batch is None else reader.option("batchId", self._batch)

    @cached_property
    def heads(self) -> dict[int, StoredHead]:
        """The heads of all shares, by the id that Spark groups by."""
        try:
            rows = self._state(HEAD).select("key.key_group", f"value.{HEAD}").collect()
        except PySparkException as problem:
            said = str(problem).splitlines()[0]
            if found := escaped_in(self._path):
                said += f" Its reader of state finds no path with {found}. On a local disk, give it a symbolic link"
            raise SpecError(f"{self._call}: {self._path} has no state that can be read: {said}") from problem
        return {group: head_in(bytes(head)) for group, head in rows if group != RECORD_ID}

    @property
    def time_zone(self) -> str | None:
        """In which the query reads event times without a zone; None: they have one, or no head tells."""
        return next((head.time_zone for head in self.heads.values() if head.time_zone is not None), None)

    def chunks(self, groups: Iterable[int] | None = None) -> DataFrame:
        """Returns the chunks of all shares, or of those with some ids, a share's one after the other in a partition.

        A share of which all deltas lie in its head has one row without data, whose chunk is NO_CHUNK.
        """
        wanted = None if groups is None else set(groups)
        columns = self._all_chunks()
        if wanted is not None:
            columns = columns.where(_one_of(F.col("key_group"), wanted))
        others = [group for group, head in self.heads.items() if not head.has_chunks]
        if wanted is not None:
            others = [group for group in others if group in wanted]
        told = [(group, NO_CHUNK, b"") for group in others if self.heads[group].log.entries]
        if told:
            columns = columns.unionAll(self.spark.createDataFrame(told, columns.schema))
        return columns.sortWithinPartitions("key_group")

    def _all_chunks(self) -> DataFrame:
        if self.is_small:
            return self.spark.createDataFrame([], _CHUNK_TYPES)
        rows = self._state(CHUNKS)
        return rows.select("key.key_group", f"user_map_key.{CHUNK}", f"user_map_value.{DATA}").toDF(*CHUNK_COLUMNS)

    def pieces(self, groups: Iterable[int] | None = None) -> DataFrame:
        """Returns ``chunks`` cut into pieces, so small that a record batch of them stays below Arrow's two gigabytes.

        Spark sends so many rows to a Python worker at a time, however long they are.
        """
        rows = int(self.spark.conf.get(BATCH_ROWS_KEY) or 0)
        size = _PIECE if rows <= 0 else max(1, min(_PIECE, _BATCH_BYTES // rows))
        start = F.explode(F.expr(f"sequence(0, greatest(length({DATA}) - 1, 0), {size})")).alias("start")
        return self.chunks(groups).select(*CHUNK_COLUMNS, start).selectExpr(
            "key_group", CHUNK, f"substring({DATA}, start + 1, {size}) as {DATA}"
        )  # fmt: skip

    def shares(self, groups: Iterable[int] | None = None) -> Iterator[tuple[int, list[bytes]]]:
        """Yields each share's number and the deltas of its log. One of Spark's partitions is in memory at a time."""
        return shares_in((tuple(row) for row in self.chunks(groups).toLocalIterator()), self.heads)

    @cached_property
    def a_delta(self) -> bytes | None:
        """A delta of any share, see ``delta_of``."""
        return self.delta_of(self.heads)

    def delta_of(self, groups: Iterable[int]) -> bytes | None:
        """Returns a delta of one of these shares, which tells of the input's columns; None: they have no state.

        It is of a share with rows, if any has some: those without may have narrower types, see ``types_of``.
        """
        logs = {group: self.heads[group].log.entries for group in groups if group in self.heads}
        sizes = [(not any(one.rows for one in log), log[-1].size, group) for group, log in logs.items() if log]
        if not sizes:
            return None
        *_, group = min(sizes)
        head, entry = self.heads[group], logs[group][-1]
        if entry.first in head.inline:
            return joined(head.inline, entry)
        rows = self.chunks([group]).where(_one_of(F.col(CHUNK), entry.numbers())).collect()
        return joined({row[CHUNK]: bytes(row[DATA]) for row in rows}, entry)

    def group_of(self, plan: fw.Plan, key: list[pa.Array]) -> int:
        """Returns the id of the share that a key is in. key: the key columns, of one row."""
        head = next(iter(self.heads.values()))
        group = int(KeyCodec.hash(plan.config.codec.encode(key, 1))[0] % head.key_groups)
        return int(ids(head.key_groups)[group % head.shares])

    def progress(self) -> Progress | None:
        """Returns how far the query is; None: no micro-batch has been committed."""
        batch = self._batch
        if batch is None:
            return None
        own = self._own_marks()
        if own is not None:
            return Progress(batch, *own)
        told = self._log_entry("offsets", batch), self._log_entry("commits", batch)
        marks = [told[0].get("batchWatermarkMs"), told[1].get("nextBatchWatermarkMs")]
        return Progress(batch, *(mark or None for mark in marks))

    def last_batch(self) -> int:
        """Returns the number of the last micro-batch, of which the state is.

        Raises SpecError where one was begun and not finished, or where the query has gone on since it was asked first.
        """
        begun, done = self._last_in("offsets"), self._last_in("commits")
        if begun != done:
            ends = "availableNow" if self._properties.get("timeMode") == "EventTime" else "once"
            raise SpecError(
                f"{self._call}: micro-batch {begun} was begun and not finished, the last finished one is {done}; if "
                f"the query runs in another application, stop it there and call again; if no driver of it runs any "
                f"more, start it once more with .trigger({ends}=True), which ends with a finished one"
            )
        if done != self._batch:
            raise SpecError(
                f"checkpoint: the query runs: its last micro-batch was {self._batch}, and it has got to {done} while "
                f"its state was read; stop it first"
            )
        return done

    def _last_in(self, log: str) -> int:
        """Returns the number of the last entry of Spark's own log; -1: it has none."""
        paths = self._text(log).inputFiles()
        names = [path.rpartition("/")[2] for path in paths]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _text(self, log: str) -> DataFrame:
        """Returns each entry of Spark's own log as a row. The query may run: it removes old ones meanwhile."""
        return self.spark.read.options(wholetext=True, ignoreMissingFiles=True).text(f"{self._path}/{log}")

    def marks(self) -> Marks:
        """Returns the watermarks of the micro-batches that Spark has kept its log of, 100 by default."""
        batch = self._batch
        if batch is None:
            return Marks(())
        texts = self._text("offsets")
        return marks_in(texts.select(F.input_file_name(), "value").collect(), batch)

    def _own_marks(self) -> tuple[int | None, int | None] | None:
        """Returns the watermarks of the last micro-batch and of the next, if the query makes them itself (idle=)."""
        if not self._has_clocks:
            return None
        row = self._state(CLOCKS).select(F.max(f"value.{WATERMARK}"), F.max(f"value.{NEXT}")).first()
        marks = (None, None) if row is None else row
        return tuple(None if mark is None or mark <= 0 else int(mark) for mark in marks)  # type: ignore[return-value]

    @cached_property
    def clocks(self) -> tuple[int, ...] | None:
        """What all shares know of the inputs, as ``ShareClocks`` stores it, if they make the watermark (idle=)."""
        if not self._has_clocks:
            return None
        latest = self._state(CLOCKS).select("value.*").orderBy(F.col(SEEN).desc()).first()
        return None if latest is None else tuple(latest)

    @property
    def _has_clocks(self) -> bool:
        if self.is_small:
            return CLOCKS in self._reader().load(self._path).select("value.groupState.*").columns
        return CLOCKS in [one.get("stateName") for one in self._properties.get("stateVariables", ())]

    @cached_property
    def is_small(self) -> bool:
        """Whether Spark keeps the state of each share as one value (small_state=)."""
        return any(row.operatorId == self._operator and row.operatorName == _SMALL_OPERATOR for row in self._metadata)

    @property
    def time_mode(self) -> TimeMode:
        """What the operator's timers wait for."""
        return self._properties["timeMode"]

    @property
    def _properties(self) -> dict[str, Any]:
        """What Spark has noted of the operator."""
        mine = next((row.operatorProperties for row in self._metadata if row.operatorId == self._operator), None)
        return json.loads(mine or "{}")

    @property
    def _batch(self) -> int | None:
        """The number of the last micro-batch that was committed; None: there is none."""
        batch = max((row.maxBatchId for row in self._metadata), default=-1)
        return None if batch < 0 else int(batch)

    @property
    def operators(self) -> int:
        """How many stateful operators the query has."""
        return len({row.operatorId for row in self._metadata})

    @cached_property
    def _metadata(self) -> list[Any]:
        found = self.spark.read.format("state-metadata").load(self._path)
        return found.select("operatorId", "operatorName", "maxBatchId", "operatorProperties").collect()

    def _log_entry(self, folder: str, batch: int) -> dict[str, Any]:
        """Returns what Spark's own log says of a micro-batch."""
        rows = self.spark.read.text(f"{self._path}/{folder}/{batch}").collect()
        found = (json.loads(row.value) for row in rows if row.value.startswith("{"))
        return next((one for one in found if any(name.endswith("atchWatermarkMs") for name in one)), {})


def _one_of(column: Column, values: Iterable[int]) -> Column:
    return column.isin([int(value) for value in values])
