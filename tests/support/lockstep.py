"""Holds a stream to the naive model: the same steps, the same answers after each."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fastwin.run.results import Result
from fastwin.run.stream import Stream
from tests.support import naive

__all__ = ["Lockstep", "assert_empty", "assert_rows_agree", "emitted", "main_rows", "plain", "step"]

COUNTERS = ("events", "bad", "late", "num_late_records_dropped", "unassigned", "fired")


def plain(value: Any) -> Any:
    """A value that equals what it should equal: one NaN, one zero."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def main_rows(main: pa.Table, key_count: int) -> list[tuple]:
    """Result rows as ``(key, start, end, values)``; a key is a tuple, bounds are ms."""
    columns = [
        column.cast(pa.int64()) if name in ("window_start", "window_end") else column
        for name, column in zip(main.column_names, main.columns, strict=True)
    ]
    lists = [[plain(value) for value in column.to_pylist()] for column in columns]
    return [
        (row[:key_count], row[key_count], row[key_count + 1], row[key_count + 2 :]) for row in zip(*lists, strict=True)
    ]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-12 * max(abs(a), abs(b))
    return a == b and (a is None) == (b is None)


def _row_alike(a: tuple, b: tuple) -> bool:
    return a[:3] == b[:3] and all(map(_alike, a[3], b[3]))


def _order(row: tuple) -> str:
    return repr((*row[:3], [round(value, 6) if isinstance(value, float) else value for value in row[3]]))


def assert_rows_agree(got: Sequence[tuple], wanted: Sequence[tuple], what: str = "") -> None:
    """Rows are the same but for their order and the last digits of floats."""
    assert len(got) == len(wanted), f"{what}: {len(got)} rows, the model has {len(wanted)}"
    theirs = {row[:3]: row for row in wanted}
    if len(theirs) == len(wanted):
        pairs = [(mine, theirs.get(mine[:3])) for mine in got]
        assert len({mine[:3] for mine in got}) == len(got), f"{what}: a (key, window) is there twice"
    else:
        pairs = list(zip(sorted(got, key=_order), sorted(wanted, key=_order), strict=True))
    for mine, other in pairs:
        assert other is not None and _row_alike(mine, other), f"{what}: got {mine}, the model has {other}"


def emitted(emissions: Sequence[naive.Emission]) -> list[tuple]:
    """Emissions of the model in the shape of main_rows()."""
    return [(e.key, e.start, e.end, tuple(map(plain, e.values))) for e in emissions]


class Lockstep:
    """A stream and a model, stepped together. The input's column ``id`` numbers the rows."""

    def __init__(self, stream: Stream, model: naive.Model, key_count: int) -> None:
        self.stream, self.model, self.key_count = stream, model, key_count
        self._base = dict.fromkeys(COUNTERS, 0)

    def batch(self, table: Any, rows: list[naive.Row]) -> Result:
        result = self.stream.process(table)
        self._compare(result, self.model.batch(rows))
        return result

    def advance(self, watermark: int) -> Result:
        result = self.stream.advance_watermark(watermark)
        self._compare(result, self.model.advance(watermark))
        return result

    def restored(self, stream: Stream) -> None:
        """Goes on with another stream that has been restored: its counters have started over."""
        assert stream.watermark == self.model.watermark
        self._base = self._model_counters()
        self.stream = stream
        self._compare_state()

    def _model_counters(self) -> dict[str, int]:
        model = self.model
        values = (model.events, model.bad, model.late, model.dropped, model.unassigned, model.fired)
        return dict(zip(COUNTERS, values, strict=True))

    def _compare(self, result: Result, fed: naive.Fed) -> None:
        got = main_rows(result.main, self.key_count) if result.main.num_columns else []
        assert len(got) == len(fed.emissions), f"{got} instead of {emitted(fed.emissions)}"
        at = 0
        for group in fed.groups():
            assert_rows_agree(got[at : at + len(group)], emitted(group), f"rows {at} to {at + len(group)}")
            at += len(group)
        if "id" in result.late.column_names:
            assert result.late["id"].to_pylist() == fed.late
        if "id" in result.bad.column_names and result.bad.num_rows:
            assert result.bad["id"].to_pylist() == fed.bad
        self._compare_state()

    def _compare_state(self) -> None:
        self.stream._check_invariants()
        metrics, model = self.stream.metrics, self.model
        counters = {name: value - self._base[name] for name, value in self._model_counters().items()}
        assert {name: getattr(metrics, name) for name in COUNTERS} == counters
        assert metrics.watermark == self.stream.watermark == model.watermark
        assert metrics.open_windows == len(model.contents)
        assert (metrics.state_rows == 0) == (not model.contents)
        if isinstance(model.windows, naive.Sessions) or (
            isinstance(model.windows, naive.Sliding) and model.windows.size <= model.windows.slide
        ):
            assert metrics.state_rows == len(model.contents)
        first = self.stream.next_timer()
        assert (first is None) == (not model.timers)
        fires = [time for time, _, window in model.timers if time == window.end - 1]
        assert not fires or first <= min(fires)


def step(pair: Lockstep, kind: str, argument: Any, rows: list | None) -> None:
    if kind == "batch":
        pair.batch(argument, rows)
    else:
        pair.advance(argument)


def assert_empty(stream: Stream) -> None:
    """After all windows are cleaned, not a byte about a key is left."""
    if stream._operator is None:
        return
    stream.delta()  # keys of sessions that a chunk may have to call removed are kept until it has
    assert stream.metrics.state_rows == stream.metrics.open_windows == 0
    assert len(stream._operator._keys) == 0
    stream._check_invariants()
