"""Factories: the metaclass of classes that are made by methods such as ``of``; a wrong name is answered with these."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from fastwin.errors import did_you_mean

__all__ = ["Factories"]


class Factories(ABCMeta):
    """Makes ``TumblingEventTimeWindows.off("1 hour")`` say what there is.

    It derives from ABCMeta, so that users' classes may have abstract bases as well.
    """

    def __getattr__(cls, name: str) -> Any:
        said = f"type object {cls.__name__!r} has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(said)
        makers = [key for kind in cls.__mro__ for key, value in vars(kind).items() if _makes(key, value)]
        told = " or ".join(f"{cls.__name__}.{maker}(...)" for maker in dict.fromkeys(makers))
        # No `name=`: Python would add a suggestion of its own.
        made = f"; make one with {told}" if told else ""
        near = did_you_mean(name, (known for known in dir(cls) if {known} != set(makers)))  # the only one is said
        raise AttributeError(f"{said}{made}{near}")


def _makes(name: str, value: Any) -> bool:
    return isinstance(value, classmethod | staticmethod) and not name.startswith("_")
