"""Whether this process is the one that Spark starts on the driver to ask a processor which state it keeps.

Spark starts it anew with each query, and the first micro-batch waits for it. So nothing is loaded there that is not
needed: ``fastwin``, pandas and Arrow take most of a second. This module needs nothing but Python.
"""

import sys

__all__ = ["is_first_look"]

_MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"  # what Spark runs there


def is_first_look() -> bool:
    """Returns whether Spark runs this process only to ask which state is kept."""
    return getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", None) == _MODULE
