"""Several sinks behind one windowed frame."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from fastwin.errors import SpecError

__all__ = ["Sink", "route"]

Sink = Callable[[DataFrame, int], object]
"""Takes the rows of one micro-batch for one output, and the number of the batch."""


def route(
    main: Sink | None = None, late: Sink | None = None, bad: Sink | None = None
) -> Callable[[DataFrame, int], None]:
    """Returns a function for ``foreachBatch`` that splits the frame of ``apply`` and hands each part to its sink.

    main: gets the windows' results. late, bad: get the late and the bad rows, with the input's columns; the spec must
        ask for these outputs. A part without a sink goes nowhere.

    Each sink is called once per micro-batch, with a frame and the batch number, also when there are no rows for it.
    The stateful operator runs once however many sinks there are, and however often they look at their frames.

    Raises SpecError if no sink is given or one is not callable; and, when the query runs, if a sink is given for an
    output that the frame does not have.
    """
    sinks = {name: sink for name, sink in (("main", main), ("late", late), ("bad", bad)) if sink is not None}
    if not sinks:
        raise SpecError("route: needs at least one of main=, late=, bad=")
    for name, sink in sinks.items():
        if not callable(sink):
            raise SpecError(f"route: {name} must be a function of a frame and a batch number, got {sink!r}")

    def split(frame: DataFrame, batch_id: int) -> None:
        sides = [name for name in ("late", "bad") if name in frame.columns and _is_struct(frame, name)]
        for name in sinks:
            if name != "main" and name not in sides:
                asks = ".side_output_late_data()" if name == "late" else '.bad_rows("divert")'
                raise SpecError(f"route: {name} is given, but the spec has no {name} output; ask for it with {asks}")
        frame.persist()
        try:
            frame.count()  # all of it: a sink may look at some rows only, or at none, and the state must move on
            for name, sink in sinks.items():
                sink(_part(frame, name, sides), batch_id)
        finally:
            frame.unpersist()

    return split


def _is_struct(frame: DataFrame, name: str) -> bool:
    return frame.schema[name].dataType.typeName() == "struct"


def _part(frame: DataFrame, name: str, sides: list[str]) -> DataFrame:
    if name != "main":
        return frame.where(frame[name].isNotNull()).select(f"{name}.*")
    for side in sides:
        frame = frame.where(frame[side].isNull())
    return frame.drop(*sides)
