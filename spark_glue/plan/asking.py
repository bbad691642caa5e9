"""What Spark keeps to itself, asked for.

Where it is denied or gone, the log says so once, and things go on without.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

from spark_glue.plan.compat import Py4JError

__all__ = ["ask_spark"]

_LOG = logging.getLogger(__name__)
_DENIED = (Py4JError, PySparkException, AttributeError, TypeError)
_missed: set[str] = set()
A = TypeVar("A")


def ask_spark(what: str, ask: Callable[[], A], otherwise: A) -> A:
    """Returns what ``ask`` learns of Spark's own objects; ``otherwise`` where they are denied or gone.

    what: is to be learned, for the log, which has it once.
    """
    try:
        return ask()
    except _DENIED as problem:
        if what not in _missed:
            _missed.add(what)
            _LOG.warning("%s: Spark does not tell, so it goes on without (%s)", what, str(problem).split("\n", 1)[0])
        return otherwise
