"""What a process says first, and no endless wait for it."""

import select
import subprocess

__all__ = ["first_line"]


def first_line(process: subprocess.Popen, seconds: float = 60) -> str:
    """Returns the first line that a process prints; raises AssertionError where there is none in time."""
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, f"it has printed nothing for {seconds} s"
    return process.stdout.readline()
