"""Runs a spec over a bounded table: all of it is at hand, so it is known what is still to come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.local import Stream
from fastwin.operators.base import Batch, Operator
from fastwin.operators.general import GeneralOperator
from fastwin.operators.session import SessionOperator
from fastwin.results import Result
from fastwin.spec import WindowSpec
from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["run"]

# As many rows as fit in the cache with the windows that they touch.
_PIECE_ROWS = 1 << 19
# Sessions of no more elements are made all at once.
_WHOLE_ROWS = 1 << 23
# So that none of their columns outgrows Arrow's 32-bit offsets.
_WHOLE_BYTES = 1 << 30


def run(spec: WindowSpec, data: Any) -> Result:
    """Runs a spec over a bounded input and ends with the watermark at int64 max; see ``WindowSpec.run``."""
    stream = _Bounded(spec)
    stream.advance_processing_time()
    fed = stream.process(data)
    end = stream.advance_watermark(MAX_TIMESTAMP)
    last = stream.finish_processing_time()
    sides = {tag: pa.concat_tables([part.side[tag] for part in (fed, end, last)]) for tag in fed.side}
    return Result(pa.concat_tables([fed.main, end.main, last.main]), fed.late, fed.bad, sides)


class _Bounded(Stream):
    """A stream that is given everything in one call.

    Built-in windows fire as soon as nothing that is still to come can reach them: while they are in the cache, and the
    state stays as small as that of a stream. Those of the general operator wait for the end, which user code may see.
    """

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        if isinstance(operator, GeneralOperator):
            return super()._feed(operator, parts, late)
        if isinstance(operator, SessionOperator) and (whole := self._whole(parts)) is not None:
            return operator.run(whole)
        pieces = [
            (rows.slice(at, _PIECE_ROWS), times[at : at + _PIECE_ROWS])
            for rows, times in parts
            for at in range(0, len(times), _PIECE_ROWS)
        ]
        firsts = np.array([times.min() for _, times in pieces], dtype=np.int64)
        to_come = [*np.minimum.accumulate(firsts[::-1])[::-1].tolist()[1:], MIN_TIMESTAMP]
        main: list[pa.RecordBatch] = []
        for piece, first in zip(pieces, to_come, strict=False):
            main += super()._feed(operator, [piece], late)
            # One less than what makes nothing late: an element at the end of a session still touches it.
            main += operator.advance_watermark(max(first - 2, MIN_TIMESTAMP))
        return main

    def _whole(self, parts: list[tuple[pa.RecordBatch, np.ndarray]]) -> Batch | None:
        """Returns what sessions need of all rows, as one batch; None where that is too much for one."""
        plan = self._plan
        assert plan is not None
        if not parts or sum(len(times) for _, times in parts) > _WHOLE_ROWS:
            return None
        if len(parts) == 1:
            return plan.batch(*parts[0])
        # No column else is copied: nothing is late in a bounded run.
        names = [*self._spec.keys, *(name for name, reading in plan.inputs if reading != "time")]
        needed = [rows.select(list(dict.fromkeys([*names, self._spec.time_column]))) for rows, _ in parts]
        if sum(rows.nbytes for rows in needed) > _WHOLE_BYTES:
            return None
        return plan.batch(pa.concat_batches(needed), np.concatenate([times for _, times in parts]))
