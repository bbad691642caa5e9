"""An archive of the classes that Spark's JVM loads, with which the next one starts in less time."""

import hashlib
import logging
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyspark

from fastwin.callers import callers_level
from fastwin.errors import SpecError

__all__ = ["archive_options", "archived_classes"]

_LOG = logging.getLogger(__name__)
_VARIABLE = "SPARK_SUBMIT_OPTS"
# What does not fit, such as further jars, a JVM loads as usual; what it says of that is of no use to anybody.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# With a folder on its class path, a JVM writes no archive.
_FOLDERS = "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"
# Spark's start script and the JVM read these in an option.
_READ = re.compile(r"""[\s'"\\:]""")


def archived_classes(folder: str | os.PathLike[str] | None) -> AbstractContextManager[None]:
    """Lets a JVM that starts within take its classes from an archive in a folder, or write it when it ends.

    None: does nothing. Raises SpecError for a folder that cannot be made or written to.
    """
    return _started_with(None if folder is None else archive_options(folder))


@contextmanager
def _started_with(options: str | None) -> Iterator[None]:
    if options is None:
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = " ".join(filter(None, [before, options]))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def archive_options(folder: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> str | None:
    """Returns the options of the JVM that Spark would run: to read its archive, or to write it where there is none.

    None, and a warning, where this environment has settings of Spark's or Hadoop's in a folder.
    """
    environment = os.environ if environment is None else environment
    path = Path(os.path.expanduser(folder)).absolute()
    if odd := _READ.search(str(path)):
        raise SpecError(
            f"class_archive: {odd[0]!r} means something to those who read it; name another path, got {path}"
        )
    for name in _FOLDERS:
        if environment.get(name):
            warnings.warn(
                f"class_archive: {name} is set, and with a folder of settings on its class path a JVM has no archive: "
                f"this session goes without",
                stacklevel=callers_level(),
            )
            return None
    archive = path / f"spark-{pyspark.__version__}-{_fingerprint(environment)}.jsa"
    if _is_whole(archive):
        return f"-XX:SharedArchiveFile={archive} {_QUIET}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise SpecError(f"class_archive: must be a folder that can be made: {problem}") from problem
    if not os.access(path, os.W_OK):
        raise SpecError(f"class_archive: must be a folder that can be written to, got {path}")
    _LOG.info("session: Spark's JVM writes its classes to %s when this program ends", archive)
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


def _fingerprint(environment: Mapping[str, str]) -> str:
    """Tells apart what a JVM tells apart: by that Java, and by the names, sizes and times of Spark's jars."""
    home = environment.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java", path=environment.get("PATH"))
    files = [os.path.realpath(java)] if java else []
    spark = Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    files += sorted(str(jar) for jar in spark.glob("jars/*.jar"))
    told = hashlib.sha256()
    for file in files:
        found = os.stat(file)
        told.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return told.hexdigest()[:12]


def _is_whole(archive: Path) -> bool:
    """Whether a JVM has written all of an archive: what it begins with is written last."""
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except OSError:
        return False
