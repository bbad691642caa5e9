"""Late elements fire their whole session, each one: few copies are there at a time, however large they are."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.session.operator import SessionOperator

VALUES, LATE, MOST_BYTES = 5_000, 2_000, 1 << 26


def test_copies_of_large_sessions_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []

    def result(self: Any, rows: Any, slots: Any) -> Any:
        held.append(rows.nbytes)
        return plain(self, rows, slots)

    plain = SessionOperator._results
    spec = fw.key_by().event_time("t", unit="ms").window(fw.EventTimeSessionWindows.with_gap(1_000))
    stream = spec.allowed_lateness("1 day").aggregate(d=fw.CountDistinct("v")).open()
    stream.process(pa.table({"t": [0] * VALUES, "v": range(VALUES)}))
    stream.advance_watermark(10_000)
    monkeypatch.setattr(SessionOperator, "_results", result)
    fired = stream.process(pa.table({"t": [0] * LATE, "v": range(VALUES, VALUES + LATE)})).main
    assert fired["d"].to_pylist() == list(range(VALUES + 1, VALUES + LATE + 1))
    assert max(held) < MOST_BYTES
