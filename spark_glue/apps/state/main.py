"""Runs ``fastwin why``, ``fastwin inspect`` and ``fastwin rescale``."""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from spark_glue.apps.console import start_spark
from spark_glue.inspection import key_fields
from spark_glue.plan.catalyst import quoted
from spark_glue.plan.compat import Py4JError
from spark_glue.plan.errortext import error_in

__all__ = ["COMMANDS", "load_spec", "shares_in_text"]

_TRACEBACK = "Traceback (most recent call last):"
_STATE_ERROR = f"{StateError.__module__}.{StateError.__qualname__}: "


def load_spec(text: str) -> fw.WindowSpec | fw.JoinSpec:
    """Returns the specification that ``module:name`` or ``path.py:name`` names.

    Modules are looked for in this folder first; those that a file imports, in its own folder, and then in this one.
    Raises SpecError where there is none, and for a file that has the name of another module.
    """
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise SpecError(f"--spec: must be MODULE:NAME, such as jobs.minutes:spec, got {text!r}")
    if where.endswith(".py"):
        _check_free(where)
    elif "/" in where or where.startswith("."):
        raise SpecError(f"--spec: {where!r} is neither a module, such as jobs.shops, nor a file that ends in .py")
    sys.path[:0] = _folders(where)
    try:
        spec: Any = _module_of(where)
    except (Exception, SystemExit) as problem:  # the file may do anything
        said = f"{type(problem).__name__}: {problem}{_line_of(problem)}"
        raise SpecError(f"--spec: {where!r} cannot be imported: {said}") from problem
    for part in name.split("."):
        spec = getattr(spec, part, None)
    if spec is None:
        raise SpecError(f"--spec: {where!r} has no {name!r}")
    if not isinstance(spec, fw.WindowSpec | fw.JoinSpec):
        raise SpecError(f"--spec: {name!r} in {where!r} is no WindowSpec or JoinSpec but {type(spec).__name__}")
    return spec


def _module_of(where: str) -> ModuleType:
    """Imports a module, or a file as one."""
    if not where.endswith(".py"):
        return importlib.import_module(where)
    found = importlib.util.spec_from_file_location(Path(where).stem, where)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # functions of the spec name it, and state is told by that
    try:
        found.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(found.name, None)
        raise
    return module


def _line_of(problem: BaseException) -> str:
    """Returns at which line of a module its import ended, to stand behind the error; nothing where none has run."""
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename not in (__file__, importlib.__file__) and not frame.filename.startswith("<"):
            return f" ({frame.filename}, line {frame.lineno})"
    return ""


def _folders(where: str) -> list[str]:
    """Returns the folders in which a specification's modules are, as ``python FILE`` and ``python -m`` have them."""
    here = str(Path.cwd())
    return [str(Path(where).resolve().parent), here] if where.endswith(".py") else [here]


def _check_free(where: str) -> None:
    """Raises SpecError for a file that would take the place of another module of its name."""
    name = Path(where).stem
    there = sys.modules.get(name)
    if name in sys.stdlib_module_names:
        whose = "Python's own"
    elif there is not None and not _is_file(there, where):
        whose = getattr(there, "__file__", None) or "built in"
    else:
        return
    raise SpecError(
        f"--spec: {where!r} would be the module {name!r}, and there is another one of this name already ({whose}); "
        f"give it as PACKAGE.{name}:NAME, as the query imports it, or under another name"
    )


def _is_file(module: Any, path: str) -> bool:
    own = getattr(module, "__file__", None)
    return own is not None and Path(own).resolve() == Path(path).resolve()


def _session(arguments: argparse.Namespace, log: Path) -> Any:
    spark = start_spark("fastwin", arguments.master, {"spark.ui.enabled": False}, log)
    spark.sparkContext.setLogLevel("OFF")
    # Spark's workers import what the specification's functions are in, as this process has done.
    spark.sparkContext.environment["PYTHONPATH"] = os.pathsep.join(_folders(arguments.spec.rpartition(":")[0]))
    return spark


def _why(arguments: argparse.Namespace) -> int:
    spec = load_spec(arguments.spec)
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(arguments, Path(folder) / "spark.log")
        try:
            fields = key_fields(arguments.checkpoint, spec, arguments.operator)
            key = _key(arguments.key, fields)
            report = spark_glue.why(arguments.checkpoint, spec, key=key, at=arguments.at, operator=arguments.operator)
        finally:
            spark.stop()
    print(json.dumps(report.to_dict(), default=str, indent=2) if arguments.json else report)
    return 0


