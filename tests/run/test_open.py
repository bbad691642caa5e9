"""``open`` says what its duration is; ``aggregate`` takes columns named as its own arguments."""

import warnings

import pyarrow as pa
import pytest

import fastwin as fw

WINDOWED = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
SPEC = WINDOWED.aggregate(n=fw.Count())


def test_a_watermark_without_its_name_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"open\('1 s'\): say what that is: open\(watermark='1 s'\)") as told:
        stream = SPEC.open("1 s")
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = SPEC.open(watermark="1 s")
    for one in (stream, named):
        one.process(pa.table({"ts": [5_000]}))
        assert one.watermark == 3_999


@pytest.mark.parametrize(("given", "named"), [(("1 s", "2 s"), {}), (("1 s",), {"watermark": "2 s"})])
def test_two_watermarks_are_refused(given: tuple, named: dict) -> None:
    with pytest.raises(fw.SpecError, match="open: takes one watermark, by its name"):
        SPEC.open(*given, **named)


def test_columns_named_then_and_output() -> None:
    spec = WINDOWED.aggregate(then=fw.Sum("ts"), n=fw.Count(), output=fw.Max("ts"))
    assert spec.run(pa.table({"ts": [5, 6]})).main.select(["n", "then", "output"]).to_pylist() == [
        {"n": 2, "then": 11, "output": 6}
    ]
    with pytest.raises(fw.SpecError, match="then must be a ProcessWindowFunction"):
        WINDOWED.aggregate(n=fw.Count(), then=5, output="n int")


@pytest.mark.parametrize("given", [{"watermark": "1 s"}, {"idle": "1 s"}, {"max_future_skew": "1 s"}])
def test_arguments_of_event_time_are_refused_without_one(given: dict) -> None:
    spec = fw.key_by().processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    (name,) = given
    with pytest.raises(fw.SpecError, match=rf"open: {name}= is about event times, and the spec has no .event_time"):
        spec.open(**given)


def test_another_word_for_a_watermark_is_refused_with_the_right_one() -> None:
    with pytest.raises(fw.SpecError, match=r"watermark: 'monotonic' is no duration; .*, or 'monotonous' where"):
        SPEC.open(watermark="monotonic")
