"""The outputs of a frame beside the main one: each is a struct column."""

from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from spark_glue.plan.outputs import SIDE_PREFIX, is_other_output

__all__ = ["argument_of", "check_main_alone", "outputs_in"]


def outputs_in(frame: DataFrame) -> list[str]:
    """Returns the columns that hold late rows, bad rows and side outputs."""
    return [field.name for field in frame.schema if is_other_output(field)]


def argument_of(name: str) -> str:
    """Returns the argument with which ``route`` takes an output. name: of its column."""
    tag = name.removeprefix(SIDE_PREFIX)
    return f"{name}=..." if tag == name else f"side={{{tag!r}: ...}}"


def check_main_alone(frame: DataFrame, sink: str) -> None:
    """Raises SpecError if a frame has other outputs, which a sink cannot take. sink: its name."""
    for name in outputs_in(frame):
        raise SpecError(f"{sink}: the spec has {name} rows as well; use route(main={sink}(...), {argument_of(name)})")
