"""What the doctor says of a query that has failed, out of all that Spark says of it. No Spark runs."""

import pytest

from spark_glue.health.ailments import diagnose
from spark_glue.health.records import Setup

# Of an error in a sink of foreachBatch.
SINK = """\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: An \
exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
"""
IN_A_WORKER = """\
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/fastwin/columns/checking.py", line 60, in check
    raise BadRowError(sentence)
fastwin.errors.BadRowError: event_time 'ts': null timestamp in row 0

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
 SQLSTATE: 39000
=== Streaming Query ===
Current State: ACTIVE"""
IN_THE_JVM = """\
py4j.protocol.Py4JJavaError: An error occurred while calling o95.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times:
Python worker failed to connect back.
\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(PythonWorkerFactory.scala:1)
Caused by: java.net.SocketTimeoutException: Timed out"""


def failed(error):
    (found,) = diagnose([], Setup(running=False, error=error))
    assert found.name == "failed"
    assert found.what == f"the query ended with an error: {found.evidence['error']}"
    return found


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (SINK + IN_A_WORKER, "fastwin.errors.BadRowError: event_time 'ts': null timestamp in row 0"),
        (
            SINK + IN_THE_JVM,
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times:",
        ),
        (
            SINK + "psycopg.errors.UndefinedTable: there is no x\n\nJVM stacktrace:\n",
            "psycopg.errors.UndefinedTable: there is no x",
        ),
        (
            SINK + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "x", line 1\nx.UniqueViolation: b\nErrors: c\n',
            "x.UniqueViolation: b",
        ),
        ("[STREAM_FAILED] x\nValueError: y", "[STREAM_FAILED] x"),
        (SINK, SINK.splitlines()[0]),
    ],
    ids=["in a worker", "in the JVM", "another name", "behind another", "no traceback", "no error"],
)
def test_the_error_is_named(text, error):
    assert failed(text).evidence["error"] == error


def test_a_mend_is_known_by_all_of_the_text():
    assert "ten seconds" in failed(SINK + IN_THE_JVM).mend
    assert "Errors on the page Troubleshooting" in failed(SINK + IN_A_WORKER).mend
