"""State variables that Spark hears of when they are first used: a task that does not need one does not pay for it."""

from collections.abc import Callable
from typing import Any

from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

__all__ = ["late_variables"]


def late_variables(handle: StatefulProcessorHandle) -> StatefulProcessorHandle:
    """Returns a handle, for ``init``, with which variables are made known to Spark at their first use.

    For each one Spark makes encoders and compiles them, in each task: 3 to 15 ms, more for a map than for a value. On
    the driver, which has to know all variables, and where PySpark is built in another way, it is the handle itself.
    """
    client = getattr(handle, "_statefulProcessorApiClient", None)
    if TaskContext.get() is None or not isinstance(getattr(client, "handle_state", None), StatefulProcessorHandleState):
        return handle
    return _LateHandle(handle, client)


class _LateHandle:
    def __init__(self, handle: StatefulProcessorHandle, client: Any) -> None:
        self._handle, self._client = handle, client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def getValueState(self, *about: Any) -> Any:  # noqa: N802
        return _LateVariable(lambda: self._made(lambda: self._handle.getValueState(*about)))

    def getMapState(self, *about: Any) -> Any:  # noqa: N802
        return _LateVariable(lambda: self._made(lambda: self._handle.getMapState(*about)))

    def _made(self, make: Callable[[], Any]) -> Any:
        """Makes a variable known. Spark lets that happen only before ``init`` is over, so it is told so."""
        state = self._client.handle_state
        if state == StatefulProcessorHandleState.CREATED:
            return make()
        self._client.set_handle_state(StatefulProcessorHandleState.CREATED)
        try:
            return make()
        finally:
            self._client.set_handle_state(state)


class _LateVariable:
    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._variable: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._variable is None:
            self._variable = self._make()
        return getattr(self._variable, name)
