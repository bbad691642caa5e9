"""Spark: the extra, Java, and variables of the environment that lead elsewhere. Nothing of Spark is imported."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fastwin
from fastwin.doctor.finding import Finding
from fastwin.machine.java import LEAST_JAVA, find_java, java_command, java_fault

__all__ = ["SPARK", "java", "variables"]

SPARK = "spark"
_SECONDS = 60.0
_HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
# Without the current folder, in which workers may not run. PySpark comes to them from Spark.
_FOR_PYTHON = """
import sys
print("%d.%d" % sys.version_info[:2])
sys.stdout.flush()
sys.path = [folder for folder in sys.path if folder]
import fastwin, google.protobuf, pandas, pyarrow
print(fastwin.__version__)
"""


def _installed() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def java(environment: Mapping[str, str] | None = None) -> Finding:
    """Returns which Java Spark would run. Without one, Spark is broken if it is installed and runs on this machine."""
    environment = os.environ if environment is None else environment
    purpose = f"Spark runs on it, {LEAST_JAVA} or newer"
    fault = java_fault(environment)
    if fault is None:
        found = find_java(environment)
        return Finding("Java", "ok", f"{found.text} of {found.path}" if found else "", purpose, extra=SPARK)
    if environment.get("SPARK_REMOTE"):
        return Finding("Java", "missing", "not needed: SPARK_REMOTE names a server", purpose)
    said, _, mend = fault.rpartition(": ")
    there = _installed() is not None
    return Finding("Java", "wrong" if there else "missing", said, purpose, mend or java_command(), extra=SPARK)


def variables(environment: Mapping[str, str] | None = None) -> list[Finding]:
    """Returns what SPARK_HOME and PYSPARK_PYTHON lead to, where they are set."""
    environment = os.environ if environment is None else environment
    found = []
    if environment.get("SPARK_HOME"):
        found.append(_home(environment["SPARK_HOME"]))
    if environment.get("PYSPARK_PYTHON"):
        found.append(_workers(environment["PYSPARK_PYTHON"]))
    return found


def _home(home: str) -> Finding:
    purpose = "the Spark that pyspark starts"
    try:
        told = re.search(r"Spark (\d+(?:\.\d+)+)", (Path(home) / "RELEASE").read_text(encoding="utf-8"))
    except OSError:
        told = None
    ours = _installed()
    if not (Path(home) / "bin" / "spark-submit").exists():
        return Finding("SPARK_HOME", "wrong", f"{home} has no bin/spark-submit", purpose, "unset SPARK_HOME", SPARK)
    if told and ours and told[1] != ours:
        mend = f"unset SPARK_HOME, or pip install 'pyspark=={told[1]}'"
        return Finding("SPARK_HOME", "wrong", f"{home} is {told[1]}, pyspark is {ours}", purpose, mend, SPARK)
    return Finding("SPARK_HOME", "ok", f"{home}{f' is {told[1]}' if told else ''}", purpose, extra=SPARK)


def _workers(program: str) -> Finding:
    purpose = "the Python of Spark's workers, which must be like this one"
    fault = _fault_of(program)
    if fault is None:
        said = f"{program} is {_HERE}, with fastwin {fastwin.__version__}"
        return Finding("PYSPARK_PYTHON", "ok", said, purpose, extra=SPARK)
    mend = f"unset PYSPARK_PYTHON, or export PYSPARK_PYTHON={sys.executable}"
    return Finding("PYSPARK_PYTHON", "wrong", f"{program} {fault}", purpose, mend, SPARK)


def _fault_of(program: str) -> str | None:
    """Returns what is wrong with a Python for Spark's workers; None if nothing is."""
    path = shutil.which(program)
    if path is None:
        return "does not run"
    try:
        done = subprocess.run(
            [path, "-c", _FOR_PYTHON],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return "does not run"
    there, *found = done.stdout.split() or [""]
    if there != _HERE:
        return f"is {there}, and this is {_HERE}" if there else "does not run"
    if done.returncode or not found:
        last = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
        return f"cannot load what workers need: {last}"
    if found[-1] != fastwin.__version__:
        return f"has fastwin {found[-1]}, and this is {fastwin.__version__}"
    return None
