"""Several sinks behind one windowed frame."""

import logging
from collections.abc import Callable, Mapping
from itertools import combinations, permutations

from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from fastwin.spec.joinending import LATE_SIDES
from spark_glue.plan.outputs import SIDE_PREFIX
from spark_glue.plan.queries import query_of
from spark_glue.sinks.folder import FolderSink
from spark_glue.sinks.outputs import argument_of, outputs_in

__all__ = ["Sink", "route"]

Sink = Callable[[DataFrame, int], object]
"""Takes the rows of one micro-batch for one output, and the number of the batch."""

_LOG = logging.getLogger(__name__)


def route(
    main: Sink | None = None,
    late: Sink | None = None,
    bad: Sink | None = None,
    side: Mapping[str, Sink] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Returns a function for ``foreachBatch`` that splits the frame of ``apply`` and hands each part to its sink.

    main: gets the windows' results. late, bad: get the late and the bad rows, with the input's columns; the spec must
        ask for these outputs. side: sinks of side outputs, by tag. A part without a sink goes nowhere: the log says so
        at the first micro-batch for each output beside the main one that the spec asks for.

    Each sink is called once per micro-batch, with a frame and the batch number, also when there are no rows for it.
    The stateful operator runs once however many sinks there are, and however often they look at their frames.

    Raises SpecError if no sink is given, one is not callable, or two are ``to_folder`` with one folder, where each
    would replace the files of the other, or with a folder inside the other's; and, when the query runs, if a sink
    is given for an output that the frame does not have, if a query of processing time was started with
    ``availableNow``, because it would never end, or if it has two results of one frame with a watermark of its own,
    of which one would never fire.
    """
    if side is not None and not isinstance(side, Mapping):
        raise SpecError(f"route: side must be a dict of sinks by tag, got {side!r}")
    given = {"main": main, "late": late, "bad": bad}
    given |= {SIDE_PREFIX + tag: sink for tag, sink in (side or {}).items()}
    sinks = {name: sink for name, sink in given.items() if sink is not None}
    if not sinks:
        raise SpecError("route: needs at least one of main=, late=, bad=, side=")
    for name, sink in sinks.items():
        if not callable(sink):
            raise SpecError(f"route: {name} must be a function of a frame and a batch number, got {sink!r}")
    _check_folders(sinks)
    told: set[str] = set()

    def split(frame: DataFrame, batch_id: int) -> None:
        columns = outputs_in(frame)
        for name in sinks:
            if name != "main" and name not in columns:
                raise SpecError(
                    f"route: {name} is given, but the spec has no {name} output; {_how_to_get(name, columns)}"
                )
        _check_query(frame)
        lost = [name for name in columns if name not in sinks and name not in told]
        told.update(lost)
        for name in lost:
            _LOG.warning(
                "route: no sink takes the %s rows that the spec asks for: they go nowhere; give %s",
                name,
                argument_of(name),
            )
        frame.persist()
        try:
            frame.count()  # all of it: a sink may look at some rows only, or at none, and the state must move on
            for name, sink in sinks.items():
                sink(_part(frame, name, columns), batch_id)
        finally:
            frame.unpersist()

    return split


def _check_folders(sinks: Mapping[str, Sink]) -> None:
    """Raises SpecError if two outputs would go to one folder, or one to a folder that readers of another would meet."""
    folders = {name: sink for name, sink in sinks.items() if isinstance(sink, FolderSink)}
    for other, name in combinations(folders, 2):
        if folders[other].place == folders[name].place:
            raise SpecError(
                f"route: {other} and {name} go to one folder, {folders[name].path!r}, where each would replace the "
                f"other's files; give each a folder of its own"
            )
    for outer, inner in permutations(folders, 2):
        if folders[outer].holds(folders[inner]):
            raise SpecError(
                f"route: {inner} goes to {folders[inner].path!r}, inside the folder of {outer}, "
                f"{folders[outer].path!r}, which Spark could not read then; put them side by side"
            )


def _how_to_get(name: str, columns: list[str]) -> str:
    """Returns how to get an output that is not there. columns: those of the outputs that are."""
    tag = name.removeprefix(SIDE_PREFIX)
    of_join = [f"{one!r}: ..." for one in LATE_SIDES if SIDE_PREFIX + one in columns]
    if name == "late" and of_join:
        return f"the late rows of a join are for side={{{', '.join(of_join)}}}"
    asked = {"late": ".side_output_late_data()", "bad": '.bad_rows("divert")'}.get(name, f".side_output({tag!r}, ...)")
    if tag in LATE_SIDES:
        asked = f".side_output_late_data() of the {tag.removeprefix('late_')} input of a join"
    return f"ask for it with {asked}"


def _check_query(frame: DataFrame) -> None:
    query = query_of(frame)
    if query is not None and query.problem is not None:
        raise SpecError(query.problem)


def _part(frame: DataFrame, name: str, columns: list[str]) -> DataFrame:
    if name != "main":
        return frame.where(frame[name].isNotNull()).select(f"{name}.*")
    for column in columns:
        frame = frame.where(frame[column].isNull())
    return frame.drop(*columns)
