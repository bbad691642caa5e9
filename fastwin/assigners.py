"""Window assigners: which windows an element belongs to. Flink's names, and their parameters checked as Flink does."""

from dataclasses import dataclass

from fastwin.duration import MAX_DURATION_MS, Duration, format_ms, to_ms
from fastwin.errors import SpecError

__all__ = [
    "EventTimeSessionWindows",
    "SlidingEventTimeWindows",
    "TumblingEventTimeWindows",
    "WindowAssigner",
]


class WindowAssigner:
    """Decides the windows of an element. The base of all assigners."""


def _check_ms(owner: str, *, maker: str = "of", least: int = 1, **durations: int) -> None:
    for name, ms in durations.items():
        if not isinstance(ms, int) or isinstance(ms, bool):
            raise SpecError(f"{owner}: {name} must be an int of milliseconds, got {ms!r}; {owner}.{maker} takes more")
        if ms < least:
            raise SpecError(f"{owner}: {name} must be at least {least} ms, got {name}={ms}")
        if ms > MAX_DURATION_MS:
            raise SpecError(f"{owner}: {name} must be within {MAX_DURATION_MS} ms, got {name}={ms}")


@dataclass(frozen=True)
class SlidingEventTimeWindows(WindowAssigner):
    """Windows ``[k * slide + offset, k * slide + offset + size)`` for every integer k. Use ``of``.

    Windows overlap if slide < size, and leave gaps, whose elements no window takes, if slide > size.
    Source: Flink's SlidingEventTimeWindows.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        _check_ms(owner, size=self.size_ms, slide=self.slide_ms)
        _check_ms(owner, least=-MAX_DURATION_MS, offset=self.offset_ms)
        if abs(self.offset_ms) >= self.slide_ms:
            raise SpecError(f"{owner}: |offset| must be below slide, got offset={self.offset_ms} slide={self.slide_ms}")

    @classmethod
    def of(cls, size: Duration, slide: Duration, offset: Duration = 0) -> "SlidingEventTimeWindows":
        """Returns windows of ``size``, one starting every ``slide``, shifted from the epoch by ``offset``.

        All durations: text such as ``"24 hours"``, a timedelta, or int milliseconds. Raises SpecError
        if size or slide is below 1 ms or ``|offset| >= slide``.

        >>> SlidingEventTimeWindows.of("24 hours", "3 minutes")
        SlidingEventTimeWindows(size_ms=86400000, slide_ms=180000, offset_ms=0)
        """
        name = cls.__name__
        return cls(
            to_ms(size, argument=f"{name}: size"),
            to_ms(slide, argument=f"{name}: slide"),
            to_ms(offset, argument=f"{name}: offset"),
        )

    def __str__(self) -> str:
        offset = f", offset {format_ms(self.offset_ms)}" if self.offset_ms else ""
        return f"sliding windows of {format_ms(self.size_ms)} every {format_ms(self.slide_ms)}{offset}"


@dataclass(frozen=True)
class TumblingEventTimeWindows(WindowAssigner):
    """Windows ``[k * size + offset, (k + 1) * size + offset)`` for every integer k. Use ``of``.

    Source: Flink's TumblingEventTimeWindows.
    """

    size_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        _check_ms(owner, size=self.size_ms)
        _check_ms(owner, least=-MAX_DURATION_MS, offset=self.offset_ms)
        if abs(self.offset_ms) >= self.size_ms:
            raise SpecError(f"{owner}: |offset| must be below size, got offset={self.offset_ms} size={self.size_ms}")

    @classmethod
    def of(cls, size: Duration, offset: Duration = 0) -> "TumblingEventTimeWindows":
        """Returns windows of ``size``, shifted from the epoch by ``offset``.

        Both: text such as ``"1 hour"``, a timedelta, or int milliseconds. Raises SpecError if size is
        below 1 ms or ``|offset| >= size``.

        >>> TumblingEventTimeWindows.of("1 hour", offset="15 minutes")
        TumblingEventTimeWindows(size_ms=3600000, offset_ms=900000)
        """
        name = cls.__name__
        return cls(to_ms(size, argument=f"{name}: size"), to_ms(offset, argument=f"{name}: offset"))

    def __str__(self) -> str:
        offset = f", offset {format_ms(self.offset_ms)}" if self.offset_ms else ""
        return f"tumbling windows of {format_ms(self.size_ms)}{offset}"


@dataclass(frozen=True)
class EventTimeSessionWindows(WindowAssigner):
    """Sessions: elements of a key belong together until ``gap`` passes without one. Use ``with_gap``.

    An element makes the window ``[t, t + gap)``; windows that overlap or touch are merged.
    Source: Flink's EventTimeSessionWindows.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        _check_ms(type(self).__name__, maker="with_gap", gap=self.gap_ms)

    @classmethod
    def with_gap(cls, gap: Duration) -> "EventTimeSessionWindows":
        """Returns sessions that end when ``gap`` has passed without an element.

        gap: text such as ``"30 minutes"``, a timedelta, or int milliseconds. Raises SpecError below 1 ms.

        >>> EventTimeSessionWindows.with_gap("30 minutes")
        EventTimeSessionWindows(gap_ms=1800000)
        """
        return cls(to_ms(gap, argument=f"{cls.__name__}: gap"))

    def __str__(self) -> str:
        return f"session windows with a gap of {format_ms(self.gap_ms)}"
