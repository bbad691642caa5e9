"""Processes: the processor's time and the memory of one and all below it, as /proc tells them; and how some end."""

import contextlib
import os
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

__all__ = ["cpu_seconds", "ending", "figure", "resident"]

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def figure(name: str, pid: int | str = "self", file: str = "status") -> int:
    """Returns a figure of a process in bytes, such as ``VmRSS``, or ``Pss_Anon`` of the file ``smaps_rollup``."""
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/{pid}/{file} has no {name}")


def cpu_seconds(root: int) -> float:
    """Returns the processor's time of a process and all below it, s, with that of their children that have ended."""
    return _sum_below(root, lambda stat: sum(map(int, stat[11:15]))) / _TICKS


def resident(root: int) -> int:
    """Returns the bytes of a process and all below it. What they share counts in each: 0 where there is no /proc."""
    return _sum_below(root, lambda stat: int(stat[21])) * _PAGE


def _sum_below(root: int, told: Callable[[list[str]], int]) -> int:
    """Adds up what the fields of ``stat`` behind the name tell, of a process and all below it."""
    parents: dict[int, int] = {}
    found: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)], found[int(entry.name)] = int(stat[1]), told(stat)
        except (OSError, IndexError):  # it has ended meanwhile
            continue
    mine = {root}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(found.get(pid, 0) for pid in mine)


@contextlib.contextmanager
def ending(processes: list[BaseProcess]) -> Iterator[None]:
    """Ends those of the processes that still run when it is left."""
    try:
        yield
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join()
