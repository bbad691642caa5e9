"""What a store holds: keys, panes on two levels, the fields of a pane, and the columns that they become."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.numbers import Mean
from fastwin.aggregates.panestate import PaneState, kinds_in
from fastwin.columns.decoding import decoded_type
from fastwin.columns.schemas import schema_to_text, text_to_schema
from fastwin.errors import SpecError, StoreError
from fastwin.spec.builder import SpecBuilder, check_spec
from fastwin.spec.panes import Merge, PaneOutput, fields_of, outputs_of, pane_spec, window_of
from fastwin.store.keytext import check_key_types
from fastwin.store.means import mean_type
from fastwin.store.spans import Level, coarse_width
from fastwin.store.states import aggregate_from_text, aggregate_to_text, reading_of
from fastwin.times import format_ms

__all__ = ["Field", "Layout", "Output"]

_VERSION = 2
_OLDEST = 1
"""Of the first version: stores of RocksDB are read still; in Redis, each field of a pane had a name of its own."""

_KEY = "key"

_NUMBERS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_temporal,
)


@dataclass(frozen=True)
class Field:
    """What a pane keeps under one name: its Arrow type, and how two of them become one.

    made: for a state, which aggregate it is of; see ``states``. reads: which aggregate fills it, of which columns, and
    under which condition; "" in a store that was made before this was kept.
    """

    name: str
    kind: pa.DataType
    merge: Merge
    made: str = ""
    reads: str = field(default="", compare=False)

    @property
    def is_number(self) -> bool:
        """Whether its values are short: numbers, booleans and times."""
        return any(test(self.kind) for test in _NUMBERS)


@dataclass(frozen=True)
class Output:
    """A column of query results: its name, how it is made (see ``PaneOutput``), and of which fields.

    made: which aggregate makes it of a state.
    """

    name: str
    how: str
    fields: tuple[str, ...]
    made: str = ""


@dataclass(frozen=True)
class Layout:
    """All that a reader must know of a store; kept in it.

    keys: the key columns. fields: of a pane. outputs: columns of results. pane_ms, coarse_ms: widths of the two
    levels, coarse_ms None for one level only. offset_ms: of the panes' grid. window_ms: the size of the windows that
    the store is for. retention_ms: how long before the watermark panes are kept. version: of the format.
    """

    keys: tuple[pa.Field, ...]
    fields: tuple[Field, ...]
    outputs: tuple[Output, ...]
    pane_ms: int
    coarse_ms: int | None
    offset_ms: int
    window_ms: int
    retention_ms: int
    version: int = field(default=_VERSION, compare=False)

    @staticmethod
    def checked(spec: SpecBuilder | None, retention_ms: int | None = None) -> SpecBuilder | None:
        """Returns a spec. Raises SpecError for one whose windows cannot be put together from panes, or not be shown,
        and for a retention that is shorter than they are."""
        if spec is not None:
            check_spec(spec)
            whole = spec.origin or spec
            check_spec(whole)
            _outputs_of(whole)
            _check_retention(retention_ms, window_of(whole)[0])
        return spec

    @classmethod
    def of(cls, spec: Any, schema: pa.Schema, retention_ms: int | None = None, held: Layout | None = None) -> Layout:
        """Returns the layout for a spec and the schema of its panes.

        spec: the windows' spec, or that of its panes. schema: of the panes, as ``spec.panes().run`` gives them.
        retention_ms: None: eight times the windows' size. held: that of the store, whose types keys are cast to, and
        text and bytes; None: there is none yet. Raises SpecError for what the store cannot take.
        """
        whole = spec.origin or spec
        outputs = _outputs_of(whole)
        panes = spec if spec.origin is not None else pane_spec(spec, None)
        pane_ms, _, offset_ms = window_of(panes)
        window_ms, _, _ = window_of(whole)
        coarse_ms = coarse_width(pane_ms, window_ms)
        if retention_ms is None:
            retention_ms = 8 * window_ms
        _check_retention(retention_ms, window_ms)
        for name in (*whole.keys, *(part.name for output in outputs for part in output.fields)):
            if name not in schema.names:
                raise SpecError(f"put: the panes have no column {name!r}; they have {', '.join(schema.names)}")
        keys = tuple(pa.field(name, decoded_type(schema.field(name).type)) for name in whole.keys)
        if held is not None and [one.name for one in held.keys] == list(whole.keys):
            keys = held.keys
        check_key_types(keys)
        kinds = {} if held is None else {one.name: one.kind for one in held.fields}
        fields = [
            Field(
                f.name,
                _kind_as(schema.field(f.name).type, kinds.get(f.name)),
                f.merge,
                _made(f.aggregate),
                reading_of(f.aggregate),
            )
            for f in fields_of(outputs)
        ]
        for one in fields:
            _check_kind(one)
            if any(output.how == "mean" and output.fields[0].name == one.name for output in outputs):
                _check_mean(one)
        return cls(
            keys,
            tuple(fields),
            tuple(_output(output) for output in outputs),
            pane_ms,
            coarse_ms,
            offset_ms,
            window_ms,
            retention_ms,
        )

    @property
    def fine(self) -> Level:
        """The grid of the panes."""
        return Level(self.pane_ms, self.offset_ms)

    @property
    def coarse(self) -> Level | None:
        """The grid of the coarse panes, if there are any."""
        return None if self.coarse_ms is None else Level(self.coarse_ms, self.offset_ms)

    @property
    def block(self) -> Level:
        """The grid in which panes are written and dropped: the coarse one, else the fine one."""
        return self.coarse or self.fine

    def first_field(self, output: Output) -> Field:
        """Returns the first of the fields that a column of results is made of."""
        return next(one for one in self.fields if one.name == output.fields[0])

    def output_type(self, output: Output) -> pa.DataType:
        """Returns the type of a column of results."""
        if output.how == "estimate":
            return pa.int64()
        kind = self.first_field(output).kind
        if output.how == "mean":
            return mean_type(kind)
        if output.how == "state":
            return aggregate_from_text(output.made, "v").result_type(*(kinds_in(kind) or ()))
        return kind

    def to_json(self) -> str:
        """Returns the layout as text."""
        schema = pa.schema([*self.keys, *(pa.field(field.name, field.kind) for field in self.fields)])
        return json.dumps(
            {
                "version": self.version,
                "keys": {field.name: str(field.type) for field in self.keys},
                "fields": {field.name: [str(field.kind), field.merge] for field in self.fields},
                "outputs": {output.name: [output.how, *output.fields] for output in self.outputs},
                "states": {one.name: one.made for one in self.fields if one.made},
                "reads": {one.name: one.reads for one in self.fields if one.reads},
                "results": {output.name: output.made for output in self.outputs if output.made},
                "pane_ms": self.pane_ms,
                "coarse_ms": self.coarse_ms,
                "offset_ms": self.offset_ms,
                "window_ms": self.window_ms,
                "retention_ms": self.retention_ms,
                "schema": schema_to_text(schema),
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Layout:
        """Returns the layout that ``to_json`` had made text. Raises StoreError for any other text."""
        return _read(text)

    def check_same(self, other: Layout) -> None:
        """Raises StoreError if another layout means something else; retention may differ."""
        for what in ("keys", "fields", "outputs", "pane_ms", "coarse_ms", "offset_ms", "window_ms"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                raise _other(what, _shown(mine), _shown(theirs))
        for mine, theirs in zip(self.fields, other.fields, strict=True):
            if mine.reads and theirs.reads and mine.reads != theirs.reads:
                raise _other(mine.name, mine.reads, theirs.reads)

    def check_spec(self, spec: SpecBuilder) -> None:
        """Raises StoreError for a spec of other panes, as far as a spec tells that without the types of its columns."""
        whole: Any = spec.origin or spec
        outputs = outputs_of(whole)
        fields = fields_of(outputs)
        for what, mine, theirs in (
            ("keys", [one.name for one in self.keys], list(whole.keys)),
            ("aggregates", [one.name for one in self.outputs], [one.name for one in outputs]),
            (
                "fields",
                [f"{one.name} by {one.merge}" for one in self.fields],
                [f"{f.name} by {f.merge}" for f in fields],
            ),
        ):
            if mine != theirs:
                raise _other(what, ", ".join(mine) or "none", ", ".join(theirs) or "none")
        if spec.origin is None:  # whoever reads may name the windows alone, also where panes have a width of their own
            with suppress(SpecError):
                spec = pane_spec(spec, self.pane_ms)
        held = pa.schema([*self.keys, *(pa.field(one.name, one.kind) for one in self.fields)])
        self.check_same(Layout.of(spec, held, None, self))


@lru_cache(maxsize=64)  # every question to a store reads it
def _read(text: str | bytes) -> Layout:
    try:
        found = json.loads(text)
        if not _OLDEST <= found["version"] <= _VERSION:
            raise StoreError(f"store: its layout has version {found['version']}, this fastwin reads version {_VERSION}")
        schema = text_to_schema(found["schema"])
        states, reads, results = (found.get(name, {}) for name in ("states", "reads", "results"))
        return Layout(
            tuple(schema.field(name) for name in found["keys"]),
            tuple(
                Field(name, schema.field(name).type, merge, states.get(name, ""), reads.get(name, ""))
                for name, (_, merge) in found["fields"].items()
            ),
            tuple(
                Output(name, how, tuple(fields), results.get(name, ""))
                for name, (how, *fields) in found["outputs"].items()
            ),
            *(found[name] for name in ("pane_ms", "coarse_ms", "offset_ms", "window_ms", "retention_ms", "version")),
        )
    except (ValueError, KeyError, TypeError, pa.ArrowException) as problem:
        raise StoreError(f"store: its layout cannot be read, so it is none of fastwin's: {problem}") from None


def _check_retention(retention_ms: int | None, window_ms: int) -> None:
    if retention_ms is not None and retention_ms < window_ms:
        raise SpecError(f"retention: must be at least a window, {format_ms(window_ms)}, got {format_ms(retention_ms)}")


def _outputs_of(whole: Any) -> tuple[PaneOutput, ...]:
    """Returns the outputs of a spec. Raises SpecError for one that the JSON API would show in place of the keys."""
    outputs = outputs_of(whole)
    for output in outputs:
        if output.name == _KEY:
            aggregate = dict(whole.ending.aggregates)[_KEY]
            raise SpecError(
                f"store: the aggregate {_KEY}={aggregate} has the name under which rows of the JSON API have their "
                f"keys; give it another name"
            )
    return outputs


def _kind_as(kind: pa.DataType, held: pa.DataType | None) -> pa.DataType:
    """Returns the type of a field without views, and as the store has it where that differs in offsets alone."""
    kind = decoded_type(kind)
    for tests in (pa.types.is_string, pa.types.is_large_string), (pa.types.is_binary, pa.types.is_large_binary):
        if held is not None and all(any(test(one) for test in tests) for one in (kind, held)):
            return held
    return kind


def _check_kind(one: Field) -> None:
    """Raises SpecError for a field that cells cannot hold."""
    if one.merge == "state" and kinds_in(one.kind) is None:
        raise SpecError(f"put: {one.name!r} must be a state as spec.panes() makes it, got {one.kind}")
    if one.merge == "union" and not (pa.types.is_binary(one.kind) or pa.types.is_large_binary(one.kind)):
        raise SpecError(f"put: {one.name!r} must be a sketch as spec.panes() makes it, got {one.kind}")
    most = 76 if pa.types.is_decimal256(one.kind) else 38
    if pa.types.is_decimal(one.kind) and one.kind.precision - one.kind.scale > most:
        raise SpecError(f"put: a store keeps up to {most} digits before the point, but {one.name!r} is {one.kind}")
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if one.merge not in ("union", "state") and not one.is_number and not any(test(one.kind) for test in tests):
        raise SpecError(f"put: a store keeps numbers, times, booleans, text and bytes, but {one.name!r} is {one.kind}")


def _check_mean(total: Field) -> None:
    """Raises SpecError for sums that ``Mean`` makes of no column, but ``Sum`` does."""
    if pa.types.is_duration(total.kind) or total.kind == pa.uint64():
        raise SpecError(f"put: a Mean takes {Mean.takes}, but {total.name!r} is {total.kind}; cast what it reads")


def _made(aggregate: Aggregate | None) -> str:
    if isinstance(aggregate, PaneState):
        aggregate = aggregate.inner
        assert aggregate is not None
        return aggregate_to_text(aggregate)
    return ""


def _output(output: PaneOutput) -> Output:
    made = "" if output.aggregate is None else aggregate_to_text(output.aggregate)
    return Output(output.name, output.how, tuple(part.name for part in output.fields), made)


def _other(what: str, mine: str, theirs: str) -> StoreError:
    return StoreError(
        f"store: it holds panes with {what}={mine}, and not with {theirs}; use another store or another namespace"
    )


def _shown(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ", ".join(f"{part.name}: {_told(part)}" for part in value)


def _told(part: Any) -> Any:
    if isinstance(part, Field) and part.made:
        return f"{part.made} of {', '.join(str(kind) for kind in kinds_in(part.kind) or ())}"
    return getattr(part, "made", "") or getattr(part, "kind", None) or getattr(part, "type", None) or part.fields
