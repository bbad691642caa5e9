from typing import Any

from fastwin.operators.general.assigners import AssignerNode
from fastwin.operators.general.contents import Contents
from fastwin.operators.general.contexts import RowHost
from fastwin.triggers.trigger import Trigger

class OpenWindows:
    """Knows which rows there are for the windows of one operator, and when a row is over."""

    def __init__(
        self, host: RowHost, assigner: AssignerNode, trigger: Trigger, contents: Contents, firing: Any
    ) -> None: ...
    def passed_slots(self) -> list[int]: ...
    def drop(self, slot: int) -> None: ...
