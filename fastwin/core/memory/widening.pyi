from typing import Any

from numpy.typing import NDArray

__all__ = ["widen"]

def widen(pieces: list[NDArray[Any]], size: int, least: int, first: int | None) -> NDArray[Any]: ...
