"""ProcessWindowFunction: is handed all elements of a window when it fires; users subclass it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["KeylessFunction", "ProcessWindowFunction"]


class ProcessWindowFunction:
    """Is called with all elements of a window when it fires, and yields any number of rows. Subclass it.

    Source: Flink's ProcessWindowFunction.
    """

    def process(self, key: Any, context: Any, elements: Any) -> Iterable[Any] | None:
        """Yields result rows as tuples or dicts.

        key: the key's value, a tuple for several key columns. context: has ``window``, ``current_watermark()``,
            ``current_processing_time()``, ``window_state()``, ``global_state()`` and ``output(tag, value)``.
        elements: the rows of the window, in order of arrival: a read-only sequence. ``elements.to_list(name)`` is a
            column as a list, None for null; ``elements.to_numpy(name)`` as a read-only array[n], of objects for values
            that numpy has no type for. Rows and columns are made when asked for. After an aggregate: a list of its one
            result.
        """
        raise NotImplementedError(f"{type(self).__name__} needs process(self, key, context, elements)")

    def clear(self, context: Any) -> None:
        """Is called when the window goes for good: the place to clear per-window state."""


class KeylessFunction(ProcessWindowFunction):
    """One of fastwin's own, which does not look at the key and is handed None: Python may have no object for a key."""
