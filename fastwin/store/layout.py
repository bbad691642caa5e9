"""What a store holds: keys, panes on two levels, the fields of a pane, and the columns that they become."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.columns.schemas import schema_to_text, text_to_schema
from fastwin.errors import SpecError, StoreError
from fastwin.spec.panes import Merge, PaneOutput, outputs_of, pane_spec, window_of
from fastwin.store.keytext import check_key_types
from fastwin.store.spans import Level, coarse_width
from fastwin.times import format_ms

__all__ = ["Field", "Layout", "Output"]

_VERSION = 1


@dataclass(frozen=True)
class Field:
    """What a pane keeps under one name: its Arrow type, and how two of them become one."""

    name: str
    kind: pa.DataType
    merge: Merge


@dataclass(frozen=True)
class Output:
    """A column of query results: its name, how it is made (see ``PaneOutput``), and of which fields."""

    name: str
    how: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """All that a reader must know of a store; kept in it.

    keys: the key columns. fields: of a pane. outputs: columns of results. pane_ms, coarse_ms: widths of the two
    levels, coarse_ms None for one level only. offset_ms: of the panes' grid. window_ms: the size of the windows that
    the store is for. retention_ms: how long before the watermark panes are kept.
    """

    keys: tuple[pa.Field, ...]
    fields: tuple[Field, ...]
    outputs: tuple[Output, ...]
    pane_ms: int
    coarse_ms: int | None
    offset_ms: int
    window_ms: int
    retention_ms: int

    @classmethod
    def of(cls, spec: Any, schema: pa.Schema, retention_ms: int | None = None) -> Layout:
        """Returns the layout for a spec and the schema of its panes.

        spec: the windows' spec, or that of its panes. schema: of the panes, as ``spec.panes().run`` gives them.
        retention_ms: None: eight times the windows' size. Raises SpecError for what the store cannot take.
        """
        whole = spec.origin or spec
        outputs = outputs_of(whole)
        panes = spec if spec.origin is not None else pane_spec(spec, None)
        pane_ms, _, offset_ms = window_of(panes)
        window_ms, _, _ = window_of(whole)
        coarse_ms = coarse_width(pane_ms, window_ms)
        if retention_ms is None:
            retention_ms = 8 * window_ms
        if retention_ms < window_ms:
            raise SpecError(
                f"retention: must be at least a window, {format_ms(window_ms)}, got {format_ms(retention_ms)}"
            )
        for name in (*whole.keys, *(field.name for output in outputs for field in output.fields)):
            if name not in schema.names:
                raise SpecError(f"put: the panes have no column {name!r}; they have {', '.join(schema.names)}")
        keys = tuple(pa.field(name, decoded_type(schema.field(name).type)) for name in whole.keys)
        check_key_types(keys)
        for output in outputs:
            for part in output.fields:
                _check_kind(part.name, schema.field(part.name).type, part.merge)
        return cls(
            keys,
            tuple(Field(f.name, schema.field(f.name).type, f.merge) for output in outputs for f in output.fields),
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

    def output_type(self, output: Output) -> pa.DataType:
        """Returns the type of a column of results."""
        if output.how == "mean":
            return pa.float64()
        if output.how == "estimate":
            return pa.int64()
        return next(field.kind for field in self.fields if field.name == output.fields[0])

    def to_json(self) -> str:
        """Returns the layout as text."""
        schema = pa.schema([*self.keys, *(pa.field(field.name, field.kind) for field in self.fields)])
        return json.dumps(
            {
                "version": _VERSION,
                "keys": {field.name: str(field.type) for field in self.keys},
                "fields": {field.name: [str(field.kind), field.merge] for field in self.fields},
                "outputs": {output.name: [output.how, *output.fields] for output in self.outputs},
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
                raise StoreError(
                    f"store: it holds panes with {what}={_shown(mine)}, and the spec has {_shown(theirs)}; "
                    f"use another store or another namespace"
                )


@lru_cache(maxsize=64)  # every question to a store reads it
def _read(text: str | bytes) -> Layout:
    try:
        found = json.loads(text)
        if found["version"] != _VERSION:
            raise StoreError(f"store: its layout has version {found['version']}, this fastwin reads version {_VERSION}")
        schema = text_to_schema(found["schema"])
        return Layout(
            tuple(schema.field(name) for name in found["keys"]),
            tuple(Field(name, schema.field(name).type, merge) for name, (_, merge) in found["fields"].items()),
            tuple(Output(name, how, tuple(fields)) for name, (how, *fields) in found["outputs"].items()),
            *(found[name] for name in ("pane_ms", "coarse_ms", "offset_ms", "window_ms", "retention_ms")),
        )
    except (ValueError, KeyError, TypeError, pa.ArrowException) as problem:
        raise StoreError(f"store: its layout cannot be read, so it is none of fastwin's: {problem}") from None


def _check_kind(name: str, kind: pa.DataType, merge: Merge) -> None:
    """Raises SpecError for a field that cells cannot hold."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    if merge != "union" and (not number or kind == pa.uint64()):
        raise SpecError(
            f"put: a store keeps numbers and times, but {name!r} is {kind}; cast the column to int64 or float64"
        )


def _output(output: PaneOutput) -> Output:
    return Output(output.name, output.how, tuple(field.name for field in output.fields))


def _shown(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ", ".join(
        f"{part.name}: {getattr(part, 'kind', None) or getattr(part, 'type', None) or part.fields}" for part in value
    )
