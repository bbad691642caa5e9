"""What a forked child does, of which the parent learns whether it went well."""

import os
from collections.abc import Callable

__all__ = ["in_a_child"]


def in_a_child(act: Callable[[], object]) -> None:
    """Forks, acts in the child, and raises AssertionError unless the child has come to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
