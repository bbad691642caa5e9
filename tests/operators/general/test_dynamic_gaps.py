"""Gaps that are in a column are read without a call into Python for each element, also in processing time."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw


@pytest.mark.parametrize("assigner", [fw.EventTimeSessionWindows, fw.ProcessingTimeSessionWindows])
def test_a_gap_in_a_column_is_no_call(assigner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = assigner.with_dynamic_gap("gap")

    def refuse(*_: Any) -> None:
        raise AssertionError("asked in Python")

    monkeypatch.setattr(type(windows), "assign_windows", refuse)
    spec = fw.key_by("k")
    if assigner is fw.EventTimeSessionWindows:
        spec = spec.event_time("t", unit="ms")
    stream = spec.window(windows).aggregate(n=fw.Count()).open()
    stream.process(pa.table({"k": [1, 1], "t": [0, 3], "gap": [5, 9]}))
    results = [stream.advance_watermark(11), stream.advance_processing_time(9)]
    assert [n for result in results for n in result.main["n"].to_pylist()] == [2]
