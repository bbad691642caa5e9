"""Whether a method does nothing but return ``TriggerResult.CONTINUE``, so that nobody has to call it."""

import dis
from types import FunctionType
from typing import Any

from fastwin.triggers.result import TriggerResult

__all__ = ["only_continues"]

_SILENT = {"RESUME", "NOP", "CACHE"}


def only_continues(method: Any) -> bool:
    """Tells whether the whole body of a Python method is ``return TriggerResult.CONTINUE``.

    It is proven by the method's bytecode: one global name, its attributes, and the return. A branch, a call, a default
    or a closure is no such proof, and gives False. O(1).
    """
    function = getattr(method, "__func__", method)
    if type(function) is not FunctionType:
        return False
    steps = [step for step in dis.get_instructions(function) if step.opname not in _SILENT]
    if len(steps) < 2 or steps[0].opname != "LOAD_GLOBAL" or steps[-1].opname != "RETURN_VALUE":
        return False
    value = function.__globals__.get(steps[0].argval)
    for step in steps[1:-1]:
        if step.opname != "LOAD_ATTR":
            return False
        value = getattr(value, step.argval, None)
    return value is TriggerResult.CONTINUE
