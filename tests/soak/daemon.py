"""Spark's Python daemon with faults in its workers: for ``spark.python.daemon.module``."""

import functools

import pyspark.daemon

from tests.soak import faults

if __name__ == "__main__":
    inner = pyspark.daemon.worker

    @functools.wraps(inner)
    def worker(*arguments):  # after the fork, so that the daemon itself stays small
        faults.install()
        return inner(*arguments)

    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
