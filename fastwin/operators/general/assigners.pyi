from typing import Any

from fastwin.errors import SpecError
from fastwin.operators.general.elements import Elements

MAX_WINDOWS: int

def too_many(assigner: Any, windows: int) -> SpecError: ...
def is_built_in(assigner: Any) -> bool: ...
def assigner_node(elements: Elements, assigner: Any) -> AssignerNode: ...

class AssignerNode:
    """The assigner of one operator."""

    merging: bool
    asks: bool
    merge_windows: Any
    def __init__(self, elements: Elements, assigner: Any) -> None: ...
    def last_end(self, i: int, time: int, key: int) -> int: ...

class SlidingNode(AssignerNode):
    def __init__(self, elements: Elements, assigner: Any, size: int, slide: int, offset: int) -> None: ...

class CumulativeNode(AssignerNode):
    def __init__(self, elements: Elements, assigner: Any, size: int, step: int, offset: int) -> None: ...

class CalendarNode(AssignerNode):
    windows: Any
    def __init__(self, elements: Elements, assigner: Any) -> None: ...

class SessionNode(AssignerNode):
    def __init__(self, elements: Elements, assigner: Any, gap: int) -> None: ...

class GlobalNode(AssignerNode): ...

class UserNode(AssignerNode):
    assigner: Any
    def __init__(self, elements: Elements, assigner: Any) -> None: ...

class DynamicSessionNode(UserNode): ...
