"""Guard: one call at a time into an object that is not made for several threads, and numbers that any may read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from fastwin.errors import StateError

__all__ = ["Call", "Guard", "Guarded", "alone"]

P = ParamSpec("P")
T = TypeVar("T")


class Call:
    """One call that is inside, or that asks to be let in."""

    __slots__ = ("name", "over", "thread")

    def __init__(self, name: str) -> None:
        self.name = name
        self.thread = threading.get_ident()
        self.over = False


class Guard:
    """Lets one call at a time into an object, and refuses all others until it is over.

    what: the object, for errors. looks: by name, what reads a number of it that may only be read while it stands still.

    Kernels release the GIL and move their memory, so a second thread inside would read what is gone. A call that is
    over holds nothing, also where an interrupt kept it from leaving.
    """

    def __init__(self, what: str, looks: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        self._what = what
        self._door = threading.RLock()  # held on the way in and out, and by a thread that reads
        self._inside: Call | None = None
        self._reading = False  # whether the thread at the door reads
        self._looks = {} if looks is None else looks
        self._last: dict[str, Any] = {}
        self._asked: set[str] = set()

    def enter(self, call: Call) -> None:
        """Lets a call in. Raises StateError if one is inside, of this thread or another, or if this thread reads."""
        with self._door:
            if self._reading:
                raise StateError(
                    f"{self._what}: {call.name}() was called by code that runs while a number is read, such as a "
                    f"signal handler; it takes no call until the number is there"
                )
            if self._busy():
                raise StateError(self._refusal(call))
            self._inside = call

    def _busy(self) -> bool:
        return self._inside is not None and not self._inside.over

    def _refusal(self, call: Call) -> str:
        inside = self._inside
        assert inside is not None
        if inside.thread == call.thread:
            return (
                f"{self._what}: {call.name}() was called by code that {inside.name}() runs; "
                f"it is inside until that returns, and takes no other call"
            )
        return (
            f"{self._what}: another thread is inside {inside.name}(), so {call.name}() is refused; use it from one "
            f"thread at a time, or hold a lock of your own around each call"
        )

    def leave(self, call: Call, owner: Any) -> None:
        """Lets a call out of its object; one that was not let in changes nothing."""
        with self._door:
            if self._inside is not call:
                return
            try:
                if self._asked:
                    asked, self._asked = self._asked, set()
                    self._last |= {name: self._looks[name](owner) for name in asked}
            finally:
                self._inside = None

    def look(self, owner: Any, name: str, otherwise: Any) -> Any:
        """Returns a number as it is now; while a call is inside, as it was at the end of the last one that looked.

        The one that is inside looks when it leaves. otherwise: what the number was before any call.
        """
        with self._door:
            if self._reading:
                return self._last.get(name, otherwise)
            if self._busy():
                self._asked.add(name)
                return self._last.get(name, otherwise)
            try:
                self._reading = True
                found = self._last[name] = self._looks[name](owner)
                return found
            finally:
                self._reading = False

    def refuse_copy(self) -> NoReturn:
        """Raises StateError: the object cannot be copied or pickled."""
        raise StateError(
            f"{self._what}: it cannot be copied or pickled; snapshot() returns its state as bytes, which restore() "
            f"takes in another one of the same spec"
        )


class Guarded(Protocol):
    """Something with a guard at its entries."""

    _guard: Guard


S = TypeVar("S", bound=Guarded)


def alone(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Makes a method one that the guard of its object lets in alone."""
    name = method.__name__

    @wraps(method)
    def entered(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        guard, call = self._guard, Call(name)
        # An interrupt may come wherever Python code is entered or left, also in enter() and leave(), but not between
        # a finally and an attribute that is set there.
        try:
            guard.enter(call)
            return method(self, *arguments, **named)
        finally:
            try:
                guard.leave(call, self)
            finally:
                call.over = True

    return entered
