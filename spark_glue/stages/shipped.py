"""A stateful processor as it is shipped: packed, and unpacked only where rows come, see ``plan.firstlook``."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from spark_glue.plan.firstlook import is_first_look

__all__ = ["Shipped"]


class Shipped(StatefulProcessor):
    """Does what the given processor does. What that one asks its handle for in ``init`` is known beforehand."""

    _processor: StatefulProcessor

    def __init__(self, processor: StatefulProcessor) -> None:
        asked = _Asked()
        copy.copy(processor).init(asked)
        self._asked = asked.calls
        self._packed = cloudpickle.dumps(processor)

    def init(self, handle: StatefulProcessorHandle) -> None:
        if is_first_look():
            for name, arguments in self._asked:
                getattr(handle, name)(*arguments)
        else:
            self._processor = pickle.loads(self._packed)
            self._processor.init(handle)

    # Spark passes some of the arguments by their names.
    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        return self._processor.handleInputRows(key, rows, timerValues)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self._processor.handleInitialState(key, initialState, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        return self._processor.handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def close(self) -> None:
        if not is_first_look():
            self._processor.close()


class _Asked:
    """A handle that notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, arguments))
