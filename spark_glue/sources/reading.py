"""A source of Spark's that reads Parquet files with Arrow and packs them in the same task (``stages.pack``).

The driver's process of a query lists the folder and, for a stream, makes offsets; a task gets row groups, and hands
over packed rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from spark_glue.plan.compat import spark_struct_of
from spark_glue.plan.frameplan import FramePlan
from spark_glue.sockets import end_quietly_here
from spark_glue.sources.columns import columns_in, conformed
from spark_glue.sources.folder import Folder, Found, Listed, at_once
from spark_glue.sources.listing import Limits, Listing, Offset, files_of, first_offset
from spark_glue.stages.pack import new_packer
from spark_glue.stages.packets import PACKED

__all__ = ["Job", "packed_files", "packed_stream"]

BATCH_ROWS, LEAST_BATCH_ROWS, BATCH_BYTES = 131_072, 1_024, 64 << 20
"""So many rows are decoded at once, and fewer where a row group's rows are wide: about so many bytes."""
TASK_ROWS, MOST_TASK_ROWS = 65_536, 1 << 23
"""A micro-batch is divided into tasks of so many rows at least; all files at once into some of so many at most, unless
a row group has more."""
_US_PER_MS = 1_000

Parts = list[tuple[Found, list[int]]]


@dataclass(frozen=True)
class Job:
    """What to read, and what to do with it.

    listed: by whom the files are, for errors. tasks: into how many a micro-batch is divided at most. case_sensitive:
    whether the case of letters tells columns apart.
    """

    path: str = field(repr=False)  # it may have keys
    listed: Listed
    tasks: int
    frame_plan: FramePlan
    case_sensitive: bool

    def folder(self) -> Folder:
        """Returns the folder, on the driver or in a task."""
        return Folder(self.path, self.listed)


class RowGroups(InputPartition):
    """What a task reads: its number, row groups of files, and when the micro-batch was begun, ms, if that is asked."""

    def __init__(self, number: int, parts: Parts, at_ms: int | None = None) -> None:
        self.number = number
        self.parts = parts
        self.at_ms = at_ms


def packed_files(spark: SparkSession, job: Job) -> DataFrame:
    """Returns the packed rows of all files, with the columns of ``PACKED``."""
    source: type[_Files] = type("PackedFiles", (_Files,), {"job": job})
    spark.dataSource.register(source)
    return spark.read.format(source.name()).load()


def packed_stream(spark: SparkSession, job: Job, limits: Limits) -> DataFrame:
    """Returns the packed rows of a stream of files, with the columns of ``PACKED``."""
    source: type[_FileStream] = type("PackedFileStream", (_FileStream,), {"job": job, "limits": limits})
    spark.dataSource.register(source)
    return spark.readStream.format(source.name()).load()


class _Source(DataSource):
    # Spark makes a source by itself and gives it options alone, so what it is to do are values of a class of its own.
    job: Job

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        end_quietly_here()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        end_quietly_here()

    @classmethod
    def name(cls) -> str:
        return f"fastwin_parquet_{cls.job.frame_plan.operator}"

    def schema(self) -> T.StructType:
        return spark_struct_of(PACKED)


class _Files(_Source):
    def reader(self, schema: T.StructType) -> DataSourceReader:
        return _Reader(self.job)


class _FileStream(_Source):
    limits: Limits

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader(self.job, self.limits)


