"""fastwin on Spark: the same window specification over batch and streaming frames."""

from fastwin import __version__
from spark_glue.apply import apply
from spark_glue.export import export_state
from spark_glue.progress import BatchMetrics, metrics_listener, progress_listener
from spark_glue.session import session
from spark_glue.sinks.database import to_database
from spark_glue.sinks.route import route
from spark_glue.sinks.store import StoreSink, to_store

__all__ = [
    "BatchMetrics",
    "StoreSink",
    "__version__",
    "apply",
    "export_state",
    "metrics_listener",
    "progress_listener",
    "route",
    "session",
    "to_database",
    "to_store",
]
