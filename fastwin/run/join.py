"""JoinSpec: two inputs matched by key and window, said once; it runs on tables, on streams and on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fastwin.columns.decoding import readable_type, taken_type, without_run_ends
from fastwin.columns.keys import KeyCodec
from fastwin.columns.schemas import check_time_type
from fastwin.columns.tables import as_table, tells_no_types
from fastwin.errors import SpecError
from fastwin.run.choice import Explanation, choose, trigger_of
from fastwin.run.joinbound import Bound
from fastwin.run.joinrun import run_join
from fastwin.run.joinstream import JoinStream
from fastwin.run.reading import columns_named
from fastwin.run.results import Result
from fastwin.run.threads import check_threads
from fastwin.run.twoinputs import of_input
from fastwin.run.windowspec import WindowSpec
from fastwin.run.zones import bound_type, warn_of_utc_days
from fastwin.spec.ddl import to_schema
from fastwin.spec.describe import describe
from fastwin.spec.joinending import HOWS, LATE_SIDES, SIDE, SIDES, TIME, Columns, How, JoinEnding, free_name
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.spec.text import outputs_text, parts_text
from fastwin.times import Duration, format_ms
from fastwin.windows.assigner import WindowAssigner

__all__ = ["JoinSpec", "co_group", "window_join"]

# The same values with offsets of 64 bits: pandas and polars have these where pyarrow has 32.
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, repr=False)
class JoinSpec:
    """A join of two inputs, made by ``window_join`` or ``co_group``.

    left, right: the inputs' keys, event time, lateness and late output. assigner: the windows. how: which rows without
    a partner are results. suffix: of right columns whose name is taken. function, output: see ``co_group``.
    """

    left: WindowSpec
    right: WindowSpec
    assigner: WindowAssigner
    how: How = "inner"
    suffix: str = "_right"
    function: Callable[..., Any] | None = None
    output: pa.Schema | None = None

    @property
    def method(self) -> str:
        """The function that made it."""
        return "window_join" if self.function is None else "co_group"

    def __repr__(self) -> str:
        what = f"how: {self.how}" if self.function is None else f"function: {self._function_name}"
        return "\n  ".join(["JoinSpec", what, f"windows: {self.assigner}", *self._sides_told()])

    @property
    def _function_name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def _sides_told(self) -> Iterator[str]:
        """Yields what each input is, in words, and what happens to its late and bad rows."""
        for name, side, tag in zip(SIDES, (self.left, self.right), LATE_SIDES, strict=True):
            told = [f"keys {', '.join(side.keys) or 'none'}", parts_text(side)["time"]]
            if side.lateness_ms:
                told.append(f"allowed lateness {format_ms(side.lateness_ms)}")
            if side.late_output:
                told.append(f"late rows in result.side[{tag!r}]")
            yield f"{name}: {'; '.join(told)}"
        plain = replace(self.left, lateness_ms=max(self.lateness), coalesce=self.coalesce, late_output=False)
        yield from outputs_text(plain)

    def __post_init__(self) -> None:
        for name, side in zip(SIDES, (self.left, self.right), strict=True):
            _check_side(self.method, name, side)
        if len(self.left.keys) != len(self.right.keys):
            raise SpecError(
                f"{self.method}: both inputs need as many key columns, got {list(self.left.keys)} and "
                f"{list(self.right.keys)}"
            )
        if self.left.bad_row_policy != self.right.bad_row_policy:
            raise SpecError(f"{self.method}: both inputs need the same bad_rows(...)")
        if {self.left.coalesce, self.right.coalesce} == {True, False}:
            raise SpecError(f"{self.method}: both inputs need the same coalesce= in allowed_lateness(...)")
        if self.how not in HOWS:
            raise SpecError(f"{self.method}: how must be one of {', '.join(HOWS)}, got {self.how!r}")
        if not isinstance(self.suffix, str) or not self.suffix:
            raise SpecError(f"{self.method}: suffix must be text of at least one character, got {self.suffix!r}")
        self._spec(JoinEnding(self.how, (), (), self.lateness, self.function, self.output))

    @property
    def lateness(self) -> tuple[int, int]:
        """The allowed lateness of each input, ms."""
        return self.left.lateness_ms, self.right.lateness_ms

    @property
    def coalesce(self) -> bool | None:
        """What one of the inputs, or both of them, say of how late elements fire; None leaves it to the runner."""
        return self.left.coalesce if self.left.coalesce is not None else self.right.coalesce

    def _spec(self, ending: JoinEnding) -> WindowSpec:
        start = WindowSpec(keys=self.left.keys).event_time(TIME).window(self.assigner)
        spec = replace(
            start,
            lateness_ms=max(self.lateness),
            coalesce=self.coalesce,
            late_output=self.left.late_output or self.right.late_output,
            bad_row_policy=self.left.bad_row_policy,
        )
        return spec._ended(ending)

    def bind(self, left: pa.Schema, right: pa.Schema) -> Bound:
        """Binds the join to the schemas of its inputs.

        Raises SpecError for a column that is not there or does not suit, and for names that collide. Warns where the
        windows are days of UTC, and the event time of an input has another zone.
        """
        schemas = _readable(left), _readable(right)
        sides = self.left, self.right
        for side, schema in zip(sides, schemas, strict=True):
            twice = {name for name in schema.names if schema.names.count(name) > 1}
            if twice:
                raise SpecError(f"{self.method}: columns named twice: {', '.join(sorted(twice))}")
            for name in (*side.keys, side.time_column):
                if name not in schema.names:
                    raise SpecError(f"{self.method}: there is no column {name!r}; there are {', '.join(schema.names)}")
            assert side.time_column is not None
            check_time_type(side.time_column, schema.field(side.time_column).type, side.time_unit)
            windowed = replace(side, assigner=self.assigner)
            warn_of_utc_days(windowed, bound_type(windowed, schema))
        columns = self._columns(*schemas)
        fields = [_key(self.method, *pair) for pair in zip(*map(_key_fields, sides, schemas), strict=True)]
        fields += [pa.field(SIDE, pa.int8()), pa.field(TIME, pa.int64())]
        for names, schema in zip(columns, schemas, strict=True):
            fields += [schema.field(own).with_name(name).with_nullable(True) for name, own in names]
        spec = self._spec(JoinEnding(self.how, *columns, self.lateness, self.function, self.output))
        return Bound(spec, schemas, sides, columns, pa.schema(fields))

    def united_specs(self, schema: pa.Schema) -> Iterator[WindowSpec]:
        """Yields the specs over both inputs put together that stored state may be of.

        schema: the columns of these, in their order: the keys, the two that ``bind`` adds, left ones, right ones. It
        does not say where the right ones begin, and the state's fingerprint does.
        """
        names = schema.names[len(self.left.keys) + 2 :]
        for begin in range(len(names) + 1):
            left, right = (tuple((name, name) for name in some) for some in (names[:begin], names[begin:]))
            yield self._spec(JoinEnding(self.how, left, right, self.lateness, self.function, self.output))

    def _columns(self, left: pa.Schema, right: pa.Schema) -> tuple[Columns, Columns]:
        """Returns the columns of the inputs without keys, by the names that they get.

        Those of a co-group are in its state alone, so any that is free will do.
        """
        taken = {*self.left.keys, *BOUNDS, SIDE, TIME}
        lefts: list[tuple[str, str]] = []
        rights: list[tuple[str, str]] = []
        for found, schema, keys, suffix in (
            (lefts, left, self.left.keys, ""),
            (rights, right, self.right.keys, self.suffix),
        ):
            for own in schema.names:
                if own in keys:
                    continue
                name = own if own not in taken else f"{own}{suffix}"
                if self.function is not None:
                    name = free_name(own, taken, suffix or "_left")
                elif name in taken:
                    hint = f"; suffix={self.suffix!r} does not help" if suffix else ""
                    raise SpecError(f"{self.method}: the result would have the column {name!r} twice{hint}; rename it")
                taken.add(name)
                found.append((name, own))
        return tuple(lefts), tuple(rights)

    def run(self, left: Any, right: Any, *, threads: int = 1) -> Result:
        """Joins two bounded inputs, and fires everything at their end.

        left, right: pyarrow Table or RecordBatch, pandas or polars DataFrame. The order of rows does not count.
        threads: how many take part: each on the rows of some windows, or of some keys where windows overlap or are few.
            A ``co_group``, whose function is Python, runs on one, and so do less than 100,000 rows.

        Windows come in order of their ends; where several threads take keys, in that order for some of them after
        others. What the process frees is kept as ``WindowSpec.run`` says.
        """
        check_threads(threads)
        tables = self._table(0, left), self._table(1, right)
        return run_join(self.bind(tables[0].schema, tables[1].schema), tables, threads)

    def _table(self, side: int, data: Any) -> pa.Table:
        """Returns an input as a table. Raises SpecError where it has no rows and does not tell types."""
        names = columns_named((self.left, self.right)[side])
        with of_input(side, "run"):
            table = as_table(data, names.__contains__)
            if tells_no_types(data, table, names):
                raise SpecError(
                    "the table has no rows and does not tell the types of its columns; a pyarrow Table tells them"
                )
        return table

    def open(
        self,
        watermark: tuple[Duration, Duration] | None = None,
        *,
        schemas: tuple[pa.Schema, pa.Schema] | None = None,
        trace: int | None = None,
        idle: Duration | None = None,
    ) -> JoinStream:
        """Opens a stream in this process: ``process(left=..., right=...)``; see ``JoinStream``.

        watermark: how far the elements of each input may be out of order; time is the lesser of both. None: the caller
            calls ``advance_watermark``. schemas: of the inputs; None: the first call brings rows of both.
        trace: keeps so many decisions for ``JoinStream.why``, as ``WindowSpec.open`` does. None: none.
        idle: needs a ``watermark``. An input without elements for so long, by the machine's clock, no longer holds time
            back. While both are quiet, each call of ``process()`` moves time up to the newest element, and on with the
            clock. None: both are waited for.
        """
        return JoinStream(self._spec_before, (self.left, self.right), self.bind, watermark, schemas, trace, idle)

    @property
    def _spec_before(self) -> WindowSpec:
        """The spec over both inputs before their columns are known."""
        return self._spec(JoinEnding(self.how, (), (), self.lateness, self.function, self.output))

    def explain(self) -> Explanation:
        """Says how it runs: text that shows itself well in a notebook, too."""
        spec = self._spec_before
        operator, why = choose(spec)
        last = f"how={self.how!r}" if self.function is None else self._function_name
        lines = [
            f"{self.method}(left, right, {describe(self.assigner)}, {last})",
            f"operator: {operator}, because {why}",
            f"windows: {self.assigner}",
            f"fires: {trigger_of(spec)}, which is the lesser of both inputs'",
            *self._sides_told(),
        ]
        return Explanation("\n  ".join(lines))


def _check_side(method: str, name: str, side: WindowSpec) -> None:
    if not isinstance(side, WindowSpec):
        raise SpecError(f"{method}: {name} must be fw.key_by(...).event_time(...), got {type(side).__name__}")
    if side.time_column is None:
        raise SpecError(f"{method}: {name} needs .event_time(column)")
    plain = WindowSpec(
        keys=side.keys,
        time_column=side.time_column,
        time_unit=side.time_unit,
        lateness_ms=side.lateness_ms,
        coalesce=side.coalesce,
        late_output=side.late_output,
        bad_row_policy=side.bad_row_policy,
    )
    if side != plain:
        raise SpecError(
            f"{method}: {name} takes key_by, event_time, allowed_lateness, side_output_late_data and bad_rows alone; "
            f"the window is an argument of {method}"
        )
    if side.bad_row_policy == "divert":
        raise SpecError(f"{method}: {name}: bad_rows('divert') does not go with two inputs; 'raise' and 'drop' do")
    if side.time_column in side.keys:
        raise SpecError(f"{method}: {name}: the event time {side.time_column!r} cannot be a key")


def _readable(schema: pa.Schema) -> pa.Schema:
    if not isinstance(schema, pa.Schema):
        raise SpecError(f"schemas: must be pyarrow.Schema, got {type(schema).__name__}")
    return pa.schema([field.with_type(taken_type(readable_type(field.type))) for field in schema])


def _key_fields(side: WindowSpec, schema: pa.Schema) -> list[pa.Field]:
    codec = KeyCodec(tuple(pa.field(name, without_run_ends(schema.field(name).type)) for name in side.keys))
    return codec.out_fields


def _key(method: str, left: pa.Field, right: pa.Field) -> pa.Field:
    if left.type == right.type:
        return left
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return left.with_type(pa.int64())
    if _LARGE.get(left.type, left.type) == _LARGE.get(right.type, right.type):
        return left.with_type(_LARGE.get(left.type, left.type))
    raise SpecError(
        f"{method}: the keys {left.name!r} and {right.name!r} are {left.type} and {right.type}; cast one of them"
    )


def window_join(
    left: WindowSpec, right: WindowSpec, window: WindowAssigner, how: How = "inner", *, suffix: str = "_right"
) -> JoinSpec:
    """Joins two inputs: all pairs of a left and a right row with the same key in the same window, when it fires.

    left, right: ``key_by(...).event_time(...)``, with allowed lateness and late output of their own. Key columns
        are matched by their order, and have the left names in the result. Null is a key like any other.
    window: tumbling, sliding, cumulative or calendar windows of event time.
    how: ``"left"``, ``"right"`` and ``"full"`` also give the rows without a partner in their window, with nulls.
    suffix: of right columns whose name is taken.

    Result columns: the keys, ``window_start``, ``window_end``, the left columns, the right columns. A late row fires
    its windows once more, with all pairs. State: the rows of both inputs, until their windows are gone. A firing
    costs O(rows of its windows + pairs). Raises SpecError for what does not go together.

    >>> import fastwin as fw, pyarrow as pa
    >>> orders, payments = fw.key_by("order").event_time("ts"), fw.key_by("paid").event_time("at")
    >>> join = fw.window_join(orders, payments, fw.TumblingEventTimeWindows.of("1 hour"))
    >>> left, right = pa.table({"order": [1, 2], "ts": [5, 6]}), pa.table({"paid": [2], "at": [9]})
    >>> join.run(left, right).main.select(["order", "ts", "at"]).to_pylist()
    [{'order': 2, 'ts': 6, 'at': 9}]
    """
    _check_window("window_join", window)
    return JoinSpec(left, right, window, how, suffix)


def co_group(
    left: WindowSpec,
    right: WindowSpec,
    window: WindowAssigner,
    function: Callable[..., Any],
    *,
    output: str | pa.Schema,
) -> JoinSpec:
    """Calls a function with the rows of both inputs for each key and window that has any, when it fires.

    left, right, window: see ``window_join``. function: ``function(key, window, left, right)`` is handed lists of rows
        with the columns of their input and yields tuples or dicts. Key columns have the left names; another right
        column of such a name has ``_right`` behind it. output: the columns of what the function yields: DDL such as
        ``"user string, n bigint"`` or a pa.Schema.

    Result columns: the keys, ``window_start``, ``window_end``, those of ``output``. The rows are in order of arrival
    (those of a micro-batch on Spark have none); state is as that of ``window_join``. An error of the function is a
    UserFunctionError with the key and the window. Raises SpecError as ``window_join`` does.
    """
    _check_window("co_group", window)
    if not callable(function):
        raise SpecError(f"co_group: function must be callable with key, window, left and right, got {function!r}")
    return JoinSpec(left, right, window, "full", function=function, output=to_schema(output, "co_group: output"))


def _check_window(method: str, window: WindowAssigner) -> None:
    if not isinstance(window, WindowAssigner):
        raise SpecError(
            f"{method}: window must be a window assigner such as TumblingEventTimeWindows.of(...), got {window!r}"
        )
