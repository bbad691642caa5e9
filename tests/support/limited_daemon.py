"""Spark's Python daemon, whose workers may take only so much more memory than they have after their first visit.

It is started as ``python -m tests.support.limited_daemon ...``, with what Spark gives its own daemon.
"""

import functools
import os
import resource
from pathlib import Path

__all__ = ["ROOM_VARIABLE", "limit_after_first_visit"]

ROOM_VARIABLE = "FASTWIN_TEST_ROOM_BYTES"


def limit_after_first_visit(room: int) -> None:
    """Limits this process to ``room`` bytes more of its own than it has when it has stored a share the first time."""
    from spark_glue.state.shares import States

    inner = States.store

    @functools.wraps(inner)
    def store(self, *arguments, **named):
        stored = inner(self, *arguments, **named)
        if States.store is store:
            States.store = inner
            lines = Path("/proc/self/status").read_text().splitlines()
            used = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))
            resource.setrlimit(resource.RLIMIT_DATA, (used + room, used + room))
        return stored

    States.store = store


if __name__ == "__main__":
    import pyspark.daemon

    forked = pyspark.daemon.worker

    @functools.wraps(forked)
    def worker(*arguments):  # after the fork: the daemon itself has no limit
        pyspark.daemon.worker = forked  # it is called for each task
        limit_after_first_visit(int(os.environ[ROOM_VARIABLE]))
        return forked(*arguments)

    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
