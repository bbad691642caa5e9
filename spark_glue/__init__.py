"""fastwin on Spark: the same window specification over batch and streaming frames."""

from fastwin import __version__
from spark_glue.apply import apply
from spark_glue.progress import progress_listener
from spark_glue.session import session
from spark_glue.sinks.database import to_database
from spark_glue.sinks.route import route
from spark_glue.sinks.store import StoreSink, to_store

__all__ = ["StoreSink", "__version__", "apply", "progress_listener", "route", "session", "to_database", "to_store"]
