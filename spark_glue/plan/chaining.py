"""``chain=True``: the result of one ``apply`` can be windowed again, in the same query."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fastwin.errors import SpecError
from fastwin.spec.resultcolumns import WINDOW_END, WINDOW_TIME
from spark_glue.plan.catalyst import CHAIN_KEY
from spark_glue.plan.frameplan import FramePlan

__all__ = ["check_chain", "with_window_time"]


def check_chain(frame_plan: FramePlan, chain: object, case_sensitive: bool) -> None:
    """Raises SpecError unless the results can be windowed again without losing any.

    case_sensitive: whether the case of letters tells columns apart.
    """
    if chain is not True:
        raise SpecError(f"chain: must be True or False, got {chain!r}")
    spec, assigner = frame_plan.spec, frame_plan.spec.assigner
    assert assigner is not None
    if spec.lateness_ms:
        raise SpecError(
            "chain: the spec has allowed_lateness(...), whose late firings would be behind the second window's "
            "watermark; leave one of them out"
        )
    if spec.fill_ms is not None:
        raise SpecError(
            "chain: the spec has fill='empty', whose rows for empty windows come once a later window ends their gap, "
            "and then are behind the second window's watermark; leave one of them out"
        )
    if spec.changelog:
        raise SpecError(
            "chain: the spec has with_changelog(), whose corrections the second window would take for elements; leave "
            "one of them out"
        )
    for asked, what in (
        (spec.late_output, "side_output_late_data()"),
        (spec.bad_row_policy == "divert", 'bad_rows("divert")'),
        (bool(spec.sides), "side_output(...)"),
    ):
        if asked:
            raise SpecError(f"chain: the spec has {what}, whose rows have no window_time; use a query of their own")
    if not assigner.is_event_time() or frame_plan.time_mode == "ProcessingTime":
        raise SpecError(
            f"chain: needs windows and triggers of event time, got {assigner}, {spec.firing or 'its trigger'}"
        )
    names = frame_plan.plan.main_schema.names
    taken = next((name for name in names if (name if case_sensitive else name.lower()) == WINDOW_TIME), None)
    if taken is not None:  # Spark would put the new column in its place
        told = (
            "which the result has already" if taken == WINDOW_TIME else f"which Spark takes for the result's {taken!r}"
        )
        raise SpecError(
            f"chain: it adds the column {WINDOW_TIME!r}, {told}; rename that one, or leave with_window_time() out"
        )


def with_window_time(frame: DataFrame) -> DataFrame:
    """Returns the result frame with the event time of what comes behind."""
    timed = frame.withColumn(WINDOW_TIME, F.col(WINDOW_END) - F.expr("INTERVAL '0.001' SECOND"))
    return timed.withMetadata(WINDOW_TIME, {CHAIN_KEY: True})
