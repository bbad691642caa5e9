"""A file system for tests: the local disk, with listings that come late, and files that cannot be replaced.

``LateFileSystem.java`` is compiled by the compiler that Spark brings along, so it needs no Java development kit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["CLASS", "SCHEME", "compiled", "manners"]

SCHEME = "late://"
CLASS = "fastwin.LateFileSystem"
_SOURCE = Path(__file__).with_name("LateFileSystem.java")


def compiled(spark: SparkSession, folder: Path) -> None:
    """Writes the class below a folder, for a class path that names it. The session's configuration has to name it."""
    java = spark._jvm
    file = java.java.io.File
    compiler = java.org.codehaus.janino.Compiler()
    loader = java.Thread.currentThread().getContextClassLoader()
    compiler.setIClassLoader(java.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setDestinationDirectory(file(str(folder)), False)
    sources = spark.sparkContext._gateway.new_array(file, 1)
    sources[0] = file(str(_SOURCE))
    compiler.compile(sources)


@contextmanager
def manners(spark: SparkSession, late_ms: int = 0, refuse: bool = False) -> Iterator[None]:
    """What the file system does in this JVM: late_ms: listings lack what is younger. refuse: no file is replaced."""
    system = spark._jvm.java.lang.System
    given = {"fastwin.late.ms": str(late_ms), "fastwin.late.refuse": str(refuse).lower()}
    for name, value in given.items():
        system.setProperty(name, value)
    try:
        yield
    finally:
        for name in given:
            system.clearProperty(name)
