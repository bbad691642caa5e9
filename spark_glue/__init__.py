"""fastwin on Spark: the same window specification over batch and streaming frames."""

from fastwin import __version__
from spark_glue.apply import apply
from spark_glue.progress import progress_listener
from spark_glue.route import route
from spark_glue.session import session
from spark_glue.sink import StoreSink, to_store

__all__ = ["StoreSink", "__version__", "apply", "progress_listener", "route", "session", "to_store"]
