"""What is said where a package of Spark's extra, or Java, is missing. Nothing here starts Spark."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

import fastwin as fw
from spark_glue import arguments
from spark_glue.session import _started

ROOT = Path(__file__).resolve().parents[2]


class Fails:
    """A builder whose Spark does not start."""

    def getOrCreate(self):  # noqa: N802
        raise PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


def test_an_import_without_pyspark_names_the_command():
    code = "import sys; sys.modules['pyspark'] = None; import fastwin; import spark_glue"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "fastwin.errors.NotInstalledError: spark_glue: needs the package pyspark: pip install 'fastwin[spark]'"
    )


def test_spark_that_cannot_start_for_want_of_java(monkeypatch, tmp_path):
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        fw.NotInstalledError, match=r"^spark_glue\.session: Spark needs Java 17 or newer, and there is no"
    ):
        _started(Fails())
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1")
    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"):
        _started(Fails())


def test_streams_without_protobuf_name_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(fw.NotInstalledError, match=r"^apply: needs .*: pip install 'fastwin\[spark\]'$"):
        arguments._check_packages()


def test_another_problem_stays_what_it_is(monkeypatch):
    monkeypatch.setattr(sys.modules["spark_glue.session"], "java_fault", lambda: None)
    with pytest.raises(PySparkRuntimeError):
        _started(Fails())
