"""The outputs of a frame beside the main one: each is a struct column."""

from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from spark_glue.plan.outputs import SIDE_PREFIX, is_other_output

__all__ = ["check_main_alone", "outputs_in"]


def outputs_in(frame: DataFrame) -> list[str]:
    """Returns the columns that hold late rows, bad rows and side outputs."""
    return [field.name for field in frame.schema if is_other_output(field)]


def check_main_alone(frame: DataFrame, sink: str) -> None:
    """Raises SpecError if a frame has other outputs, which a sink cannot take. sink: its name."""
    for name in outputs_in(frame):
        tag = name.removeprefix(SIDE_PREFIX)
        other = f"{name}=..." if tag == name else f"side={{{tag!r}: ...}}"
        raise SpecError(f"{sink}: the spec has {name} rows as well; use route(main={sink}(...), {other})")
