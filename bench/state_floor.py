"""What any state in Python costs on Spark: queries that keep a small value for each share, and do nothing else.

They have fastwin's plan: a step in Python that reads all rows and hands on one for each share, and the stateful step.
``floor`` keeps the value by Spark's transformWithStateInPandas, as fastwin does, and ``floor_of_groups`` by the older
applyInPandasWithState, which hands the value of a group over with its rows, and takes it back with the results.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from bench.lab import DELAY, Input
from spark_glue.plan.keygroups import ids
from spark_glue.stages.worker import shares_of

__all__ = ["floor", "floor_of_groups"]

KEY_GROUPS = 64  # as many as fastwin has where nothing is said
_ROWS = pa.schema([("key_group", pa.int32()), ("carrier", pa.timestamp("us", tz="UTC"))])
_VALUE = T.StructType([T.StructField("value", T.BinaryType())])
_BYTES = b"1" * 1_000


class _Keeper(StatefulProcessor):
    """Reads and writes the value of a share when it has rows. Has no timers, and gives no rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("value", _VALUE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        self._value.get()
        self._value.update((_BYTES,))
        return iter(())

    def close(self) -> None:
        pass


def floor(given: Input) -> Any:
    """Returns the frame of a query that does nothing but visit all shares in each micro-batch with rows."""
    return _shares(given).transformWithStateInPandas(_Keeper(), "done int", "append", "EventTime")


def floor_of_groups(given: Input) -> Any:
    """Returns the same by ``applyInPandasWithState``, with timers of event time, of which none is set."""

    def keep(key: Any, rows: Any, state: GroupState) -> Iterator[Any]:
        _ = state.getOption
        state.update((_BYTES,))
        return iter(())

    return _shares(given).applyInPandasWithState(keep, "done int", _VALUE, "append", GroupStateTimeout.EventTimeTimeout)


def _shares(given: Input) -> Any:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        newest = [pa.compute.max(batch.column("ts")) for batch in batches if batch.num_rows]
        if newest:
            places = ids(shares_of(KEY_GROUPS))
            told = pa.array([*[None] * len(places), max(time.as_py() for time in newest)], _ROWS.field(1).type)
            yield pa.RecordBatch.from_arrays([pa.array([*places, places[0]], pa.int32()), told], schema=_ROWS)

    few = given.frame.select("ts", "key", "value").mapInArrow(rows, "key_group int, carrier timestamp")
    return few.withWatermark("carrier", DELAY).groupBy("key_group")