def _key(texts: list[str | None], fields: list[pa.Field]) -> tuple[Any, ...]:
    """Returns a key that is given as text, None for null."""
    if len(texts) != len(fields):
        names = ", ".join(field.name for field in fields)
        raise SpecError(f"--key: give it once for each of {names}" if fields else "--key: the spec has no key columns")
    values = []
    for text, field in zip(texts, fields, strict=True):
        try:
            values.append(None if text is None else pa.scalar(text).cast(field.type).as_py())
        except pa.ArrowException as problem:
            raise SpecError(f"--key: {text!r} does not suit {field.name!r}, which is {field.type}") from problem
    return tuple(values)


def shares_in_text(text: str) -> set[int]:
    """Returns the numbers in a text such as ``0-7`` or ``0,3,5``. Raises SpecError where it has others."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()) or int(last or first) < int(first):
            raise SpecError(f"--shares: must be numbers such as 0-7 or 0,3,5, got {text!r}")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _inspect(arguments: argparse.Namespace) -> int:
    if arguments.rows < 1:
        raise SpecError(f"--rows: must be at least 1, got {arguments.rows}")
    if arguments.out is not None and os.path.exists(arguments.out):  # where nobody may look, Spark will say so
        raise SpecError(f"--out: {arguments.out} is there already; name a new folder")
    shares = None if arguments.shares is None else shares_in_text(arguments.shares)
    spec = load_spec(arguments.spec)
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(arguments, Path(folder) / "spark.log")
        try:
            key: tuple[Any, ...] = ()
            if arguments.key is not None:
                key = _key(arguments.key, key_fields(arguments.checkpoint, spec, arguments.operator))
            frame = spark_glue.inspect(
                arguments.checkpoint,
                spec,
                keys=[key] if key else None,
                shares=shares,
                operator=arguments.operator,
            )
            for column, value in zip(frame.columns, key, strict=False):  # key columns come first
                frame = frame.where(F.col(quoted(column)).eqNullSafe(value))
            if arguments.where is not None:
                frame = _where(frame, arguments.where)
            _hand_out(frame, arguments)
        finally:
            spark.stop()
    return 0


def _hand_out(frame: DataFrame, arguments: argparse.Namespace) -> None:
    """Prints a frame, or writes it to --out. Raises SpecError where Spark cannot."""
    try:
        if arguments.out is not None:
            frame.write.parquet(arguments.out)
        else:
            frame.show(arguments.rows, truncate=False)
    except (PySparkException, Py4JError) as problem:
        said = str(getattr(problem, "java_exception", problem))
        found = error_in(said) or ""
        if found.startswith(_STATE_ERROR):
            raise StateError(found.removeprefix(_STATE_ERROR)) from problem
        if _TRACEBACK in said:  # an error of Python's, which its first line does not tell
            raise
        what = "the windows cannot be shown" if arguments.out is None else f"--out: {arguments.out} cannot be written"
        where = "" if arguments.where is None else f" with --where {arguments.where!r}"
        raise SpecError(f"{what}{where}: {_first_line(said)}") from problem


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line), "")


def _where(frame: DataFrame, condition: str) -> DataFrame:
    """Returns the rows of a frame for which a condition in SQL holds."""
    try:
        return frame.where(condition)
    except AnalysisException as problem:  # also of one that cannot be parsed
        said = _first_line(str(problem))
        raise SpecError(f"--where: {condition!r} is no condition on {', '.join(frame.columns)}: {said}") from None


def _rescale(arguments: argparse.Namespace) -> int:
    spec = load_spec(arguments.spec)
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(arguments, Path(folder) / "spark.log")
        try:
            last = spark_glue.rescale(
                arguments.checkpoint, spec, arguments.to, arguments.partitions, arguments.key_groups
            )
        finally:
            spark.stop()
    groups = "" if arguments.key_groups is None else f", and key_groups={arguments.key_groups} in apply"
    print(f"{arguments.to}: {arguments.partitions} partitions, up to micro-batch {last}")
    print(f"Start the query with it as checkpointLocation{groups}.")
    return 0


COMMANDS = {"why": _why, "inspect": _inspect, "rescale": _rescale}
