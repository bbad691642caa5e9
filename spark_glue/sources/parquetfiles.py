"""A folder of Parquet files as the input of ``apply``: its columns, and what of it a micro-batch takes."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin.errors import SpecError
from fastwin.times import Duration, to_ms
from spark_glue.plan.compat import check_python_streams, current_session
from spark_glue.plan.settings import is_case_sensitive, requested_cores
from spark_glue.plan.types import spark_fields
from spark_glue.sources.columns import as_spark_reads
from spark_glue.sources.folder import LISTED_BY_JOB, LISTED_BY_STREAM, Folder, Found, Listed, is_not_whole, shown_path
from spark_glue.sources.listing import Limits

if TYPE_CHECKING:
    from spark_glue.plan.frameplan import FramePlan

__all__ = ["ParquetFiles"]

_OF_STREAMS = ("max_files", "max_rows", "late_files", "unreadable_after")


@dataclass(frozen=True)
class ParquetFiles:
    """The Parquet files of a folder, as a stream or all at once, for ``apply`` in place of a frame.

    Tasks read the files with Arrow and pack them at once, so no rows are made in the JVM. What comes out is the same as
    over ``spark.readStream.parquet`` or ``spark.read.parquet``. It takes Spark 4.2 or newer, without Spark Connect.

    path: of a folder, or its URI as Arrow has it (``s3://bucket/clicks``, ``gs://``, ``hdfs://``). Driver and executors
        must reach it. Its files ``*.parquet`` are read, but hidden ones (``_`` or ``.`` in front), and none below it. A
        name that is no UTF-8 is left out, with a warning. Keys in a URI, before an ``@``, are not shown in errors.
    schema: columns of all files: a Spark schema, DDL text or an Arrow schema; None: those of the newest whole file now.
        Whether the case of letters counts is as ``spark.sql.caseSensitive`` says.
    max_files, max_rows: how many a micro-batch takes at most, but one file at least; None: all that are there.
    late_files: files are taken in the order of their time of change, then by name. One that is seen later than another
        which is newer is taken still, unless it is older by more than this; then the query ends with a SourceError. A
        time that is still to come counts as now.
    unreadable_after: how long after its last change a file may be no whole Parquet file until the query ends with a
        SourceError; None: for any time.
    streaming: False: all files at once. The first job of a frame lists the folder, and later jobs of that frame read
        the same files: call ``apply`` again for those that have come since. What is no whole Parquet file ends the job
        with a SourceError. ``max_files``, ``max_rows``, ``late_files`` and ``unreadable_after`` are for streams.
    tasks: how many read a micro-batch at most; a task of fewer than 65,536 rows is not worth it. Without a stream there
        are more where each would have over 8 M rows. None: as many as the cores that the application has or has asked
        for when ``apply`` is called. It may change at a restart.

    A file is put whole, as by a rename, and stays as it is. To a stream, a changed one counts as another file. One that
    is no whole Parquet file yet is left for later, with a warning, and is never taken for one that has been read. The
    checkpoint names the files of each micro-batch. One that runs again reads the same; if a file is gone or has changed
    by then, it ends with a SourceError.

    Raises SpecError for an argument that does not fit.
    """

    path: str
    schema: T.StructType | pa.Schema | str | None = None
    max_files: int | None = None
    max_rows: int | None = None
    late_files: Duration = "1 hour"
    unreadable_after: Duration | None = None
    streaming: bool = True
    tasks: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_files", "max_rows", "tasks"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise SpecError(f"{name}: must be an int of at least 1, or None, got {value!r}")
        if not isinstance(self.streaming, bool):
            raise SpecError(f"streaming: must be True or False, got {self.streaming!r}")
        for field in fields(self):
            given = getattr(self, field.name)
            if not self.streaming and field.name in _OF_STREAMS and given != field.default:
                raise SpecError(f"{field.name}: is for streams, and streaming=False reads all at once; got {given!r}")
        if self.late_ms < 0:
            raise SpecError(f"late_files: must not be negative, got {self.late_files!r}")
        if self.unreadable_ms is not None and self.unreadable_ms < 0:
            raise SpecError(f"unreadable_after: must not be negative, got {self.unreadable_after!r}")
        try:
            self.folder()
        except (OSError, TypeError, ValueError) as problem:  # pa.ArrowInvalid is a ValueError
            shown = shown_path(str(self.path))
            said = str(problem).replace(str(self.path), shown)
            raise SpecError(f"path: must be a folder or a URI that Arrow knows, got {shown!r}: {said}") from None
        if not isinstance(self.schema, T.StructType | pa.Schema | str | None):
            raise SpecError(f"schema: must be a Spark schema, DDL text or an Arrow schema, got {self.schema!r}")

    def __repr__(self) -> str:
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        told["path"] = shown_path(str(self.path))
        return f"ParquetFiles({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    @property
    def late_ms(self) -> int:
        """``late_files``, ms."""
        return to_ms(self.late_files, argument="late_files")

    @property
    def unreadable_ms(self) -> int | None:
        """``unreadable_after``, ms."""
        return None if self.unreadable_after is None else to_ms(self.unreadable_after, argument="unreadable_after")

    @property
    def _listed(self) -> Listed:
        return LISTED_BY_STREAM if self.streaming else LISTED_BY_JOB

    def folder(self) -> Folder:
        """Returns the folder."""
        return Folder(str(self.path), self._listed)

    def frame(self) -> DataFrame:
        """Returns a frame with these columns, streaming or not, to plan with; it is not what is read.

        Raises SpecError where there is no file to tell the columns, and for a session that cannot read it; SourceError
        where there is no folder, and, unless streaming, for a file that is not whole.
        """
        spark = current_session()
        if spark is None:
            raise SpecError("df: ParquetFiles needs a Spark session that runs: take one of spark_glue.session()")
        check_python_streams(spark)
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in self._struct()]
        frame = spark.readStream.format("rate").load() if self.streaming else spark.range(0)
        return frame.select(*columns)

    def packed(self, spark: SparkSession, frame_plan: "FramePlan") -> DataFrame:
        """Returns the packed rows of the files."""
        from spark_glue.sources.reading import Job, packed_files, packed_stream  # need what older Sparks have not

        tasks = requested_cores(spark.sparkContext) if self.tasks is None else self.tasks
        job = Job(self.folder().path, self._listed, tasks, frame_plan, is_case_sensitive(spark))
        if not self.streaming:
            return packed_files(spark, job)
        return packed_stream(spark, job, Limits(self.max_files, self.max_rows, self.late_ms, self.unreadable_ms))

    def _struct(self) -> T.StructType:
        if isinstance(self.schema, T.StructType):
            return self.schema
        if isinstance(self.schema, pa.Schema):
            return T.StructType(spark_fields(self.schema, "schema"))
        if self.schema is not None:
            try:
                struct = T.DataType.fromDDL(self.schema)
            except PySparkException as problem:
                raise SpecError(f"schema: {self.schema!r} is no DDL text: {problem}") from None
            if not isinstance(struct, T.StructType):
                raise SpecError(f"schema: must name columns, as 'k long, ts timestamp' does, got {self.schema!r}")
            return struct
        folder = self.folder()
        for one in reversed(folder.found()):
            found = self._columns_of(folder, one)
            if found is not None:
                return T.StructType(spark_fields(found, f"path: {one.name}"))
        raise SpecError(f"schema: must be given, because {folder.shown} has no whole file that ends in .parquet")

    def _columns_of(self, folder: Folder, one: Found) -> pa.Schema | None:
        """Returns the columns of a file; None: it is for a stream, and gone again, or not whole yet."""
        if not self.streaming:
            with folder.open_same(one) as file:
                return as_spark_reads(file)
        try:
            with folder.open(one.name) as file:
                return as_spark_reads(file)
        except FileNotFoundError:
            return None
        except (pa.ArrowInvalid, OSError) as problem:
            if not is_not_whole(problem):
                raise
            return None
