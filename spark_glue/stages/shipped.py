"""A stateful processor as it is shipped: packed, and unpacked only where rows come, see ``plan.firstlook``."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from spark_glue.plan.firstlook import is_first_look
from spark_glue.stages.latevariables import late_variables

__all__ = ["Packed", "Shipped"]


class Packed:
    """A processor on its way to tasks: unpacked, and begun, where it is first needed."""

    def __init__(self, processor: StatefulProcessor) -> None:
        self._bytes = cloudpickle.dumps(processor)
        self.begun: StatefulProcessor | None = None

    def begin(self, handle: StatefulProcessorHandle) -> StatefulProcessor:
        """Returns the processor, which has asked the handle for its variables."""
        if self.begun is None:
            self.begun = pickle.loads(self._bytes)
            self.begun.init(handle)
        return self.begun


class Shipped(StatefulProcessor):
    """Does what the given processor does. What that one asks its handle for in ``init`` is known beforehand.

    A task unpacks the processor when it has rows for it, or a timer: most tasks of many partitions have neither.
    """

    def __init__(self, processor: StatefulProcessor) -> None:
        asked = _Asked()
        copy.copy(processor).init(asked)
        self._asked = asked.calls
        self._packed = Packed(processor)

    def init(self, handle: StatefulProcessorHandle) -> None:
        if is_first_look():
            for name, arguments in self._asked:
                getattr(handle, name)(*arguments)
            return
        self._handle = handle
        if late_variables(handle) is handle:  # after ``init``, Spark would take no variables
            self._unpacked()

    def _unpacked(self) -> StatefulProcessor:
        return self._packed.begin(self._handle)

    # Spark passes some of the arguments by their names.
    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        return self._unpacked().handleInputRows(key, rows, timerValues)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self._unpacked().handleInitialState(key, initialState, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        return self._unpacked().handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def close(self) -> None:
        if self._packed.begun is not None:
            self._packed.begun.close()


class _Asked:
    """A handle that notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, arguments))
