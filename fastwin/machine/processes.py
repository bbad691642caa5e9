"""Processes that this one has started, as Linux tells of them."""

import os
from pathlib import Path

__all__ = ["child_processes"]


def child_processes() -> dict[int, str]:
    """Returns the command lines of the processes that this one has started, by their ids; empty where there is no
    ``/proc``."""
    own, found = str(os.getpid()), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Behind the name, which may hold anything: state, parent.
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                found[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
        except OSError:  # it has ended
            continue
    return found
