"""The control groups of a process, in which Linux keeps limits of containers and services, and its processors.

``setup.py`` runs this file alone, before there is a package.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["processors", "told_by_groups"]

_MOUNT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def told_by_groups(name: str, controller: str = "") -> Iterator[str]:
    """Yields what a file says in this process's group and in those above it, where they have one.

    controller: of version 1, such as ``memory``, each of which has groups of its own; empty: version 2. A container may
    see its own group as the topmost one, under the name that it has outside: then that alone is found. O(depth).
    """
    top = _MOUNT / controller
    own = top.joinpath(*_parts(controller))
    for folder in (own, *own.parents):
        if folder.is_relative_to(top):
            try:
                yield (folder / name).read_text()
            except OSError:  # it has none
                continue


def _parts(controller: str) -> list[str]:
    """Returns the way down to this process's group; empty where nobody tells."""
    try:
        lines = _OWN.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if controller in names.split(","):
            parts = PurePosixPath(path).parts[1:]
            return [] if ".." in parts else list(parts)  # of a group outside of what is mounted here
    return []


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
