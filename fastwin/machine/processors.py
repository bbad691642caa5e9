"""How many processors a process may use."""

import os
from pathlib import Path

__all__ = ["processors"]

_LIMITS = Path("/sys/fs/cgroup/cpu.max")
_OLD_LIMITS = (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


def processors() -> int:
    """Returns how many processors this process may use: those of the machine, or fewer where its container says so.

    A limit of one and a half is two.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, _limit() or there))


def _limit() -> int | None:
    for told in ([_LIMITS], _OLD_LIMITS):
        try:
            quota, period = map(int, " ".join(path.read_text() for path in told).split())
        except (OSError, ValueError):  # not there, or "max"
            continue
        if quota > 0 and period > 0:
            return -(-quota // period)
    return None
