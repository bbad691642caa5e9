"""Ctrl-C while Spark starts: its Java program ends as well."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import spark_glue
spark_glue.session(master="local[1]")
"""


def group(leader: int) -> dict[int, str]:
    """The processes of a group that have not ended, by their ids."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, of = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            command = (folder / "cmdline").read_text(errors="replace")
        except OSError:
            continue
        if int(of) == leader and state != "Z":
            found[int(folder.name)] = command
    return found


def wait_for(holds, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return bool(holds())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes")
@pytest.mark.parametrize("delay", [0, 0.3])
def test_no_java_program_stays(tmp_path: Path, delay: float) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=out, stderr=out, cwd=tmp_path, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    try:
        assert wait_for(lambda: any("java" in told for told in group(process.pid).values()), 60)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) != 0
        assert wait_for(lambda: not group(process.pid), 15), group(process.pid)
    finally:
        for left in group(process.pid):
            os.kill(left, signal.SIGKILL)


BYSTANDER = """
import importlib, os, subprocess, sys
session = importlib.import_module("spark_glue.session")
wait = [sys.executable, "-c", "import time; time.sleep(60)", "org.apache.spark.deploy.SparkSubmit"]
earlier = subprocess.Popen(wait, env=os.environ | {"_PYSPARK_DRIVER_CONN_INFO_PATH": "there"})
bystander = subprocess.Popen(wait)
started = subprocess.Popen(wait, env=os.environ | {"_PYSPARK_DRIVER_CONN_INFO_PATH": "here"})
session._end_what_started({earlier.pid})
assert started.wait(timeout=30) == -9
assert bystander.poll() is None and earlier.poll() is None
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes")
def test_other_processes_stay(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", BYSTANDER], cwd=tmp_path, env=environment, start_new_session=True)
    try:
        assert process.wait(timeout=60) == 0
    finally:
        for left in group(process.pid):
            os.kill(left, signal.SIGKILL)
