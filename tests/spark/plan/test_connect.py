"""What is known of a server of Spark Connect, without one; tests/spark/test_connect.py has one."""

import logging
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, PythonException

import fastwin as fw
from spark_glue.plan import connect

EXPLAINED = """== Parsed Logical Plan ==
'Join
+- 'Aggregate

== Analyzed Logical Plan ==
k: bigint, n: bigint
~Project [k#3L, n#9L]
+- ~Join Inner, (k#3L = k#7L)
   :- ~EventTimeWatermark 6f6f2c93-5a5e-4c43-9f4b-0a5bd8a4d0b5, ts of click#4: timestamp, 1 minutes
   :  +- ~SubqueryAlias t
   :     +- StreamingRelation FileSource, [k#3L, ts#4]
   +- Aggregate [k#7L], [k#7L, count(1) AS n#9L]
      +- Relation [k#7L] parquet

== Optimized Logical Plan ==
Aggregate
+- StreamingRelation
"""


def test_operators_of_an_explained_plan():
    found = connect.nodes_in(EXPLAINED)
    assert [(node.name, node.streaming) for node in found] == [
        ("Project", True),
        ("Join", True),
        ("EventTimeWatermark", True),
        ("SubqueryAlias", True),
        ("StreamingRelation", False),
        ("Aggregate", False),
        ("Relation", False),
    ]
    assert [node.marked for node in found if node.marked] == ["ts of click"]


def test_older_plans_have_no_ids_of_watermarks():
    assert connect.Node("EventTimeWatermark ts#1, 10 seconds", True).marked == "ts"


def test_a_text_without_a_plan_has_no_operators():
    assert connect.nodes_in("== Physical Plan ==\nScan") == []


class Session:
    """A session, and a frame of it, whose server answers a look at its Python in one way."""

    schema = None

    def __init__(self, answer) -> None:
        self.session_id = f"session {id(self)}"
        self.sparkSession = self
        self.answer = answer
        self.asked = 0

    def select(self, *_):
        return self

    def range(self, *_):
        return self

    def mapInArrow(self, *_):  # noqa: N802
        return self

    def collect(self):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return [SimpleNamespace(python="/usr/bin/python3", problem=self.answer)]


def test_a_server_that_has_fastwin_is_asked_once():
    session = Session(None)
    connect.check_server(session)
    connect.check_server(session)
    assert session.asked == 1


def test_a_server_without_fastwin_is_told():
    says = (
        r"tasks run in the Python of the server, which cannot run fastwin \(/usr/bin/python3 says ModuleNotFoundError: "
        r"No module named 'fastwin'\); install 'fastwin\[spark,connect\]' there.*PYSPARK_PYTHON"
    )
    with pytest.raises(fw.SpecError, match=says):
        connect.check_server(Session("ModuleNotFoundError: No module named 'fastwin'"))


def test_a_worker_that_does_not_start_is_told():
    text = "An exception was thrown\nTraceback (most recent call last):\n  File\nModuleNotFoundError: No module named 'pyarrow'\n\nJVM"
    with pytest.raises(fw.SpecError, match=r"cannot run fastwin \(ModuleNotFoundError: No module named 'pyarrow'\)"):
        connect.check_server(Session(PythonException(text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Traceback\nModuleNotFoundError: x\n\nJVM stacktrace:\nan.Exception: y", "ModuleNotFoundError: x"),
        ("it cannot be started\nno such file\n", "no such file"),
    ],
)
def test_of_a_text_the_error_is_told_or_else_the_last_line(text, says):
    with pytest.raises(fw.SpecError, match=rf"cannot run fastwin \({says}\)"):
        connect.check_server(Session(PythonException(text)))


def test_a_server_that_runs_no_task_now_is_not_known(caplog):
    caplog.set_level(logging.INFO, connect.__name__)
    connect.check_server(Session(AnalysisException("not within a flow\nmore")))
    assert [record.getMessage() for record in caplog.records] == [
        "the Python of the server is not known: not within a flow"
    ]


def test_a_frame_that_may_not_be_looked_at_is_told():
    with pytest.raises(
        fw.SpecError, match="call apply outside of that function, in the same file, and return its frame"
    ):
        connect.check_server(FrameInFlow())


class InFlow(AnalysisException):
    def __init__(self) -> None:
        pass

    def getCondition(self) -> str:  # noqa: N802
        return "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


class FrameInFlow:
    """A frame as the function of a flow has it."""

    def select(self, *_):
        return self

    @property
    def schema(self):
        raise InFlow


def test_only_available_now_is_refused_for_a_frame_that_waits_for_the_clock():
    frame = Frame()
    guarded = connect.guard_clock(frame)
    assert guarded is frame and isinstance(guarded, Frame)
    with pytest.raises(fw.SpecError, match="availableNow: a query of processing time never ends"):
        guarded.writeStream.trigger(availableNow=True)
    assert guarded.writeStream.trigger(processingTime="1 second") == {"processingTime": "1 second"}
    assert Frame().writeStream.trigger(availableNow=True) == {"availableNow": True}


class Frame:
    """A frame whose writer tells which trigger it was given."""

    @property
    def writeStream(self):  # noqa: N802
        return SimpleNamespace(trigger=lambda **how: how)
