"""Variants of a test: some always run, the others with ``make test-long``."""

from collections.abc import Iterable
from typing import Any

import pytest


def variants(every: Iterable[Any], *always: Any) -> list[Any]:
    """Returns parameters of which only some are not marked `long`. always: those that `make test` runs too."""
    found = list(every)
    missing = [one for one in always if one not in found]
    if missing:
        raise ValueError(f"always: must be among {found}, got {missing}")
    return [one if one in always else pytest.param(one, marks=pytest.mark.long) for one in found]
