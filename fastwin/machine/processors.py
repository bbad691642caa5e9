"""How many processors a process may use."""

import os

from fastwin.machine.cgroups import told_by_groups

__all__ = ["processors"]


def processors() -> int:
    """Returns how many processors this process may use: those of the machine, or fewer where its container says so.

    A limit of one and a half is two.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, _limit() or there))


def _limit() -> int | None:
    old = (told_by_groups(name, "cpu") for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    found = []
    for told in (*told_by_groups("cpu.max"), *map(" ".join, zip(*old, strict=False))):
        try:
            quota, period = map(int, told.split())
        except ValueError:  # "max"
            continue
        if quota > 0 and period > 0:
            found.append(-(-quota // period))
    return min(found, default=None)
