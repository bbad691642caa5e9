"""Processes that this one has started, as Linux tells of them."""

import os
from pathlib import Path

__all__ = ["child_processes"]


def child_processes() -> dict[int, frozenset[str]]:
    """Returns the names of the environment variables of the processes that this one has started, by their ids.

    Empty where there is no ``/proc``; a process that has ended has none.
    """
    own, found = str(os.getpid()), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Behind the name, which may hold anything: state, parent.
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                told = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                found[int(folder.name)] = frozenset(variable.partition("=")[0] for variable in told if variable)
        except OSError:  # it has gone, or is another user's
            continue
    return found
