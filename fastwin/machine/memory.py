"""Memory of the machine, and the folder in memory that processes share."""

import contextlib
import ctypes
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastwin.machine.cgroups import told_by_groups

__all__ = ["LEAST_FREE", "SHARED", "SharedMemory", "bytes_of_memory", "give_back", "keep_freed", "shared_memory"]

SHARED = Path("/dev/shm")
LEAST_FREE = 64 << 20
"""With less room than that in SHARED, copies of state lie elsewhere."""

_GLIBC_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
# M_MMAP_THRESHOLD: what is larger goes back when it is freed. M_TRIM_THRESHOLD: what is free beyond it goes back.
_GLIBC_BOUNDS = ((-3, 32 << 20), (-1, 256 << 20))


def bytes_of_memory() -> int | None:
    """Returns the machine's memory in bytes, or the least limit of its container; None where nobody says."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in (*told_by_groups("memory.max"), *told_by_groups("memory.limit_in_bytes", "memory")):
        with contextlib.suppress(ValueError):  # "max"
            found.append(int(limit))
    return min((size for size in found if size > 0), default=None)


def give_back(keep: int) -> bool:
    """Gives the system what glibc has free, but for ``keep`` bytes at the end of its heap; returns whether any went.

    False also where the C library is another one. By itself glibc gives back the end of its heap alone: one block that
    is still used there holds all that is free before it. O(what is free).
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return False
    trim.argtypes = [ctypes.c_size_t]
    return bool(trim(max(keep, 0)))


@cache
def keep_freed() -> bool:
    """Lets glibc keep up to 256 MiB of what this process frees; returns whether it does so from now on.

    By itself it gives back what is free at the end of its heap, and each block of more than 128 KB, until it has seen
    larger ones go. Then each run needs fresh pages for its results, and finding and clearing these may take longer than
    computing what is written there. False where somebody has set bounds through glibc's variables, and where the C
    library is another one.
    """
    if any(name in os.environ for name in _GLIBC_VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    taken = [mallopt(option, size) for option, size in _GLIBC_BOUNDS]
    return all(taken)


@dataclass(frozen=True)
class SharedMemory:
    """The folder in memory. free: bytes, None where it is not there; writable: by this user."""

    free: int | None
    writable: bool

    @property
    def serves(self) -> bool:
        """Whether copies of state can lie there."""
        return self.writable and self.free is not None and self.free >= LEAST_FREE


def shared_memory(folder: Path | None = None) -> SharedMemory:
    """Returns what the folder in memory offers, SHARED if none is given."""
    folder = SHARED if folder is None else folder
    try:
        return SharedMemory(shutil.disk_usage(folder).free, os.access(folder, os.W_OK))
    except OSError:
        return SharedMemory(None, False)
