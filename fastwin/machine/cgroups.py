"""The control groups of a process: Linux keeps in them the limits of containers and of services."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["told_by_groups"]

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
