"""JoinStream: a running join of two inputs, each with its own watermark."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.checking import good_rows
from fastwin.columns.decoding import within_reach
from fastwin.columns.schemas import check_time_type, conform
from fastwin.columns.tables import as_table
from fastwin.columns.units import warn_of_unit
from fastwin.errors import SpecError, StateError
from fastwin.run.datawatermark import idle_time
from fastwin.run.guard import Guard, alone
from fastwin.run.inputclocks import InputClocks
from fastwin.run.joinbound import LATE_SIDES, Bound
from fastwin.run.opening import open_stream
from fastwin.run.reading import columns_named
from fastwin.run.restoring import chunks_in
from fastwin.run.results import Metrics, Result
from fastwin.run.showing import ShownStream
from fastwin.run.stream import Stream
from fastwin.run.tracing import SIDES, TracedStream, check_trace
from fastwin.run.why.journal import Side
from fastwin.run.why.report import WhyReport
from fastwin.run.why.timetext import TimeText
from fastwin.run.windowspec import WindowSpec
from fastwin.timeline.recorder import Source
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, format_ms, int64_ms, to_ms

__all__ = ["JoinStream"]

_HEADER = struct.Struct("<8sqqI")
_MAGIC = b"fwjoin\x00\x01"


class JoinStream(ShownStream):
    """A running join: feed it with ``process(left=..., right=...)`` and ``advance_watermark``; both return a Result.

    ``result.main`` has the pairs. Late rows are in ``result.side["late_left"]`` and ``["late_right"]``, with the
    columns of their input, where that asks for them. Time is the lesser of both watermarks.

    One call is inside at a time: a second one, of another thread or of user code that the stream runs, raises
    StateError and changes nothing. Metrics and watermark may be read from any thread at any time.
    """

    def __init__(
        self,
        sides: tuple[WindowSpec, WindowSpec],
        bind: Callable[[pa.Schema, pa.Schema], Bound],
        watermark: tuple[Duration, Duration] | None,
        schemas: tuple[pa.Schema, pa.Schema] | None,
        trace: int | None = None,
        idle: Duration | None = None,
    ) -> None:
        self._sides, self._bind_schemas = sides, bind
        self._delays = None if watermark is None else _delays(watermark)
        self._watermarks = [MIN_TIMESTAMP, MIN_TIMESTAMP]
        self._idle_ms = idle_time(idle, follows=watermark is not None)
        self._clocks = InputClocks.begin(2, _now_ms())
        self._bound: Bound | None = None
        self._stream: Stream | None = None
        self._guard = Guard("stream")  # also of what is kept here, which the inner stream's does not know
        self._bad = self._late = self._dropped = self._calls = 0
        self._unit_checked = [False, False]
        self._trace = None if trace is None else check_trace(trace)
        if schemas is not None:
            self._bind(*schemas)

    def _bind(self, left: pa.Schema, right: pa.Schema) -> tuple[Bound, Stream]:
        bound = self._bind_schemas(left, right)
        for side, schema in zip(bound.sides, bound.schemas, strict=True):
            assert side.time_column is not None
            check_time_type(side.time_column, schema.field(side.time_column).type, side.time_unit)
        self._bound, self._stream = bound, open_stream(bound.spec, schema=bound.schema, trace=self._trace)
        self._advance()
        return bound, self._stream

    @alone
    def process(self, left: Any = None, right: Any = None) -> Result:
        """Takes elements of one input or both; returns what fires at once, and late rows.

        Raises SpecError if the columns do not suit, and in the first call, where schemas are not known, for one input
        alone; BadRowError as the policy says.
        """
        given = [
            None if data is None else as_table(data, columns_named(side))
            for data, side in zip((left, right), self._sides, strict=True)
        ]
        if self._bound is None or self._stream is None:
            if given[0] is None or given[1] is None:
                raise SpecError(
                    "process: the first call needs left= and right=, to know their columns; a table without rows will "
                    "do, and so does open(schemas=(left, right))"
                )
            self._bind(given[0].schema, given[1].schema)
        bound, stream = self._bound, self._stream
        assert bound is not None
        assert stream is not None
        stream._refuse_if_failed()
        self._calls += 1
        united, newest, bad = [], [MIN_TIMESTAMP] * 2, 0
        newest_rows: list[pa.Table | None] = [None, None]
        for side, table in enumerate(given):
            if table is None:
                continue
            spec = bound.sides[side]
            assert spec.time_column is not None
            batches = conform(table, bound.schemas[side]).combine_chunks().to_batches()
            for rows in (some[at] for some in batches for at in within_reach(some)):
                checked = good_rows(rows, spec.time_column, spec.bad_row_policy, bound.limits(side))
                self._check_unit(bound, side, checked.times)
                bad += checked.bad
                united.append(bound.united(side, checked.rows, pa.array(checked.times)))
                if len(checked.times) and int(checked.times.max()) > newest[side]:
                    newest[side] = int(checked.times.max())
                    newest_rows[side] = united[-1].slice(int(checked.times.argmax()), 1)
        self._bad += bad
        if isinstance(stream, TracedStream):
            stream.count_from(self._calls)
        results = [stream.process(pa.concat_tables(united))] if united else []
        with _failing(stream):
            results.append(self._advance(self._follow(newest, newest_rows)))
            return self._result(results)

    def _follow(self, newest: list[int], newest_rows: list[pa.Table | None]) -> list[tuple[pa.Table, int, Side] | None]:
        """Moves the watermarks behind the newest times, if they follow the data; returns the elements that move them.

        newest, newest_rows: of a call, for each input: its last time, ms, and the row that has it; None: it has none.
        """
        moved: list[tuple[pa.Table, int, Side] | None] = [None, None]
        if self._delays is None:
            return moved
        now = _now_ms()
        self._clocks = self._clocks.hear(newest, now)
        for side, delay in enumerate(self._delays):
            rows, reached = newest_rows[side], newest[side] - delay - 1
            if rows is not None and reached > self._watermarks[side]:
                self._watermarks[side], moved[side] = reached, (rows, newest[side], SIDES[side])
        if self._idle_ms is not None:
            self._let_idle_go_on(self._delays, self._idle_ms, now)
        return moved

    def _check_unit(self, bound: Bound, side: int, times: NDArray[np.int64]) -> None:
        """Warns if int64 times of one input look like those of another unit, until that is settled."""
        if self._unit_checked[side]:
            return
        self._unit_checked[side] = True  # also where the warning is raised as an error
        column = bound.sides[side].time_column
        assert column is not None
        if bound.guesses_unit(side):
            self._unit_checked[side] = warn_of_unit(column, times)

    def _advance(self, moved: Sequence[tuple[pa.Table, int, Side] | None] = (None, None)) -> Result:
        """Moves time to the lesser watermark. moved: the element of each input that has moved its watermark."""
        stream, watermark = self._stream, min(self._watermarks)
        assert stream is not None
        if not isinstance(stream, TracedStream):
            return stream.advance_watermark(watermark)
        held_by = self._watermarks.index(watermark)  # its element, if it moved; else that of the other one, which held
        return stream.advance_by(watermark, self._calls, moved[held_by] or moved[1 - held_by])

    def _let_idle_go_on(self, delays: tuple[int, int], idle_ms: int, now: int) -> None:
        """Brings the watermarks of idle inputs to where they hold nothing back."""
        idle = self._clocks.idle(now, idle_ms)
        active = [mark for mark, quiet in zip(self._watermarks, idle, strict=True) if not quiet]
        reached = min(active) if active else self._clocks.watermark(delays, now, idle_ms)
        self._watermarks = [
            max(mark, reached) if quiet else mark for mark, quiet in zip(self._watermarks, idle, strict=True)
        ]

    @alone
    def advance_watermark(
        self, watermark: int | None = None, *, left: int | None = None, right: int | None = None
    ) -> Result:
        """Moves the watermarks of both inputs, or of one, ms; returns what fires.

        Time is the lesser of both. A watermark at or below the current one is ignored.
        """
        given = [watermark if one is None else one for one in (left, right)]
        given = [
            None if found is None else int64_ms(f"advance_watermark: {name}", found)
            for name, found in zip(SIDES, given, strict=True)
        ]
        if self._stream is not None:
            self._stream._refuse_if_failed()
        self._watermarks = [
            mark if found is None else max(mark, found) for mark, found in zip(self._watermarks, given, strict=True)
        ]
        self._calls += 1
        if self._stream is None:
            return Result(pa.table({}), pa.table({}), pa.table({}), {})
        with _failing(self._stream):
            return self._result([self._advance()])

    def _result(self, results: list[Result]) -> Result:
        bound = self._bound
        assert bound is not None
        late = pa.concat_tables([result.late for result in results])
        sides = {}
        for side, (spec, tag) in enumerate(zip(bound.sides, LATE_SIDES, strict=True)):
            if bound.spec.late_output:
                rows = bound.own_rows(side, late)
                if spec.late_output:
                    sides[tag] = rows
                    self._late += rows.num_rows
                else:
                    self._dropped += rows.num_rows
        main = pa.concat_tables([result.main for result in results])
        return Result(main, pa.table({}), pa.table({}), sides, Source(bound.sides[0].keys, None))

    @property
    def watermark(self) -> int:
        """The lesser of both watermarks, ms; int64 min for none yet."""
        return min(self._watermarks) if self._stream is None else self._stream.watermark

    @property
    def metrics(self) -> Metrics:
        """Counters and sizes of both inputs; see ``Stream.metrics``."""
        if self._stream is None:
            return Metrics(watermark=self.watermark)
        found = self._stream.metrics
        told = vars(found) | {"events": found.events + self._bad, "bad": found.bad + self._bad}
        if self._bound is not None and self._bound.spec.late_output:
            told |= {"late": self._late, "num_late_records_dropped": self._dropped}
        return Metrics(**told)

    @alone
    def why(self, key: Any = None, at: Any = None, *, window: Any = None) -> WhyReport:
        """Says why the windows of a key have fired or have not, and which input holds them; see ``Stream.why``.

        Int times are in ms. What has fired and what was late is known if the stream was opened with ``trace=``. Raises
        StateError while the columns are not known.
        """
        return self._known("why")._why_told(self._said_of_time(), key, at, window)

    def _said_of_time(self) -> tuple[str, ...]:
        time_text, said = TimeText(), ["Time is the lesser of the watermarks of both inputs."]
        for side, name in enumerate(("left", "right")):
            at = self._watermarks[side]
            if at == MIN_TIMESTAMP:
                said.append(f"The {name} input has no watermark yet.")
                continue
            newest, behind = self._clocks.newest[side], ""
            if self._delays is not None and at == newest - self._delays[side] - 1:
                behind = f", {format_ms(self._delays[side])} behind its newest element, which is of "
                behind += time_text.text(newest)
            said.append(f"The watermark of the {name} input is at {time_text.text(at)}{behind}.")
        left, right = self._watermarks
        if left != right:
            said.append(f"So the {'left' if left < right else 'right'} input holds the windows.")
        return tuple(said)

    @alone
    def inspect(self) -> pa.Table:
        """Returns what is known of windows, a row for each key and window; see ``Stream.inspect``."""
        return self._known("inspect").inspect()

    @alone
    def snapshot(self) -> bytes:
        """Returns all state as one chunk. Raises StateError while the columns are not known."""
        return self._chunk(self._known("snapshot").snapshot())

    @alone
    def delta(self) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk."""
        return self._chunk(self._known("delta").delta())

    def _known(self, call: str) -> Stream:
        if self._stream is None:
            raise StateError(f"{call}: the stream has seen no batch and no schema yet, so there is no state")
        return self._stream

    def _chunk(self, chunk: bytes) -> bytes:
        left, right = self._watermarks
        return _HEADER.pack(_MAGIC, left, right, zlib.crc32(struct.pack("<qq", left, right))) + chunk

    @alone
    def restore(self, chunks: list[bytes] | bytes) -> None:
        """Replaces all state by that of one snapshot and the deltas after it, in order.

        The stream needs to know the columns: open it with ``schemas``. Raises StateError for chunks that are corrupt,
        cut off, or of another join.
        """
        stream = self._known("restore")
        watermarks = [MIN_TIMESTAMP, MIN_TIMESTAMP]
        inner = []
        for chunk in map(bytes, chunks_in(chunks)):
            if len(chunk) < _HEADER.size or chunk[: len(_MAGIC)] != _MAGIC:
                raise StateError("restore: the chunk is none of a join")
            _, left, right, check = _HEADER.unpack(chunk[: _HEADER.size])
            if zlib.crc32(struct.pack("<qq", left, right)) != check:
                raise StateError("restore: the chunk is corrupt: its watermarks do not match their checksum")
            watermarks = [left, right]
            inner.append(chunk[_HEADER.size :])
        stream.restore(inner)
        self._watermarks = watermarks
        self._clocks = InputClocks(self._newest_of(watermarks), (_now_ms(),) * 2)
        self._bad = self._late = self._dropped = 0

    def _newest_of(self, watermarks: list[int]) -> tuple[int, ...]:
        """Returns the newest times of both inputs, as far as their watermarks tell."""
        known = [MIN_TIMESTAMP < mark < MAX_TIMESTAMP and self._delays is not None for mark in watermarks]
        delays = self._delays or (0, 0)
        return tuple(
            min(mark + delay + 1, MAX_TIMESTAMP) if one else MIN_TIMESTAMP
            for mark, delay, one in zip(watermarks, delays, known, strict=True)
        )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._guard.refuse_copy()

    def _check_invariants(self) -> None:
        if self._stream is not None:
            self._stream._check_invariants()


@contextmanager
def _failing(stream: Stream) -> Iterator[None]:
    """An error within fails the stream: rows have been taken, or windows have fired, and what came of it is lost."""
    try:
        yield
    except BaseException as problem:
        stream._fail(problem)
        raise


def _now_ms() -> int:
    return int(time.monotonic() * 1_000 + 1e-6)


def _delays(watermark: tuple[Duration, Duration]) -> tuple[int, int]:
    if not isinstance(watermark, tuple | list) or len(watermark) != 2:
        raise SpecError(f"watermark: must be a pair, of the left and the right input, got {watermark!r}")
    left, right = (
        to_ms(one, argument=f"watermark: {name}") for one, name in zip(watermark, ("left", "right"), strict=True)
    )
    if left < 0 or right < 0:
        raise SpecError(f"watermark: must not be negative, got {left} ms and {right} ms")
    return left, right
