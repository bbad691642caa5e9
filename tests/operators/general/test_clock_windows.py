"""Windows of processing time in a stream: they fire when the clock is told to have passed their end."""

import pyarrow as pa

import fastwin as fw


def test_cumulative_windows_of_the_clock() -> None:
    windows = fw.CumulativeProcessingTimeWindows.of(100, 50)
    spec = fw.key_by("k").processing_time().window(windows).aggregate(n=fw.Count())
    table = pa.table({"k": ["a", "b"]})
    stream = spec.open(schema=table.schema)

    def fired(time: int) -> list[tuple]:
        main = stream.advance_processing_time(time).main
        bounds = (main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end"))
        return sorted(zip(main["k"].to_pylist(), *bounds, main["n"].to_pylist(), strict=True))

    assert fired(20) == []
    stream.process(table)
    assert fired(48) == []
    assert fired(49) == [("a", 0, 50, 1), ("b", 0, 50, 1)]
    assert fired(60) == []
    stream.process(table.slice(0, 1))
    assert fired(99) == [("a", 0, 100, 2), ("b", 0, 100, 1)]
    assert stream.next_processing_timer() is None
    assert stream.metrics.state_rows == 0
