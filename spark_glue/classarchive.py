"""An archive of the classes that Spark's JVM loads, with which the next one starts in less time."""

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from fastwin.errors import SpecError

__all__ = ["archive_options", "archived_classes"]

_LOG = logging.getLogger(__name__)
_VARIABLE = "SPARK_SUBMIT_OPTS"
# What does not fit, such as further jars, a JVM loads as usual; what it says of that is of no use to anybody.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


@contextmanager
def archived_classes(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Lets a JVM that starts within take its classes from an archive in a folder, or write it when it ends.

    None: does nothing. Raises SpecError for a folder that cannot be made or written to.
    """
    if folder is None:
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = " ".join(filter(None, [before, archive_options(folder)]))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def archive_options(folder: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> str:
    """Returns the options of the JVM that Spark would run: to read its archive, or to write it where there is none."""
    path = Path(os.path.expanduser(folder)).absolute()
    if any(letter.isspace() for letter in str(path)):
        raise SpecError(f"class_archive: Spark's start script cuts options at blanks; name a path without, got {path}")
    archive = (
        path / f"spark-{pyspark.__version__}-{_fingerprint(os.environ if environment is None else environment)}.jsa"
    )
    if _is_whole(archive):
        return f"-XX:SharedArchiveFile={archive} {_QUIET}"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SpecError(f"class_archive: must be a folder that can be made: {problem}") from problem
    if not os.access(path, os.W_OK):
        raise SpecError(f"class_archive: must be a folder that can be written to, got {path}")
    _LOG.info("session: Spark's JVM writes its classes to %s when this program ends", archive)
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


def _fingerprint(environment: Mapping[str, str]) -> str:
    """Tells Javas and Sparks apart: by where they are, and by when that Java was made."""
    home = environment.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java", path=environment.get("PATH"))
    found = os.path.realpath(java) if java else ""
    made = os.stat(found).st_mtime_ns if found else 0
    return hashlib.sha256(f"{found}\0{made}\0{pyspark.__file__}".encode()).hexdigest()[:12]


def _is_whole(archive: Path) -> bool:
    """Whether a JVM has written all of an archive: what it begins with is written last."""
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except OSError:
        return False
