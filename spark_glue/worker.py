"""What is done once in a Python worker of Spark's."""

import gc

from pyspark import TaskContext

__all__ = ["settle"]

_settled = False


def settle() -> None:
    """Hides all that is loaded by now from the garbage collector; once in a process, and only in a worker.

    PySpark collects after each task, and looks at some hundred thousand objects of modules each time, which takes as
    long as the windows of a small micro-batch. Modules are no garbage; cycles that the first task holds stay with them.
    """
    global _settled
    if _settled or TaskContext.get() is None:
        return
    _settled = True
    gc.collect()
    gc.freeze()
