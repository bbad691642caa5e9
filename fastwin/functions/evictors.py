"""Evictors: which elements leave a window before or after its function runs. Flink's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastwin.errors import SpecError
from fastwin.functions.delta import check_delta
from fastwin.functions.factories import Factories
from fastwin.times import Duration, format_ms, to_ms

__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "TimeEvictor"]


class Evictor(metaclass=Factories):
    """Removes elements from a window when it fires. Subclass it and override one method or both.

    With an evictor, windows keep all their elements, and functions run over them at each firing. What is evicted is
    gone for later firings, too. Source: Flink's Evictor.
    """

    def evict_before(self, elements: Sequence[Any], size: int, window: Any, ctx: Any) -> Iterable[int] | None:
        """Returns the indices of the elements to evict before the function runs; None: none.

        elements: in order of arrival, each with ``value`` (a read-only row) and ``timestamp`` (ms, None for
            none). size: how many. ctx: has ``get_current_watermark()`` and ``get_current_processing_time()``.
        """
        return None

    def evict_after(self, elements: Sequence[Any], size: int, window: Any, ctx: Any) -> Iterable[int] | None:
        """Returns the indices of the elements to evict after the function has run; None: none."""
        return None


@dataclass(frozen=True)
class _BuiltIn(Evictor):
    do_evict_after: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.do_evict_after, bool):
            raise SpecError(f"{type(self).__name__}: do_evict_after must be True or False, got {self.do_evict_after!r}")

    def evict_before(self, elements: Sequence[Any], size: int, window: Any, ctx: Any) -> Iterable[int] | None:
        return None if self.do_evict_after else self._evict(elements)

    def evict_after(self, elements: Sequence[Any], size: int, window: Any, ctx: Any) -> Iterable[int] | None:
        return self._evict(elements) if self.do_evict_after else None

    def _evict(self, elements: Sequence[Any]) -> Iterable[int]:
        raise NotImplementedError


@dataclass(frozen=True)
class CountEvictor(_BuiltIn):
    """Keeps the last ``max_count`` elements. Source: Flink's CountEvictor."""

    max_count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        count = self.max_count
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise SpecError(f"{type(self).__name__}: max_count must be an int of at least 0, got {count!r}")

    @classmethod
    def of(cls, max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Returns an evictor that keeps the last ``max_count`` elements. Raises SpecError for a negative count."""
        return cls(max_count, do_evict_after=do_evict_after)

    def _evict(self, elements: Sequence[Any]) -> Iterable[int]:
        return range(max(len(elements) - self.max_count, 0))

    def __str__(self) -> str:
        return f"keeping the last {self.max_count}"


@dataclass(frozen=True)
class TimeEvictor(_BuiltIn):
    """Keeps the elements later than the newest one in the window minus ``size``; without timestamps, all.

    Source: Flink's TimeEvictor.
    """

    size_ms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.size_ms, bool) or not isinstance(self.size_ms, int) or self.size_ms < 0:
            raise SpecError(f"{type(self).__name__}: size must be at least 0 ms, got {self.size_ms!r}")

    @classmethod
    def of(cls, size: Duration, do_evict_after: bool = False) -> TimeEvictor:
        """Returns an evictor of what is ``size`` or more older than the newest element in the window.

        Raises SpecError for a negative size.
        """
        return cls(to_ms(size, argument=f"{cls.__name__}: size"), do_evict_after=do_evict_after)

    def _evict(self, elements: Sequence[Any]) -> Iterable[int]:
        if not elements or elements[0].timestamp is None:
            return ()
        times = [element.timestamp for element in elements]
        if None in times:
            raise ValueError(f"element {times.index(None)} has no timestamp, others do")
        cutoff = max(times) - self.size_ms
        return [i for i, time in enumerate(times) if time <= cutoff]

    def __str__(self) -> str:
        return f"keeping the last {format_ms(self.size_ms)}"


@dataclass(frozen=True)
class DeltaEvictor(_BuiltIn):
    """Removes the elements whose delta to the last arrival is at least the threshold.

    Source: Flink's DeltaEvictor.
    """

    threshold: float
    delta: Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_delta(type(self).__name__, self.threshold, self.delta)

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """Returns an evictor of elements with ``delta(element, last) >= threshold``.

        delta: a callable of two rows that returns a number. Raises SpecError for anything else.
        """
        return cls(threshold, delta, do_evict_after=do_evict_after)

    def _evict(self, elements: Sequence[Any]) -> Iterable[int]:
        if not elements:
            return ()
        last = elements[-1].value
        return [i for i, element in enumerate(elements) if self.delta(element.value, last) >= self.threshold]

    def __str__(self) -> str:
        return f"keeping what differs from the last by less than {self.threshold}"
