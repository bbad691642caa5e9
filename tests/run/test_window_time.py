"""``with_window_time``: the last millisecond of each window in a column, whatever runs the spec."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw

TABLE = pa.table({"k": ["a", "b", "a"], "ts": pa.array([5, 11, 25], pa.timestamp("ms", "UTC")), "v": [1, 2, 3]})
KEYED = fw.key_by("k").event_time("ts")
SPECS = {
    "aligned": KEYED.window(fw.TumblingEventTimeWindows.of(10)),
    "session": KEYED.window(fw.EventTimeSessionWindows.with_gap(8)),
    "general": KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.CountTrigger.of(1)).with_pane_info(),
    "several": KEYED.windows(a=fw.TumblingEventTimeWindows.of(10), b=fw.TumblingEventTimeWindows.of(20)),
}


@pytest.mark.parametrize("name", SPECS)
def test_it_is_the_last_millisecond(name: str) -> None:
    plain = SPECS[name].aggregate(n=fw.Count())
    spec = SPECS[name].with_window_time().aggregate(n=fw.Count())
    main = spec.run(TABLE).main
    assert main.drop_columns("window_time").equals(plain.run(TABLE).main)
    apart = pc.subtract(main["window_end"].cast(pa.int64()), main["window_time"].cast(pa.int64()))
    assert set(apart.to_pylist()) == {1}
    assert main.column_names[main.column_names.index("window_end") + 1] == "window_time"
    assert fw.plan(spec, TABLE.schema).main_schema == main.schema
    stream = spec.open()
    assert stream.advance_watermark(0).main.column_names == main.column_names
    stream.process(TABLE)
    restored = plain.open()
    restored.restore(stream.snapshot())  # the state is the same


def test_global_windows_have_none() -> None:
    spec = fw.key_by("k").count_window(1).with_window_time().aggregate(n=fw.Count())
    assert spec.run(TABLE).main["window_time"].null_count == 3


def test_results_as_elements_of_the_next_windows() -> None:
    """Those that fire on time are in time; a late firing comes once more, or late; one without a time is a bad row."""
    first = SPECS["aligned"].allowed_lateness(1_000).with_window_time().aggregate(n=fw.Count()).open()
    then = fw.key_by().event_time("window_time").side_output_late_data().bad_rows("divert")
    then = then.window(fw.TumblingEventTimeWindows.of(20)).aggregate(total=fw.Sum("n"))
    second = then.open()

    def step(result: fw.Result, time: int) -> list[tuple[list, int]]:
        fired = [second.process(result.main), second.advance_watermark(time)]
        return [
            (one.main["total"].to_pylist(), one.late.num_rows) for one in fired if one.main.num_rows + one.late.num_rows
        ]

    first.process(TABLE)
    assert step(first.advance_watermark(9), 9) == []
    assert step(first.process(TABLE.slice(0, 1)), 9) == []  # the window of "a" once more, with both of its elements
    assert step(first.advance_watermark(19), 19) == [([1 + 2 + 1], 0)]
    assert step(first.process(TABLE.slice(1, 1)), 19) == [([], 1)]
    none = fw.key_by("k").count_window(1).with_window_time().aggregate(n=fw.Count()).run(TABLE).main
    assert (then.run(none).bad.num_rows, then.run(none).main.num_rows) == (3, 0)


def test_on_threads() -> None:
    n = 120_000
    table = pa.table({"k": np.arange(n) % 7, "ts": np.arange(n)})
    spec = SPECS["aligned"].with_window_time().aggregate(n=fw.Count())
    assert spec.run(table, threads=2).main.schema == spec.run(table).main.schema


def test_the_name_is_taken() -> None:
    with pytest.raises(fw.SpecError, match="'window_time' is taken"):
        SPECS["aligned"].with_window_time().aggregate(window_time=fw.Count())
    keyed = fw.key_by("window_time").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    with pytest.raises(fw.SpecError, match="with_window_time: 'window_time' is the name of a result column"):
        keyed.with_window_time().aggregate(n=fw.Count())
