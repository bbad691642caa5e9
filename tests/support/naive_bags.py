"""Naive models of aggregates that keep values: functions of a window's elements, without a line of fastwin.

Each takes ``(time, number, value)`` of the elements that have a value. NaN is one value, above all others; -0.0 is 0.0.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

Elements = list[tuple[int, int, Any]]

__all__ = ["collected", "distinct", "ends", "joined", "mode", "most_frequent", "quantile", "sum_distinct", "union"]


def _plain(value: Any) -> Any:
    """A value that equals its equals, also as a key."""
    if isinstance(value, float):
        return math.nan if value != value else value + 0.0
    return value


def _order(value: Any) -> tuple:
    return (True, 0) if value != value else (False, value.encode() if isinstance(value, str) else value)


def _values(elements: Elements) -> list:
    return sorted((_plain(value) for _, _, value in elements), key=_order)


def distinct(elements: Elements) -> int:
    return len(set(_values(elements)))


def sum_distinct(elements: Elements) -> Any:
    values = set(_values(elements))
    return sum(sorted(values, key=_order)) if values else None


def union(limit: int | None = None) -> Callable[[Elements], list]:
    return lambda elements: list(dict.fromkeys(_values(elements)))[:limit]


def ends(n: int, largest: bool) -> Callable[[Elements], list]:
    return lambda elements: (_values(elements)[::-1] if largest else _values(elements))[:n]


def collected(limit: int | None = None) -> Callable[[Elements], list]:
    return lambda elements: [value for _, _, value in sorted(elements, key=lambda one: one[:2])][:limit]


def joined(separator: str, limit: int | None = None) -> Callable[[Elements], str | None]:
    return lambda elements: separator.join(collected(limit)(elements)) if elements else None


def most_frequent(k: int) -> Callable[[Elements], list]:
    def found(elements: Elements) -> list:
        counts = Counter(_values(elements))
        ranked = sorted(counts.items(), key=lambda one: (-one[1], _order(one[0])))
        return [{"value": value, "count": count} for value, count in ranked[:k]]

    return found


def mode(elements: Elements) -> Any:
    return most_frequent(1)(elements)[0]["value"] if elements else None


def quantile(q: float, error: float) -> Callable[[Elements], float | None]:
    """What stands for the bucket that the value at the rank is in; the first and the last value are exact."""

    def found(elements: Elements) -> float | None:
        values = [float(value) for value in _values(elements)]
        if not values:
            return None
        rank = math.floor(q * (len(values) - 1))
        value = values[rank]
        if not math.isfinite(value) or value == 0 or rank in (0, len(values) - 1):
            return value
        gamma = (1 + error) / (1 - error)
        bucket = math.ceil(math.log(abs(value)) / math.log(gamma))
        finite = [value for value in values if math.isfinite(value)]
        stands = math.copysign(2 * gamma**bucket / (gamma + 1), value)
        return min(max(stands, finite[0]), finite[-1])

    return found
