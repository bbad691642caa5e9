"""What a forked child does, of which the parent learns whether it went well."""

import os
from collections.abc import Callable

__all__ = ["code_of_a_child", "in_a_child"]


def in_a_child(act: Callable[[], object]) -> None:
    """Forks, acts in the child, and raises AssertionError unless the child has come to its end."""
    assert code_of_a_child(act) == 0


def code_of_a_child(act: Callable[[], object]) -> int:
    """Forks, acts in the child, and returns its exit code: 0 if it has come to its end, below 0 if a signal ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
