"""What takes another way with Spark Connect, where the client has neither the plan nor the Python of the tasks."""

import importlib
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from spark_glue.plan.errortext import error_in

__all__ = ["NEVER_ENDS", "Node", "analyzed", "check_server", "guard_clock", "nodes_in"]

NEVER_ENDS = (
    "availableNow: a query of processing time never ends with it, because it always has another micro-batch to run; "
    'use .trigger(processingTime="1 second") and stop the query'
)

_LOG = logging.getLogger(__name__)
_LINE = re.compile(r"(?:[: ]  )*(?:[:+]- )?(?P<stream>~)?(?P<text>\w.*)")
_PLAN = re.compile(r"^== Analyzed Logical Plan ==\n(?P<plan>.*?)(?=^== |\Z)", re.MULTILINE | re.DOTALL)

_IN_FLOW = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"

_checked: set[str] = set()


@dataclass(frozen=True)
class Node:
    """An operator of a plan. text: as Spark writes it. streaming: whether it reads a stream, itself or below it.

    The source of a stream is not marked as one.
    """

    text: str
    streaming: bool

    @property
    def name(self) -> str:
        """Its first word."""
        return re.split(r"\W", self.text, maxsplit=1)[0]

    @property
    def marked(self) -> str | None:
        """The column that it gives a watermark; None: it gives none."""
        found = re.match(r"EventTimeWatermark (?:[0-9a-f-]{36}, )?(.*?)#\d+", self.text)
        return None if found is None else found[1]


def analyzed(df: DataFrame) -> list[Node]:
    """Returns the operators of a frame's analyzed plan, each before those below it. The server tells it as text."""
    told: Any = df
    return nodes_in(told._explain_string(extended=True))


def nodes_in(explained: str) -> list[Node]:
    """Returns the operators of the analyzed plan in a text of ``explain(True)``."""
    found = _PLAN.search(explained)
    # The tree starts behind the columns of the result.
    lines = [] if found is None else [_LINE.match(line) for line in found["plan"].splitlines()[1:]]
    return [Node(line["text"], line["stream"] is not None) for line in lines if line is not None]


def check_server(df: DataFrame) -> None:
    """Raises SpecError where a frame may not be looked at, or if the server's Python workers have no fastwin.

    The latter costs one small task, once in a session. Where the server runs no task for this, nothing is known.
    """
    try:
        _ = df.select("*").schema  # the frame's own may be known already
    except PySparkException as problem:
        if _IN_FLOW in (problem.getCondition() or str(problem)):  # 4.1 has it in the text alone
            raise SpecError(
                "df: in the function of a flow Spark lets nobody look at a frame, and apply has to; call apply outside "
                "of that function, in the same file, and return its frame there"
            ) from None
        raise
    spark: Any = df.sparkSession
    if spark.session_id in _checked:
        return
    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(_what_is_there(), "python string, problem string").collect()
    except PythonException as problem:
        told = str(problem).strip()
        raise SpecError(_cannot(error_in(told) or told.rsplit("\n", 1)[-1])) from None
    except PySparkException as problem:
        _LOG.info("the Python of the server is not known: %s", str(problem).split("\n", 1)[0])
        return
    if rows[0].problem is not None:
        raise SpecError(_cannot(f"{rows[0].python} says {rows[0].problem}"))
    _checked.add(spark.session_id)


def _what_is_there() -> Any:
    # A function within a function travels as code, not as the name of a module that may not be there.
    def look(batches: Iterator[Any]) -> Iterator[Any]:
        problem = None
        try:
            importlib.import_module("spark_glue")
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "problem": [problem]})

    return look


def _cannot(why: str) -> str:
    return (
        f"Spark Connect: tasks run in the Python of the server, which cannot run fastwin ({why}); install "
        f"'fastwin[spark,connect]' there for Python {sys.version_info.major}.{sys.version_info.minor}, or start the "
        f"server with PYSPARK_PYTHON naming a Python that has it"
    )


def guard_clock(frame: DataFrame) -> DataFrame:
    """Returns the frame of a stream that waits for the clock; its writer refuses the trigger ``availableNow``.

    The server does not tell a sink which trigger a query has. A frame that is made of this one is not looked at.
    """

    def write_stream(self: Any) -> Any:
        writer = kind.writeStream.fget(self)
        start_with = writer.trigger

        def trigger(**how: Any) -> Any:
            if how.get("availableNow"):
                raise SpecError(NEVER_ENDS)
            return start_with(**how)

        writer.trigger = trigger
        return writer

    kind: Any = type(frame)
    frame.__class__ = type(
        kind.__name__, (kind,), {"writeStream": property(write_stream), "__module__": kind.__module__}
    )
    return frame
