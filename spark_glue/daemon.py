"""Spark's Python daemon, which here loads what fastwin's workers need before it forks them.

A worker then begins at once, and shares that memory with the others. Spark starts it where the setting
``spark.python.daemon.module`` is ``spark_glue.daemon``; ``spark_glue.session`` sets that in local mode.
"""

import gc
import os

import numpy as np
import pyspark.daemon
import pyspark.worker

import spark_glue.stages.operator
import spark_glue.stages.pack  # noqa: F401
from spark_glue.sockets import end_quietly

__all__: list[str] = []

if __name__ == "__main__":
    end_quietly(pyspark.daemon)
    os.register_at_fork(after_in_child=np.random.seed)  # else all workers would draw the same numbers
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
