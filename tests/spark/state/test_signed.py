"""A key in the executors' environment signs what a query keeps, and refuses what another has written."""

import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, start

VARIABLE = "FASTWIN_STATE_KEY"
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 hour"))
    .bad_rows("drop")
    .aggregate(n=fw.Count())
)


@pytest.fixture
def signed_with(spark, monkeypatch):
    """Sets the key of the workers that start from here on; None: none."""

    def set_to(key: str | None) -> None:
        if key is None:
            monkeypatch.delitem(spark.sparkContext.environment, VARIABLE, raising=False)
        else:
            monkeypatch.setitem(spark.sparkContext.environment, VARIABLE, key)

    return set_to


@pytest.mark.long
@pytest.mark.slow
def test_a_query_goes_on_with_its_key_alone(spark, tmp_path, signed_with):
    made = Source(tmp_path, events(0, 1).schema)
    recorder = Recorder()

    def run(number: int) -> None:
        made.put(events(number, 200, start_ms=START_MS + number * 60_000, span_ms=60_000))
        frame = spark_glue.apply(SPEC, made.frame(spark), watermark="1 second")
        start(frame, tmp_path, recorder, available_now=True).awaitTermination()

    signed_with("a secret of the tests")
    run(0)
    for key, told in ((None, "it is signed"), ("quite another secret", "no key in FASTWIN_STATE_KEY has signed it")):
        signed_with(key)
        with pytest.raises(StreamingQueryException, match=told):
            run(1)
    signed_with("quite another secret,a secret of the tests")
    run(2)
    assert max(recorder.tables) >= 1
