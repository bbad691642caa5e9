"""Lines of access logs as columns: Apache's and nginx's combined format, and its relatives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.validtext import valid_text
from fastwin.errors import SpecError
from spark_glue.apps.pvuv.spool import UNREADABLE, opened

__all__ = ["Parsed", "first_lines", "parse_lines"]

_QUOTED = r'(?:[^"\\]|\\.)*'
# vhost:port client ident user [time] "request" status bytes "referer" "agent" and whatever else is appended.
_LINE = (
    r"^(?:(?P<host>[^\s:]+|\[[^\]\s]+\]):\d+ )?(?P<ip>\S+) \S+ [^\[]+? "
    r"\[(?P<day>\d\d)/(?P<month>[A-Z][a-z][a-z])/(?P<year>\d{4}):(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) "
    r"(?P<zone>[+-]\d{4})\] "
    r'"(?P<method>[A-Z]+) (?P<target>[^\s"]+)(?: HTTP/[\d.]+)?" (?P<status>\d{3}) (?:\d+|-)'
    rf'(?: "{_QUOTED}" "(?P<agent>{_QUOTED})"(?: .*)?)?\s*$'
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MAX_LINE = 65_536


@dataclass(frozen=True)
class Parsed:
    """What some lines are.

    rows: ts (timestamp[ms, UTC]), host, ip, method, path (without the query), status (int64), agent; host and agent
    are null where the format has none. malformed: numbers and texts of the other lines.
    """

    rows: pa.Table
    malformed: list[tuple[int, str]]


def first_lines(path: Path, most: int) -> list[str]:
    """Returns up to ``most`` lines from the beginning of a log, plain or gzipped. Raises SpecError."""
    try:
        with opened(path) as file:
            lines = [file.readline(_MAX_LINE) for _ in range(most)]
    except UNREADABLE as problem:
        raise SpecError(f"ACCESS_LOG: {path} cannot be read: {problem}") from None
    return [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines if line]


def parse_lines(lines: list[str] | pa.Array, first: int = 1) -> Parsed:
    """Returns lines as columns, and those that are none; empty lines are neither. first: number of the first line."""
    text = pa.array(lines, pa.string()) if isinstance(lines, list) else valid_text(lines)
    parts = pc.extract_regex(text, _LINE)
    times = _times(parts)
    good = np.zeros(len(lines), dtype=bool) if not len(lines) else ~np.isnat(times)
    others = np.flatnonzero(~good)
    told = zip(others.tolist(), text.take(pa.array(others)).to_pylist(), strict=True)
    malformed = [(first + i, line) for i, line in told if line]
    kept = parts.filter(pa.array(good))
    field = {name: kept.field(kept.type.get_field_index(name)) for name in ("host", "ip", "method", "status", "agent")}
    target = pc.replace_substring_regex(_field(kept, "target"), r"^[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*", "")
    rows = pa.table(
        {
            "ts": pa.array(times[good].astype("datetime64[ms]")).cast(pa.timestamp("ms", tz="UTC")),
            "host": _or_null(field["host"]),
            "ip": field["ip"],
            "method": field["method"],
            "path": pc.replace_substring_regex(target, r"[?#].*$", ""),
            "status": field["status"].cast(pa.int64()),
            "agent": _or_null(field["agent"]),
        }
    )
    return Parsed(rows, malformed)


def _field(parts: pa.StructArray, name: str) -> pa.Array:
    return parts.field(parts.type.get_field_index(name))


def _or_null(column: pa.Array) -> pa.Array:
    """A group that took no part is empty text."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _times(parts: pa.StructArray) -> np.ndarray:
    """Returns the times as datetime64[s] in UTC; NaT where the line is malformed, or its time is none."""
    valid = parts.is_valid().to_numpy(zero_copy_only=False)

    def number(name: str) -> np.ndarray:
        column = pc.utf8_ltrim(pc.if_else(parts.is_valid(), _field(parts, name), "0"), "+")
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)

    year, day = number("year"), number("day")
    hour, minute, second, zone = (number(name) for name in ("hour", "minute", "second", "zone"))
    month = pc.index_in(_field(parts, "month"), pa.array(_MONTHS)).fill_null(-1).to_numpy(zero_copy_only=False)
    months = ((year - 1970) * 12 + month).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    right = valid & (year >= 1) & (month >= 0) & (day >= 1) & (days.astype("datetime64[M]") == months)
    right &= (hour < 24) & (minute < 60) & (second < 61) & (np.abs(zone) % 100 < 60) & (np.abs(zone) <= 1_400)
    ahead = np.sign(zone) * (np.abs(zone) // 100 * 60 + np.abs(zone) % 100)
    found = days.astype("datetime64[s]") + (hour * 3_600 + (minute - ahead) * 60 + second)
    return np.where(right, found, np.datetime64("NaT", "s"))
