"""The line that a warning is of."""

import warnings
from typing import Any

import pytest

from fastwin.callers import callers_level

WARNS = "def call():\n    warnings.warn('found', stacklevel=callers_level())\n"
CALLS = "def call():\n    inner()\n"


def file_of_warning(*modules: str) -> str:
    """The file that a warning is of: of these modules each calls the next, and the last one warns."""
    inner: Any = None
    for name in reversed(modules):
        names = {"__name__": name, "inner": inner, "warnings": warnings, "callers_level": callers_level}
        exec(compile(CALLS if inner else WARNS, f"{name}.py", "exec"), names)
        inner = names["call"]
    with pytest.warns(UserWarning, match="found") as told:
        inner()
    return told[0].filename


@pytest.mark.parametrize(
    "modules",
    [
        ["fastwin"],
        ["fastwin.run.stream"],
        ["spark_glue.apply"],
        ["spark_glue.sinks.store", "spark_glue.sinks.patience", "spark_glue.sinks.store"],
        ["spark_glue.sinks.store", "fastwin.store.panestore", "fastwin.store.notices"],
    ],
)
def test_lines_of_both_packages_are_skipped(modules: list[str]) -> None:
    assert file_of_warning(*modules) == __file__


@pytest.mark.parametrize("name", ["__main__", "fastwin_jobs.daily", "fastwinner", "spark_glued", "jobs.fastwin"])
def test_modules_with_like_names_are_the_users(name: str) -> None:
    assert file_of_warning(name) == f"{name}.py"
    assert file_of_warning(name, "spark_glue.apply", "fastwin.run.zones") == f"{name}.py"


def test_the_nearest_line_counts() -> None:
    assert file_of_warning("fastwin.run.stream", "users.functions", "fastwin.columns.units") == "users.functions.py"
