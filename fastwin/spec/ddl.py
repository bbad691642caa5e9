"""Schemas as text: Spark's DDL, ``"key string, n bigint, tags array<string>"``, to an Arrow schema, without pyspark."""

from __future__ import annotations

import re

import pyarrow as pa

from fastwin.errors import SpecError

__all__ = ["to_schema"]

_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(), "byte": pa.int8(),
    "smallint": pa.int16(), "short": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(),
    "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}  # fmt: skip
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*)|(\d+)|([<>(),:]))")


class _Parser:
    def __init__(self, text: str, argument: str) -> None:
        self._text, self._argument = text, argument
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._error(f"makes no sense at {text[at:].strip()[:20]!r}")
            quoted, word, number, mark = found.groups()
            if quoted is not None:
                self._tokens.append(("name", quoted.replace("``", "`")))
            else:
                self._tokens.append(("word", word) if word else ("number", number) if number else ("mark", mark))
            at = found.end()
        self._at = 0

    def _error(self, what: str) -> SpecError:
        return SpecError(
            f"{self._argument}: the schema {self._text!r} {what}; write for example 'name string, n bigint'"
        )

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._error("ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, text: str) -> bool:
        if self._at == len(self._tokens):
            return False
        kind, value = self._tokens[self._at]
        return kind in ("word", "mark") and value.lower() == text

    def _take(self, mark: str) -> None:
        if not self._peek(mark):
            raise self._error(f"lacks a {mark!r}")
        self._at += 1

    def fields(self, end: str | None, between: str) -> list[pa.Field]:
        found: list[pa.Field] = []
        while True:
            kind, name = self._next()
            if kind not in ("name", "word"):
                raise self._error(f"has {name!r} where a column name should be")
            if self._peek(":") or between == ":":
                self._take(":")
            found.append(pa.field(name, self.type()))
            if self._peek("not"):
                self._at += 1
                self._take("null")
                found[-1] = found[-1].with_nullable(False)
            if self._at == len(self._tokens) and end is None:
                break
            if end is not None and self._peek(end):
                break
            self._take(",")
        names = [field.name for field in found]
        for name in names:
            if names.count(name) > 1:
                raise self._error(f"names the column {name!r} twice")
        return found

    def type(self) -> pa.DataType:
        kind, word = self._next()
        name = word.lower()
        if kind != "word":
            raise self._error(f"has {word!r} where a type should be")
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name in ("varchar", "char"):
            self._take("(")
            self._next()
            self._take(")")
            return pa.string()
        if name == "array":
            self._take("<")
            item = self.type()
            self._take(">")
            return pa.list_(item)
        if name == "map":
            self._take("<")
            key = self.type()
            self._take(",")
            value = self.type()
            self._take(">")
            return pa.map_(key, value)
        if name == "struct":
            self._take("<")
            fields = [] if self._peek(">") else self.fields(">", ":")
            self._take(">")
            return pa.struct(fields)
        if name not in _SIMPLE:
            raise self._error(f"has the unknown type {word!r}")
        return _SIMPLE[name]

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._peek("("):
            self._take("(")
            precision = self._number()
            if self._peek(","):
                self._take(",")
                scale = self._number()
            self._take(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._error(f"has decimal({precision}, {scale}): precision is 1 to 38, scale at most the precision")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        kind, value = self._next()
        if kind != "number":
            raise self._error(f"has {value!r} where a number should be")
        return int(value)


def to_schema(value: object, argument: str) -> pa.Schema:
    """Returns an Arrow schema for one, or for DDL text. Raises SpecError for anything else, or for no column.

    >>> to_schema("key string, n bigint, prices array<decimal(10,2)>", "output").names
    ['key', 'n', 'prices']
    """
    if isinstance(value, pa.Schema):
        if not value.names or len(set(value.names)) < len(value.names):
            raise SpecError(f"{argument}: the schema needs columns of different names, got {value.names}")
        return value.remove_metadata()
    if not isinstance(value, str):
        raise SpecError(f"{argument}: must be a schema such as 'name string, n bigint' or a pa.Schema, got {value!r}")
    if not value.strip():
        raise SpecError(f"{argument}: the schema is empty; write for example 'name string, n bigint'")
    return pa.schema(_Parser(value, argument).fields(None, ""))
