"""Parameters of requests: checked and bounded before anything is read from the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from fastwin.errors import SpecError
from fastwin.store import Layout
from fastwin.times import format_ms, to_ms

__all__ = ["MAX_KEYS", "MAX_POINTS", "MAX_ROWS", "CurrentRequest", "KeysRequest", "RequestError", "SeriesRequest"]

MAX_KEYS = 50
"""Keys that one request may name."""

MAX_POINTS = 2_000
"""Points of a series."""

MAX_ROWS = 1_000
"""Rows of the current figures."""

_MAX_LISTED = 10_000
_MAX_VALUES = 50_000
_MAX_TEXT = 1_100
_POINTS = 480

Query = Mapping[str, Sequence[str]]


class RequestError(Exception):
    """A request that cannot be answered: an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class CurrentRequest:
    """The aggregates of one window. keys: as text; None: all. window_ms. end_ms: None: the watermark. limit: rows; it
    is no part of the question, as it is cut out of one answer. sort: the aggregate whose highest value comes first;
    None: none can be sorted by."""

    keys: tuple[str, ...] | None
    window_ms: int
    end_ms: int | None
    limit: int = field(compare=False)
    sort: str | None

    @classmethod
    def of(cls, query: Query, layout: Layout) -> "CurrentRequest":
        """Returns the request of a query string. Raises RequestError."""
        _check_names(query, ("key", "window", "end", "limit", "sort"))
        limit = _int(query, "limit", 200, 1, MAX_ROWS)
        assert limit is not None
        return cls(_keys(query), _window(query, layout), _time(query, "end"), limit, _sort(query, layout))


@dataclass(frozen=True)
class KeysRequest:
    """Known keys in the order of their text. limit: how many. after: the text that they come behind; None: none."""

    limit: int
    after: str | None

    @classmethod
    def of(cls, query: Query) -> "KeysRequest":
        """Returns the request of a query string. Raises RequestError."""
        _check_names(query, ("limit", "after"))
        limit = _int(query, "limit", _MAX_LISTED, 1, _MAX_LISTED)
        assert limit is not None
        return cls(limit, query["after"][0] if "after" in query else None)


