"""Seeds of tests that draw their steps."""

import os
import random

__all__ = ["seed"]


def seed() -> int:
    """Returns FASTWIN_SEED; without it always the same, and with FASTWIN_LONG always another one.

    It is printed, so that one sees it where a test fails.
    """
    drawn = random.randrange(1 << 30) if os.environ.get("FASTWIN_LONG") else 1
    found = int(os.environ.get("FASTWIN_SEED") or drawn)
    print("seed", found)
    return found
