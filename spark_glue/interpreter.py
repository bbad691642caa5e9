"""The Python that Spark starts in local mode: this one, importing PySpark from the folder where it is installed.

Spark puts ``pyspark.zip`` and py4j's archive first on the path of each Python it starts. Python keeps no bytecode of
what comes out of an archive, so it compiles PySpark anew in each process: most of a second, which the first micro-batch
of every query waits for. An installed PySpark has the same modules in a folder, with their bytecode.
"""

import os
import sys
from pathlib import Path

import pyspark

from spark_glue.plan.compat import SparkContext

__all__ = ["start_quickly"]

_SCRIPT = Path(__file__).with_name("python.sh")


def start_quickly(context: SparkContext) -> None:
    """Lets Spark start this Python by a script that takes the archives off its path.

    Nothing changes where the archives may hold another PySpark than the installed one, where there are none, and where
    the script may not be executed.
    """
    package = Path(pyspark.__file__).parent
    installed = Path(os.environ.get("SPARK_HOME") or package) == package
    if installed and (package / "python" / "lib" / "pyspark.zip").exists() and os.access(_SCRIPT, os.X_OK):
        context.environment |= {"FASTWIN_PYTHON": sys.executable, "FASTWIN_PYSPARK": str(package)}
        context.pythonExec = str(_SCRIPT)