class _Reader(DataSourceReader):
    """Reads all files that there are when Spark plans a first job over the frame; others read the same ones."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def partitions(self) -> Sequence[InputPartition]:
        folder = self._job.folder()
        files = folder.found()
        groups = at_once(folder.row_groups_of, files)
        tasks = max(self._job.tasks, -(-sum(map(sum, groups)) // MOST_TASK_ROWS))
        divided = _divided(list(zip(files, groups, strict=True)), tasks)
        return [RowGroups(number, parts) for number, parts in enumerate(divided or [[]])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _packed(self._job, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, job: Job, limits: Limits) -> None:
        self._job, self._limits = job, limits
        self._listing: Listing | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_listing": None}

    def _known(self) -> Listing:
        if self._listing is None:
            self._listing = Listing(self._job.folder(), self._limits)
        return self._listing

    def initialOffset(self) -> Offset:  # noqa: N802
        return first_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(self._limits.max_files or 2**31 - 1)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._known().fix()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        end = self._known().next(start, isinstance(limit, ReadAllAvailable))
        # A micro-batch that runs again is divided as before, also where the machine or tasks= is another one.
        return end if end is start else {**end, "tasks": self._job.tasks}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        self._known().check(end)
        files = files_of(end) if end != start else []
        tasks = end.get("tasks", self._job.tasks)  # earlier versions did not tell
        divided = _divided(list(zip(files, self._known().row_groups_of(files), strict=True)), tasks)
        at_ms = end["at"] if self._job.frame_plan.asks_time else None
        return [RowGroups(number, parts, at_ms) for number, parts in enumerate(divided)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _packed(self._job, partition)


def _packed(job: Job, partition: RowGroups) -> Iterator[pa.RecordBatch]:
    """Reads the row groups of a task; yields them packed."""
    plan = job.frame_plan
    schema = plan.packed_schema
    folder = job.folder()
    packer = new_packer(plan, partition.number)
    now = [] if partition.at_ms is None else [pa.array([partition.at_ms * _US_PER_MS])]
    for one, groups in partition.parts:
        name = f"{folder.shown}/{one.name}"
        with folder.open_same(one) as file:
            names = columns_in(file, name, schema, job.case_sensitive)
            for batch in _batches(file, folder, one, groups, names):
                columns = [conformed(batch.column(at), field.type) for at, field in zip(names, schema, strict=True)]
                packed = packer.add([*columns, *now]) if batch.num_rows else None
                if packed is not None:
                    yield packed
    yield from packer.finish()


def _batches(
    file: pq.ParquetFile, folder: Folder, one: Found, groups: list[int], columns: list[str]
) -> Iterator[pa.RecordBatch]:
    try:
        rows = _batch_rows(file.metadata, groups, columns)
        yield from file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as problem:
        raise folder.unreadable(one, problem) from problem


def _batch_rows(footer: pq.FileMetaData, groups: list[int], columns: list[str]) -> int:
    """Returns how many rows of these row groups are decoded at once. columns: those that are read."""
    most = BATCH_ROWS
    for group in map(footer.row_group, groups):
        if group.total_byte_size * most <= BATCH_BYTES * group.num_rows:
            continue
        chunks = [group.column(at) for at in range(group.num_columns)]
        read = [one.total_uncompressed_size for one in chunks if _is_in(one.path_in_schema, columns)]
        most = min(most, BATCH_BYTES * group.num_rows // max(1, sum(read)))
    return max(LEAST_BATCH_ROWS, most)


def _is_in(path: str, columns: list[str]) -> bool:
    """Whether a path in Parquet's schema is one of these columns, or of what is in one."""
    return any(path == name or path.startswith(f"{name}.") for name in columns)


def _divided(files: Sequence[tuple[Found, tuple[int, ...]]], most: int) -> list[Parts]:
    """Returns the row groups of files divided among tasks, in order, by their rows."""
    total = sum(sum(groups) for _, groups in files)
    tasks = max(1, min(most, total // TASK_ROWS))
    divided: list[Parts] = [[] for _ in range(tasks)]
    before = 0
    for one, groups in files:
        for number, rows in enumerate(groups):
            parts = divided[min(tasks - 1, (before + rows // 2) * tasks // max(1, total))]
            before += rows
            if parts and parts[-1][0] == one:
                parts[-1][1].append(number)
            else:
                parts.append((one, [number]))
    return [parts for parts in divided if parts]
