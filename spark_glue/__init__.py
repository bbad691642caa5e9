"""fastwin on Spark: the same window specification over batch and streaming frames."""

from spark_glue.plan.firstlook import is_first_look

if not is_first_look():  # there, Spark asks which state is kept, and needs none of these
    from fastwin import __version__
    from fastwin.machine.packages import explained

    try:
        import spark_glue.plan.compat  # noqa: F401  first, because it refuses a Spark that is too old
        from spark_glue.apply import apply
        from spark_glue.doctor import doctor
        from spark_glue.export import export_state
        from spark_glue.health.findings import Finding, Findings
        from spark_glue.inspection import inspect, why
        from spark_glue.progress import BatchMetrics, batch_metrics, counters, metrics_listener, progress_listener
        from spark_glue.prometheus import prometheus_listener
        from spark_glue.rescale import rescale
        from spark_glue.session import session
        from spark_glue.sinks.database import to_database
        from spark_glue.sinks.folder import to_folder
        from spark_glue.sinks.route import route
        from spark_glue.sinks.store import StoreSink, to_store
        from spark_glue.sources.parquetfiles import ParquetFiles
    except (ImportError, AttributeError) as problem:  # the extra is not installed, or Spark is of another version
        raise explained("spark_glue", "spark", problem) from None

__all__ = [
    "BatchMetrics",
    "Finding",
    "Findings",
    "ParquetFiles",
    "StoreSink",
    "__version__",
    "apply",
    "batch_metrics",
    "counters",
    "doctor",
    "export_state",
    "inspect",
    "metrics_listener",
    "progress_listener",
    "prometheus_listener",
    "rescale",
    "route",
    "session",
    "to_database",
    "to_folder",
    "to_store",
    "why",
]
