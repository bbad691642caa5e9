"""What the versions of Spark from 4.0 on do differently. Other modules ask here, and never for a version.

A feature that a version lacks has a sentence that names both. With Spark Connect, two versions count: the client has
the functions that are called, and the server runs them.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas import types as arrow_types

from fastwin.errors import SpecError

__all__ = [
    "Py4JError",
    "SparkContext",
    "applied_to_groups",
    "arrow_schema_of",
    "arrow_type_of",
    "check_python_streams",
    "check_repartitions",
    "check_streams",
    "checkpoint_format",
    "current_session",
    "finds_old_timers",
    "has_columnar_input",
    "has_second_format",
    "has_unix_sockets",
    "is_connect",
    "is_observation",
    "lacking",
    "metadata_of",
    "named_values",
    "repartition_offline",
    "spark_struct_of",
    "spark_type_of",
]

_OLDEST = (4, 0)
_TIME_ZONE = "UTC"  # of Arrow timestamps between our own stages; only the instant travels
_ARROW_ITERATORS = (4, 1)
_COLUMNAR_INPUT = (4, 2)
_TIME_TYPE = (4, 1)
_CONNECT_STREAMS = (4, 1)
_SECOND_FORMAT = (4, 1)
_UNIX_SOCKETS = (4, 1)
_REPARTITIONS = (4, 3)
_PYTHON_LIMITS = (4, 2)
_OFFSETS_BY_NAME = (4, 2)
_OLD_TIMERS = (4, 3)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


if _version(pyspark.__version__) < _OLDEST:
    raise ImportError(
        f"spark_glue needs Spark 4.0 or newer, which has transformWithState for Python, and this is Spark "
        f"{pyspark.__version__}: pip install 'pyspark>=4.0,<5'; fastwin itself needs no Spark"
    )
_HERE = _version(pyspark.__version__)

try:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
except ImportError:  # pyspark-client, which knows Spark Connect alone
    Py4JError, SparkContext = ConnectionError, None


def is_connect(of: DataFrame | SparkSession) -> bool:
    """Returns whether a frame or a session is one of Spark Connect."""
    return ".connect." in type(of).__module__


def current_session() -> SparkSession | None:
    """Returns the session of this thread, else the one that was made last; None: there is none."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def is_observation(value: object) -> bool:
    """Returns whether a value is an Observation; that of Spark Connect is of another class."""
    connect = sys.modules.get("pyspark.sql.connect.observation")
    return isinstance(value, Observation) or (connect is not None and isinstance(value, connect.Observation))


def named_values(row: Row) -> dict[str, Any]:
    """Returns a row of observed metrics by name; from a server of Spark Connect it may come as values and a schema."""
    found = row.asDict()
    if set(found) != {"values", "schema"}:
        return found
    names = [field["name"] for field in found["schema"]["fields"]]
    return dict(zip(names, found["values"], strict=True))


def metadata_of(offsets: Any) -> Any | None:
    """Returns what Spark's own log of offsets says of a micro-batch beside them; None if it says nothing."""
    found = offsets.metadataOpt() if _HERE >= _OFFSETS_BY_NAME else offsets.metadata()
    return found.get() if found.isDefined() else None


def _lowest(spark: SparkSession) -> tuple[int, int]:
    """Returns the version of Spark, with Spark Connect the lower one of client and server."""
    return min(_HERE, _version(spark.version)) if is_connect(spark) else _HERE


# --- types ---

_OPTIONS = inspect.signature(arrow_types.to_arrow_type).parameters
_UTC = {"timezone": _TIME_ZONE} if "timezone" in _OPTIONS else {}
_LARGE = {"prefers_large_types": True} if "prefers_large_types" in _OPTIONS else {}


def arrow_type_of(kind: T.DataType) -> pa.DataType:
    """Returns the Arrow type of a Spark type; timestamps have the zone UTC. Raises what Spark raises."""
    return arrow_types.to_arrow_type(kind, **_UTC)


def arrow_schema_of(struct: T.StructType) -> pa.Schema:
    """Returns the Arrow schema of rows of a Spark type; timestamps have the zone UTC."""
    return arrow_types.to_arrow_schema(struct, **_UTC)


def spark_type_of(kind: pa.DataType) -> T.DataType:
    """Returns the Spark type of an Arrow type; a timestamp without a zone has none in Spark either."""
    return arrow_types.from_arrow_type(kind, prefer_timestamp_ntz=True)


def spark_struct_of(schema: pa.Schema) -> T.StructType:
    """Returns the Spark type of rows with an Arrow schema."""
    return arrow_types.from_arrow_schema(schema, prefer_timestamp_ntz=True)


def lacking(kind: pa.DataType) -> str:
    """Returns who lacks an Arrow type that has no Spark type: Spark, or this version of it."""
    if pa.types.is_time(kind) and _HERE < _TIME_TYPE:
        return f"which Spark {pyspark.__version__} has not: TIME came with Spark {_told(_TIME_TYPE)}"
    return "which Spark has not"


