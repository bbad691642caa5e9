from typing import Any

from fastwin.errors import SpecError
from fastwin.operators.keeper import Keeper

MAX_WINDOWS: int

def too_many(assigner: Any, windows: int) -> SpecError: ...

class AssignerNode:
    """The assigner of one operator."""

    keeper: Keeper
    merging: bool
    merge_windows: Any
    def __init__(self, keeper: Keeper, assigner: Any) -> None: ...

class SlidingNode(AssignerNode):
    def __init__(self, keeper: Keeper, assigner: Any, size: int, slide: int, offset: int) -> None: ...

class CumulativeNode(AssignerNode):
    def __init__(self, keeper: Keeper, assigner: Any, size: int, step: int, offset: int) -> None: ...

class SessionNode(AssignerNode):
    def __init__(self, keeper: Keeper, assigner: Any, gap: int) -> None: ...

class GlobalNode(AssignerNode): ...

class UserNode(AssignerNode):
    assigner: Any
    def __init__(self, keeper: Keeper, assigner: Any) -> None: ...
