"""Expired timers, for which Spark is asked only where there may be some: who need not ask does not pay for it."""

import inspect
from collections.abc import Callable
from typing import Any

from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessorHandle

__all__ = ["ask_unless"]


def ask_unless(handle: StatefulProcessorHandle, none_due: Callable[[], bool]) -> bool:
    """Lets the task of a handle, given in ``init``, ask Spark for expired timers unless ``none_due()`` is true then.

    It asks once, behind all input. For the first thing that has to do with timers Spark makes encoders and compiles
    them, in each task: some 10 ms.

    Returns whether that can be: not on the driver, nor where PySpark is built in another way, as 4.0 is.
    There it always asks.
    """
    client: Any = getattr(handle, "_statefulProcessorApiClient", None)
    ask = getattr(client, "get_expiry_timers_iterator", None)
    # An iterator of timers calls it, and hands on that there are no more; in 4.0 it makes the iterator.
    if TaskContext.get() is None or ask is None or "iterator_id" not in inspect.signature(ask).parameters:
        return False

    def asked(*about: Any) -> Any:
        if none_due():
            raise StopIteration
        return ask(*about)

    client.get_expiry_timers_iterator = asked
    return True
