"""The Python that Spark starts in local mode: this one, importing PySpark from the folder where it is installed.

Spark puts ``pyspark.zip`` and py4j's archive first on the path of each Python it starts. Python keeps no bytecode of
what comes out of an archive, so it compiles PySpark anew in each process: most of a second, which the first micro-batch
of every query waits for. An installed PySpark has the same modules in a folder, with their bytecode.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

__all__ = ["quick_python"]

_SCRIPT = """#!/bin/sh
# {python}, which imports PySpark from the folder where it is installed
for archive in {archives}; do PYTHONPATH="${{PYTHONPATH#"$archive":}}"; done
exec {python} "$@"
"""


def quick_python() -> str | None:
    """Returns the path of a script that is this Python, without Spark's archives at the begin of its path.

    It lies in a temporary folder until this process ends. Returns None where the archives may hold another PySpark
    than the installed one, where there are none, and where nothing in the temporary folder may be executed.
    """
    package = Path(pyspark.__file__).parent
    archives = _archives(package)
    if not archives or Path(os.environ.get("SPARK_HOME") or package) != package:
        return None
    folder = Path(tempfile.mkdtemp(prefix="fastwin-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / Path(sys.executable).name
    quoted = " ".join(shlex.quote(str(archive)) for archive in archives)
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), archives=quoted), "utf-8")
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else None  # False where the file system is mounted "noexec"


def _archives(package: Path) -> list[Path]:
    """Returns Spark's archives in the order in which it puts them on the path."""
    folder = package / "python" / "lib"
    return [archive for name in ("pyspark.zip", "py4j-*-src.zip") for archive in sorted(folder.glob(name))]