@dataclass(frozen=True)
class SeriesRequest:
    """Windows that end every ``step_ms`` within ``range_ms`` before ``end_ms``; None: the watermark."""

    keys: tuple[str, ...]
    window_ms: int
    range_ms: int
    step_ms: int
    end_ms: int | None

    @classmethod
    def of(cls, query: Query, layout: Layout) -> "SeriesRequest":
        """Returns the request of a query string. Raises RequestError."""
        _check_names(query, ("key", "window", "range", "step", "end", "start"))
        keys = _keys(query) if layout.keys or "key" in query else ("",)  # without columns there is one key
        if not keys:
            raise RequestError(400, f"key: name 1 to {MAX_KEYS} keys, such as key=home.")
        window, end = _window(query, layout), _time(query, "end")
        start = _time(query, "start")
        if start is None:
            length = _duration(query, "range", layout.window_ms, layout)
        else:
            if end is None or "range" in query:
                raise RequestError(400, "start: goes with end, and without range.")
            if end <= start:
                raise RequestError(400, f"end: must be after start, got start={start} end={end}.")
            length = _checked(end - start, "end - start", layout)
        step = _duration(query, "step", _default_step(length, layout), layout)
        if length % step:
            raise RequestError(400, f"step: {format_ms(step)} does not divide the range, {format_ms(length)}.")
        if length // step > MAX_POINTS:
            raise RequestError(
                400, f"step: at most {MAX_POINTS} points, got {length // step}; take a longer step or a shorter range."
            )
        if (values := len(keys) * (length // step)) > _MAX_VALUES:
            raise RequestError(
                400,
                f"key: at most {_MAX_VALUES:,} points of all keys together, got {values:,}; name fewer keys, or take a "
                f"longer step or a shorter range.",
            )
        return cls(keys, window, length, step, end)


def _sort(query: Query, layout: Layout) -> str | None:
    names = [output.name for output in layout.outputs if _can_sort(layout.output_type(output))]
    if "sort" not in query:
        return names[0] if names else None
    if query["sort"][0] not in names:
        known = f"must be one of {', '.join(names)}" if names else "no aggregate here has an order"
        raise RequestError(400, f"sort: {known}, got {_shown(query['sort'][0])}.")
    return query["sort"][0]


def _can_sort(kind: pa.DataType) -> bool:
    tests = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)
    return not any(test(kind) for test in tests)


def _default_step(length: int, layout: Layout) -> int:
    """Returns the shortest step that divides the range, on one of the two grids, and gives not too many points."""
    for step in (layout.pane_ms, layout.coarse_ms or layout.pane_ms):
        if length % step == 0 and length // step <= _POINTS:
            return step
    panes = length // layout.pane_ms
    return length // next(points for points in range(min(panes, _POINTS), 0, -1) if panes % points == 0)


def _check_names(query: Query, known: tuple[str, ...]) -> None:
    for name, values in query.items():
        if name not in known:
            raise RequestError(400, f"{_shown(name)}: is no parameter here; known are {', '.join(known)}.")
        if name != "key" and len(values) > 1:
            raise RequestError(400, f"{name}: is given {len(values)} times.")
        if any(len(value) > _MAX_TEXT for value in values):
            raise RequestError(400, f"{name}: is longer than {_MAX_TEXT} characters.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _keys(query: Query) -> tuple[str, ...] | None:
    keys = query.get("key")
    if keys is None:
        return None
    if len(keys) > MAX_KEYS:
        raise RequestError(400, f"key: at most {MAX_KEYS} in one request, got {len(keys)}.")
    return tuple(dict.fromkeys(keys))


def _int(query: Query, name: str, default: int | None, least: int = -(2**53), most: int = 2**53) -> int | None:
    if name not in query:
        return default
    text = query[name][0]
    try:
        value = int(text) if len(text) <= 20 and text.isascii() else None
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        bounds = f" from {least} to {most}" if least > -(2**53) else ""
        raise RequestError(400, f"{name}: must be a whole number{bounds}, got {_shown(text)}.")
    return value


def _time(query: Query, name: str) -> int | None:
    """Returns a time, ms: a number of ms, or a date and time, in UTC where it names no zone."""
    if name not in query:
        return None
    text = query[name][0]
    if text.removeprefix("-").isdecimal():
        return _int(query, name, None)
    # A plus that was not escaped has become a space.
    for form in (text, "+".join(text.rsplit(" ", 1))):
        try:
            moment = datetime.fromisoformat(form if len(form) <= 40 else "")
        except ValueError:
            continue
        since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(milliseconds=1)
    raise RequestError(
        400,
        f"{name}: must be a whole number of ms since 1970, or a time such as 2015-05-20 or 2015-05-20T10:30Z, got "
        f"{_shown(text)}.",
    )


def _window(query: Query, layout: Layout) -> int:
    return _duration(query, "window", layout.window_ms, layout)


def _duration(query: Query, name: str, default: int, layout: Layout) -> int:
    if name not in query:
        return default
    try:
        length = to_ms(query[name][0], argument=name)
    except SpecError as problem:
        raise RequestError(400, f"{problem}.") from None
    return _checked(length, name, layout)


def _checked(length: int, name: str, layout: Layout) -> int:
    if length < 1 or length % layout.pane_ms:
        raise RequestError(
            400, f"{name}: must be a multiple of a pane, {format_ms(layout.pane_ms)}, got {format_ms(length)}."
        )
    if length > layout.retention_ms:
        raise RequestError(
            400,
            f"{name}: at most {format_ms(layout.retention_ms)}, as long as panes are kept, got {format_ms(length)}.",
        )
    return length
