"""Spark's Python daemon, which here loads what fastwin's workers need before it forks them.

A worker then begins at once, and shares that memory with the others. Spark starts it where the setting
``spark.python.daemon.module`` is ``spark_glue.daemon``; ``spark_glue.session`` sets that in local mode.
"""

import gc
import os
import socket

import numpy as np
import pyspark.daemon
import pyspark.worker

import spark_glue.stages.operator
import spark_glue.stages.pack  # noqa: F401

__all__: list[str] = []

_work = pyspark.daemon.worker


def _work_until_closed(sock: socket.socket, authenticated: bool) -> int:
    """Runs a worker; where Spark has closed its side, that ends quietly.

    What a worker has left to say then, such as that of a source at the end of its query, a Unix domain socket does not
    take. (TCP takes it, and drops it.)
    """
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    pyspark.daemon.worker = _work_until_closed
    os.register_at_fork(after_in_child=np.random.seed)  # else all workers would draw the same numbers
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
