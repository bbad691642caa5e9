from typing import Any

__all__ = ["NUMBERS", "OBJECTS", "SETS", "kind_of"]

NUMBERS: int
OBJECTS: int
SETS: int

def kind_of(value: Any) -> int: ...
