"""How specs, streams and results show themselves: in a terminal as text, in a notebook as a small table."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from fastwin.columns.pythonvalues import told_values
from fastwin.spec.text import parts_text
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, moment_text

__all__ = ["ShownStream", "pairs_html", "spec_html", "spec_lines", "table_html", "watermark_text"]

_ROWS, _COLUMNS = 8, 16
_LONGEST = 60


def spec_lines(spec: Any) -> str:
    """Returns the parts of a spec, a line each."""
    return "\n".join([type(spec).__name__, *(f"  {name}: {text}" for name, text in parts_text(spec).items())])


def spec_html(spec: Any, told: Mapping[str, str] | None = None) -> str:
    """Returns the parts of a spec as a table. told: what comes below."""
    return pairs_html(type(spec).__name__, parts_text(spec) | dict(told or {}))


def table_html(title: str, table: pa.Table) -> str:
    """Returns the first rows of a table, and how many there are."""
    names = table.column_names[:_COLUMNS]
    more = "" if len(names) == table.num_columns else f", {table.num_columns - len(names):,} more columns"
    shown = table.select(range(len(names))).slice(0, _ROWS)
    columns = [told_values(column) for column in shown.columns]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    cells = ("".join(f"<td>{_cell(column[row])}</td>" for column in columns) for row in range(shown.num_rows))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    dots = f"<tr><td colspan='{max(len(names), 1)}'>…</td></tr>" if table.num_rows > _ROWS else ""
    count = f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}{more}"
    return (
        f"<div><p><b>{html.escape(title)}</b>: {count}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}{dots}</tbody></table></div>"
    )


def pairs_html(title: str, pairs: Mapping[str, Any]) -> str:
    """Returns names and values, one pair a row."""
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in pairs.items())
    return f"<div><p><b>{html.escape(title)}</b></p><table><tbody>{rows}</tbody></table></div>"


def watermark_text(ms: int) -> str:
    """Returns a watermark in words."""
    if ms in (MIN_TIMESTAMP, MAX_TIMESTAMP):
        return "none yet" if ms == MIN_TIMESTAMP else "the end of time"
    return moment_text(ms)


class ShownStream:
    """Mixed into streams: how they show themselves. They have ``metrics`` and ``_spec``."""

    metrics: Any
    _spec: Any = None

    def __repr__(self) -> str:
        told = self.metrics
        return (
            f"{type(self).__name__}(watermark {watermark_text(told.watermark)}, {told.events:,} events, "
            f"{told.late + told.num_late_records_dropped:,} late, {told.fired:,} results, "
            f"{told.open_windows:,} open windows)"
        )

    def _repr_html_(self) -> str:
        told = asdict(self.metrics)
        told["watermark"] = watermark_text(told["watermark"])
        title = type(self).__name__
        shown = {name: value for name, value in told.items() if value}
        return ("" if self._spec is None else spec_html(self._spec)) + pairs_html(title, shown)


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = "" if value is None else str(value)
    return html.escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
