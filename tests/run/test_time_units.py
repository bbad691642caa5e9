"""int64 event times of another unit than milliseconds: said in the spec, or warned of."""

import warnings
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
SECONDS = [1_704_067_200, 1_704_067_201, 1_704_070_800]
HOUR = fw.TumblingEventTimeWindows.of("1 hour")


def spec(unit: Any = None) -> fw.WindowSpec:
    return fw.key_by("k").event_time("t", unit=unit).window(HOUR).aggregate(n=fw.Count(), f=fw.First("v"))


def table(unit: str, kind: pa.DataType | None = None) -> pa.Table:
    times = pa.array([second * PER_SECOND[unit] for second in SECONDS], pa.int64())
    return pa.table({"k": ["a", "a", "a"], "t": times.cast(kind) if kind else times, "v": [1, 2, 3]})


WANTED = spec().run(table("ms")).main


@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_table_is_read_in_the_unit(unit: str, threads: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spec(unit).run(table(unit), threads=threads).main.equals(WANTED)


@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize("general", [False, True])
def test_a_stream_is_read_in_the_unit(unit: str, general: bool) -> None:
    made = spec(unit).with_pane_info() if general else spec(unit)
    made = made.side_output_late_data()
    stream = made.open("monotonous")
    stream.process(table(unit))
    assert stream.watermark == SECONDS[-1] * 1_000 - 1
    late = stream.process(table(unit).slice(0, 1)).late
    assert late["t"].to_pylist() == [SECONDS[0] * PER_SECOND[unit]]  # as it came


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("unit", ["s", "us"])
def test_a_suspicious_unit_is_warned_of(threads: int, unit: str) -> None:
    with pytest.warns(UserWarning, match=f"event_time 't': .* milliseconds.*unit='{unit}'"):
        spec().run(table(unit), threads=threads)


def test_a_stream_warns_once() -> None:
    stream = spec().open()
    stream.process(table("s").slice(0, 0))
    with pytest.warns(UserWarning, match="event_time 't'"):
        stream.process(table("s"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.process(table("s"))


def test_a_batch_that_a_warning_kept_out_is_counted_once() -> None:
    stream = fw.key_by("k").event_time("t").bad_rows("drop").window(HOUR).aggregate(n=fw.Count()).open()
    data = table("s").slice(0, 1)
    data = pa.concat_tables([data, data.set_column(1, "t", pa.array([None], pa.int64()))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="event_time 't'"):
            stream.process(data)
    assert (stream.metrics.bad, stream.metrics.events) == (0, 0)
    stream.process(data)
    assert (stream.metrics.bad, stream.metrics.events) == (1, 2)


def of_times(*times: int) -> pa.Table:
    return pa.table({"k": ["a"] * len(times), "t": pa.array(times, pa.int64()), "v": [1] * len(times)})


@pytest.mark.parametrize("odd", [0, -1])
@pytest.mark.parametrize("threads", [1, 2])
def test_one_odd_time_does_not_hide_the_unit(odd: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.run.threads._FEW_ROWS", 1)
    with pytest.warns(UserWarning, match="unit='s'") as caught:
        spec().run(of_times(odd, *SECONDS), threads=threads)
    assert [one.filename for one in caught] == [__file__]


def test_a_stream_looks_until_it_knows() -> None:
    stream = spec().open()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.process(of_times(0))
    with pytest.warns(UserWarning, match="unit='s'") as caught:
        stream.process(of_times(SECONDS[0]))
    assert [one.filename for one in caught] == [__file__]
    usual = spec().open()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.process(of_times(SECONDS[1]))
        usual.process(of_times(SECONDS[0] * 1_000))
        usual.process(of_times(SECONDS[0]))


@pytest.mark.parametrize("kind", [None, pa.timestamp("ms")])
def test_usual_times_are_not_warned_of(kind: pa.DataType | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec().run(table("ms", kind))
        spec("ms").run(pa.table({"k": ["a"], "t": [SECONDS[0]], "v": [1]}))  # it says so


def test_a_timestamp_says_its_own_unit() -> None:
    with pytest.raises(
        fw.SpecError, match=r"event_time: unit='us' is for int64, but column 't' is timestamp\[ms\]; leave"
    ):
        spec("us").run(table("ms", pa.timestamp("ms")))


@pytest.mark.parametrize("unit", ["S", "seconds", "m", 1, ""])
def test_a_unit_is_one_of_four(unit: Any) -> None:
    with pytest.raises(fw.SpecError, match="event_time: unit must be one of s, ms, us, ns, got"):
        spec(unit)


def test_instants_lie_within_the_years_that_timestamps_have() -> None:
    far = pa.table({"k": ["a"], "t": [300_000_000_000], "v": [1]})
    with pytest.raises(fw.BadRowError, match=r"outside years 1 to 9999 in row 0 \(value 300000000000 s\)"):
        spec("s").run(far)
    assert spec().run(far).main.num_rows == 1


def test_the_unit_is_part_of_the_fingerprint_where_it_is_none_of_ms() -> None:
    assert spec("ms").fingerprint == spec().fingerprint
    assert len({spec(unit).fingerprint for unit in PER_SECOND}) == 4
    assert "event_time('t', unit='s')" in str(spec("s"))
    assert spec("s").event_time("t") == fw.key_by("k").event_time("t").window(HOUR).aggregate(
        n=fw.Count(), f=fw.First("v")
    )