# --- what runs a function of ours ---


def applied_to_groups(
    frame: DataFrame,
    key: str,
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    struct: T.StructType,
) -> DataFrame:
    """Returns what ``run`` makes of the rows of each value of ``key``, batch by batch.

    Before Spark 4.1 a worker holds all rows of a group, and all that is made of them, at once. One of the frame's
    columns must be text or bytes: they tell whether Spark wants large Arrow types back.
    """
    run = partial(_run_typed, run, struct)

    # Spark reads the kind of function from its annotations, and takes them from plain functions only.
    def by_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(batches)

    def at_once(table: pa.Table) -> pa.Table:
        made = list(run(iter(table.to_batches())))
        return pa.Table.from_batches(made) if made else arrow_schema_of(struct).empty_table()

    iterates = _lowest(frame.sparkSession) >= _ARROW_ITERATORS
    return frame.groupBy(key).applyInArrow(by_batches if iterates else at_once, struct)


def _run_typed(
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    struct: T.StructType,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yields what ``run`` makes of batches, in large Arrow types where they have come so.

    That is with ``spark.sql.execution.arrow.useLargeVarTypes``, and what groups give back is then held to it.
    """
    large = False

    def seen() -> Iterator[pa.RecordBatch]:
        nonlocal large
        for batch in batches:
            large = large or any(pa.types.is_large_string(t) or pa.types.is_large_binary(t) for t in batch.schema.types)
            yield batch

    for made in run(seen()):
        yield made.cast(arrow_types.to_arrow_schema(struct, **_UTC, **_LARGE)) if large else made


def has_columnar_input() -> bool:
    """Returns whether Spark hands the columns of a columnar scan to an Arrow UDF without making rows of them."""
    return _HERE >= _COLUMNAR_INPUT


def check_streams(spark: SparkSession) -> None:
    """Raises SpecError if a session's version of Spark cannot run a stateful operator in Python."""
    if is_connect(spark) and _lowest(spark) < _CONNECT_STREAMS:
        raise SpecError(
            f"df: streams over Spark Connect need Spark {_told(_CONNECT_STREAMS)} or newer on both sides, which has "
            f"transformWithState there; the client is {pyspark.__version__}, the server {spark.version}; batch frames "
            f"work, and so do streams in a session without Connect"
        )


def check_python_streams(spark: SparkSession) -> None:
    """Raises SpecError if a session's version of Spark does not tell a source in Python where a micro-batch begins."""
    if is_connect(spark) or _HERE < _PYTHON_LIMITS:
        what = "a session of Spark Connect" if is_connect(spark) else f"Spark {pyspark.__version__}"
        raise SpecError(
            f"df: ParquetFiles needs Spark {_told(_PYTHON_LIMITS)} or newer without Spark Connect, and this is {what}; "
            f"spark.readStream.schema(...).parquet(path) gives the same results everywhere"
        )


def check_repartitions(spark: SparkSession) -> None:
    """Raises SpecError if a session's version of Spark cannot move the state of a stopped query to other partitions."""
    if is_connect(spark) or _HERE < _REPARTITIONS:
        what = "a session of Spark Connect" if is_connect(spark) else f"Spark {pyspark.__version__}"
        raise SpecError(
            f"rescale: needs Spark {_told(_REPARTITIONS)} or newer without Spark Connect, which moves state to other "
            f"partitions, and this is {what}; export_state, and a new checkpoint with history=, work everywhere"
        )


def repartition_offline(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Moves the state of a stopped query to so many partitions, by its groups, as one more micro-batch in its log."""
    spark._streamingCheckpointManager.repartition(checkpoint, partitions)


def checkpoint_format(spark: SparkSession) -> str:
    """Returns the best format for new checkpoints, by Spark's number.

    In "2" each attempt of a task writes state files of its own, and the commit says whose count. That of Spark 4.0 can
    not be read by any newer Spark, so there it is "1".
    """
    served = _version(spark.version) if is_connect(spark) else _HERE
    return "2" if served >= _SECOND_FORMAT else "1"


def finds_old_timers() -> bool:
    """Returns whether Spark surely finds an expired timer that the micro-batch before had passed as well.

    It looks for timers from the beginning of time on. That it could look from there on alone, it has in its code.
    """
    return _HERE <= _OLD_TIMERS


def has_second_format() -> bool:
    """Returns whether the second format of checkpoints is the better one here, without Spark Connect."""
    return _HERE >= _SECOND_FORMAT


def has_unix_sockets() -> bool:
    """Returns whether Spark can talk to its Pythons over Unix domain sockets, without Spark Connect."""
    return _HERE >= _UNIX_SOCKETS


def _told(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
