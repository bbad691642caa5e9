"""JoinStream: a running join of two inputs, each with its own watermark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NoReturn, SupportsIndex

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.tables import as_table, tells_no_types
from fastwin.columns.units import warn_of_unit
from fastwin.errors import SpecError, StateError
from fastwin.run import planner
from fastwin.run.datawatermark import idle_time
from fastwin.run.guard import Guard, alone
from fastwin.run.inputclocks import InputClocks
from fastwin.run.joinbound import Bound
from fastwin.run.joinheader import JoinHeader, split_header
from fastwin.run.lostchunks import fails_with_its_chunk
from fastwin.run.opening import open_owned
from fastwin.run.ownedstream import OwnedStream
from fastwin.run.reading import columns_named
from fastwin.run.restoring import chunks_in
from fastwin.run.results import Metrics, Result
from fastwin.run.showing import ShownStream
from fastwin.run.tracing import TracedStream, check_trace
from fastwin.run.twoinputs import delays_of, of_input, schemas_of
from fastwin.run.why.report import WhyReport
from fastwin.run.windowspec import WindowSpec
from fastwin.spec.joinending import LATE_SIDES, SIDES, Side
from fastwin.state.identity import Migrate
from fastwin.timeline.recorder import Source
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, format_ms, int64_ms
from fastwin.windows.timetext import TimeText

__all__ = ["JoinStream"]


class JoinStream(ShownStream):
    """A running join: feed it with ``process(left=..., right=...)`` and ``advance_watermark``; both return a Result.

    ``result.main`` has the pairs. Late rows are in ``result.side["late_left"]`` and ``["late_right"]``, with the
    columns of their input, where that asks for them. Time is the lesser of both watermarks.

    One call is inside at a time: a second one, of another thread or of user code that the stream runs, raises
    StateError and changes nothing. Metrics and watermark may be read from any thread at any time.
    """

    def __init__(
        self,
        spec: WindowSpec,
        sides: tuple[WindowSpec, WindowSpec],
        bind: Callable[[pa.Schema, pa.Schema], Bound],
        watermark: tuple[Duration, Duration] | None,
        schemas: tuple[pa.Schema, pa.Schema] | None,
        trace: int | None = None,
        idle: Duration | None = None,
    ) -> None:
        self._spec_before, self._sides, self._bind_schemas = spec, sides, bind
        self._delays = None if watermark is None else delays_of(watermark)
        self._watermarks = [MIN_TIMESTAMP, MIN_TIMESTAMP]
        self._idle_ms = idle_time(idle, follows=watermark is not None)
        self._clocks = InputClocks.begin(2, _now_ms())
        self._guessed: tuple[int, ...] = (MIN_TIMESTAMP,) * 2  # newest times that state did not tell
        self._bound: Bound | None = None
        self._stream: OwnedStream | None = None
        self._guard = Guard("stream")  # also of what is kept here, which the inner stream's does not know
        self._bad = self._late = self._dropped = self._calls = 0
        self._unit_checked = [False, False]
        self._trace = None if trace is None else check_trace(trace)
        if schemas is not None:
            self._bind(*schemas_of(schemas))

    def _bind(self, left: pa.Schema, right: pa.Schema) -> tuple[Bound, OwnedStream]:
        bound = self._bind_schemas(left, right)
        self._bound, self._stream = bound, open_owned(planner.plan(bound.spec, bound.schema), trace=self._trace)
        self._advance()
        return bound, self._stream

    @alone
    def process(self, left: Any = None, right: Any = None) -> Result:
        """Takes elements of one input or both; returns what fires at once, and late rows.

        Raises SpecError if the columns do not suit, and in the first call, where schemas are not known, for one input
        alone, or for one without rows and types; BadRowError as the policy says.
        """
        data, given = (left, right), [self._table(0, left), self._table(1, right)]
        known = self._bound is not None
        if not known and not self._learn_columns(data, given):
            self._calls += 1
            return self._nothing()
        bound, stream = self._bound, self._stream
        assert bound is not None
        assert stream is not None
        stream.refuse_if_failed()
        self._calls += 1
        united, newest, bad = [], [MIN_TIMESTAMP] * 2, 0
        newest_rows: list[pa.Table | None] = [None, None]
        try:
            for side, table in enumerate(given):
                if table is None:
                    continue
                for checked in bound.checked(side, table, "process"):
                    self._check_unit(bound, side, checked.times)
                    bad += checked.bad
                    united.append(bound.united(side, checked.rows, pa.array(checked.times)))
                    if len(checked.times) and int(checked.times.max()) > newest[side]:
                        newest[side] = int(checked.times.max())
                        newest_rows[side] = united[-1].slice(int(checked.times.argmax()), 1)
        except BaseException:
            if not known:  # a first call that is refused settles no types
                self._bound = self._stream = None
            raise
        self._bad += bad
        if isinstance(stream, TracedStream):
            stream.count_from(self._calls)
        results = [stream.process(pa.concat_tables(united))] if united else []
        with _failing(stream):
            results.append(self._advance(self._follow(newest, newest_rows), "idle"))
            return replace(self._result(results), bad_dropped=bad)

    def _table(self, side: int, data: Any) -> pa.Table | None:
        if data is None:
            return None
        with of_input(side, "process"):
            return as_table(data, columns_named(self._sides[side]).__contains__)

    def _learn_columns(self, data: tuple[Any, Any], given: list[pa.Table | None]) -> bool:
        """Binds the join to the columns of a first call; returns False where these tell no types and there are no rows.

        data, given: of each input, as it came, and as a table. Raises SpecError where rows of one input come with no
        table of the other one, or with one that tells no types.
        """
        left, right = given
        if left is None or right is None:
            raise SpecError(
                "process: the first call needs left= and right=, to know their columns; a table that has types and no "
                "rows will do, and so does open(schemas=(left, right))"
            )
        untold: list[str] = []
        for side, table in enumerate((left, right)):
            with of_input(side, "process"):
                if tells_no_types(data[side], table, columns_named(self._sides[side])):
                    untold.append(SIDES[side])
        if not untold:
            self._bind(left.schema, right.schema)
        elif left.num_rows or right.num_rows:
            raise SpecError(
                f"process: {untold[0]}: the table has no rows and does not tell the types of its columns, which the "
                f"first call needs; open(schemas=(left, right)) tells them"
            )
        return not untold

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
        column = bound.sides[side].time_column
        assert column is not None
        if bound.guesses_unit(side):
            self._unit_checked[side] = True  # also where the warning is raised as an error
            self._unit_checked[side] = warn_of_unit(column, times)

    def _advance(
        self,
        moved: Sequence[tuple[pa.Table, int, Side] | None] = (None, None),
        otherwise: Literal["caller", "idle"] = "caller",
    ) -> Result:
        """Moves time to the lesser watermark.

        moved: the element of each input that has moved its watermark. otherwise: what moves time where none has.
        """
        stream, watermark = self._stream, min(self._watermarks)
        assert stream is not None
        if not isinstance(stream, TracedStream):
            return stream.advance_watermark(watermark)
        held_by = self._watermarks.index(watermark)  # its element, if it moved; else that of the other one, which held
        return stream.advance_by(watermark, self._calls, moved[held_by] or moved[1 - held_by], otherwise)

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

        left, right: of one input, in place of ``watermark``. Time is the lesser of both. A watermark at or below the
        current one is ignored, and None leaves it as it is.
        """
        given = [watermark if one is None else one for one in (left, right)]
        given = [
            None if found is None else int64_ms(f"advance_watermark: {name}", found)
            for name, found in zip(SIDES, given, strict=True)
        ]
        if self._stream is not None:
            self._stream.refuse_if_failed()
        self._watermarks = [
            mark if found is None else max(mark, found) for mark, found in zip(self._watermarks, given, strict=True)
        ]
        self._calls += 1
        if self._stream is None:
            return self._nothing()
        with _failing(self._stream):
            return self._result([self._advance()])

    def _result(self, results: list[Result]) -> Result:
        bound = self._bound
        assert bound is not None
        late = pa.concat_tables([result.late for result in results])
        sides = bound.late_sides(late)
        wanted = sum(rows.num_rows for rows in sides.values())
        self._late += wanted
        self._dropped += late.num_rows - wanted
        main = pa.concat_tables([result.main for result in results])
        return Result(main, pa.table({}), pa.table({}), sides, Source(bound.sides[0].keys, None))

    def _nothing(self) -> Result:
        """Returns the result of a call before the columns are known: those of ``main`` that are, and all tags."""
        main = planner.schema_before_input(self._spec_before).empty_table()
        side = {tag: pa.table({}) for own, tag in zip(self._sides, LATE_SIDES, strict=True) if own.late_output}
        return Result(main, pa.table({}), pa.table({}), side, Source(self._sides[0].keys, None))

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
    def why(self, key: Any = ..., at: Any = None, *, window: Any = None) -> WhyReport:
        """Says why the windows of a key have fired or have not, and which input holds them; see ``Stream.why``.

        Int times are in ms. What has fired and what was late is known if the stream was opened with ``trace=``. Raises
        StateError while the columns are not known.
        """
        return self._known("why").why_as_of(self._said_of_time(), key, at, window, metrics=self.metrics)

    def _said_of_time(self) -> tuple[str, ...]:
        time_text, said = TimeText(), ["Time is the lesser of the watermarks of both inputs."]
        for side, name in enumerate(SIDES):
            at = self._watermarks[side]
            if at == MIN_TIMESTAMP:
                said.append(f"The {name} input has no watermark yet.")
                continue
            newest, behind = self._clocks.newest[side], ""
            told = newest != self._guessed[side]  # a guess may be of no element
            if told and self._delays is not None and at == newest - self._delays[side] - 1:
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

    @fails_with_its_chunk(lambda join: join._stream)
    @alone
    def snapshot(self) -> bytes:
        """Returns all state as one chunk. Raises StateError while the columns are not known."""
        return self._chunk(self._known("snapshot").snapshot())

    @fails_with_its_chunk(lambda join: join._stream)
    @alone
    def delta(self) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk."""
        return self._chunk(self._known("delta").delta())

    def _known(self, call: str) -> OwnedStream:
        if self._stream is None:
            raise StateError(f"{call}: the stream has seen no batch and no schema yet, so there is no state")
        return self._stream

    def _chunk(self, chunk: bytes) -> bytes:
        newest = self._clocks.newest
        guessed = tuple(time == guess > MIN_TIMESTAMP for time, guess in zip(newest, self._guessed, strict=True))
        return JoinHeader(tuple(self._watermarks), newest, guessed).before(chunk)

    @alone
    def restore(self, chunks: list[bytes] | bytes, *, migrate: Migrate = None) -> None:
        """Replaces all state by that of one snapshot and the deltas after it, in order.

        The stream needs to know the columns: open it with ``schemas``. migrate: ``"changed functions"`` takes state
        of a co-group whose function has other code, or another name, as ``Stream.restore`` does. Raises StateError for
        chunks that are corrupt, cut off, or of another join.
        """
        stream = self._known("restore")
        parts = [split_header(bytes(chunk)) for chunk in chunks_in(chunks)]
        stream.restore([chunk for _, chunk in parts], migrate=migrate)
        watermarks, newest, guessed = parts[-1][0]
        if newest is None:
            newest, guessed = self._newest_of(watermarks), (True, True)
        self._watermarks = list(watermarks)
        self._guessed = tuple(time if guess else MIN_TIMESTAMP for time, guess in zip(newest, guessed, strict=True))
        self._clocks = InputClocks(newest, (_now_ms(),) * 2)
        self._bad = self._late = self._dropped = 0

    def _newest_of(self, watermarks: Sequence[int]) -> tuple[int, ...]:
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
            self._stream.check_invariants()


@contextmanager
def _failing(stream: OwnedStream) -> Iterator[None]:
    """An error within fails the stream: rows have been taken, or windows have fired, and what came of it is lost."""
    try:
        yield
    except BaseException as problem:
        stream.fail(problem)
        raise


def _now_ms() -> int:
    return int(time.monotonic() * 1_000 + 1e-6)
