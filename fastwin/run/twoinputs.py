"""What is given for two inputs, the left one first; and errors that say which of them they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from fastwin.errors import SpecError
from fastwin.spec.joinending import SIDES
from fastwin.times import Duration, to_ms

__all__ = ["delays_of", "of_input", "schemas_of"]


def delays_of(watermark: tuple[Duration, Duration]) -> tuple[int, int]:
    """Returns how far the elements of each input may be out of order, ms. Raises SpecError unless it is a pair."""
    if not isinstance(watermark, tuple | list) or len(watermark) != 2:
        raise SpecError(f"watermark: must be a pair, of the left and the right input, got {watermark!r}")
    left, right = (to_ms(one, argument=f"watermark: {name}") for one, name in zip(watermark, SIDES, strict=True))
    if left < 0 or right < 0:
        raise SpecError(f"watermark: must not be negative, got {left} ms and {right} ms")
    return left, right


def schemas_of(given: Any) -> tuple[pa.Schema, pa.Schema]:
    """Returns the schemas of both inputs. Raises SpecError unless they are a pair."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        got = f"{len(given)} of them" if isinstance(given, tuple | list) else type(given).__name__
        raise SpecError(f"schemas: must be a pair, of the left and the right input, got {got}")
    left, right = given
    return left, right


@contextmanager
def of_input(side: int, call: str) -> Iterator[None]:
    """A SpecError within says which input it is about, and in which call: 0 for the left one, 1 for the right one."""
    try:
        yield
    except SpecError as problem:
        raise SpecError(f"{call}: {SIDES[side]}: {problem}") from problem
