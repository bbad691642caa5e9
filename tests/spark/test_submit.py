"""As people run Spark: spark-submit with a module of theirs, on two executors that are processes of their own."""

import io
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.spark_submit import MODULE, ROOT, submitted
from tests.support.variants import variants


@pytest.mark.parametrize("fastwin_from", variants(["installed", "archive"]))
def test_submitted_with_py_files_to_two_executors(tmp_path, fastwin_from):
    options = {"spark.executorEnv.MIMALLOC_PURGE_DELAY": "7"}
    if fastwin_from == "archive":
        archive(tmp_path / "env.tar.gz")
        with tarfile.open(tmp_path / "env.tar.gz") as tar:  # Spark asks the processor about its state on the driver
            tar.extractall(tmp_path / "env", filter="data")
        pythons = {"PYSPARK_PYTHON": "./env/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
        found = submitted(tmp_path, MODULE, options, "--archives", f"{tmp_path / 'env.tar.gz'}#env", **pythons)
        (module,) = found["MODULE"]
        assert module.endswith("/env/lib/fastwin/__init__.py")
        assert not module.startswith(str(tmp_path)), "an executor's copy, not the driver's"
    else:
        found = submitted(tmp_path, MODULE, options | {"spark.executorEnv.PYTHONPATH": str(ROOT)})
    assert found["RESULT"][3:] == ["7", "0"], "what was said stays, the rest is set"


def archive(target: Path) -> None:
    """Packs an environment that has fastwin, laid out as venv-pack does; all else comes from this interpreter's."""
    python = f"""#!/bin/sh
PYTHONPATH="$(dirname "$0")/../lib:$PYTHONPATH" exec "{sys.executable}" "$@"
""".encode()
    entry = tarfile.TarInfo("bin/python")
    entry.size, entry.mode = len(python), 0o755
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        tar.addfile(entry, io.BytesIO(python))
        for package in ("fastwin", "spark_glue"):
            tar.add(ROOT / package, f"lib/{package}", filter=lambda one: None if one.name.endswith(".pyc") else one)
