"""A query that this Spark has begun goes on in a newer one, from its checkpoint."""

import os
import subprocess

import pytest

from tests.support.jvm import JVM_OPTIONS
from tests.support.spark_relay import begin
from tests.support.spark_submit import ROOT
from tests.support.variants import variants

NEWER = "FASTWIN_NEWER_PYTHON"
"""Names the interpreter of an environment with a newer Spark; ``make test-spark`` sets it."""


@pytest.mark.skipif(NEWER not in os.environ, reason=f"{NEWER} names no Python with a newer Spark; see make test-spark")
@pytest.mark.parametrize("names", variants([("tumbling", "own trigger"), ("sessions",)], ("tumbling", "own trigger")))
def test_a_newer_spark_goes_on(spark, tmp_path, names):
    begin(spark, tmp_path, names)
    done = subprocess.run(
        [os.environ[NEWER], "-m", "tests.support.spark_relay", str(tmp_path)],
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        | {"PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": JVM_OPTIONS},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("micro-batches there") == len(names), done.stdout
    print(done.stdout)
