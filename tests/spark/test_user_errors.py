"""Errors in user code on Spark: the very sentence that this process says, with function, key and window."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException, StreamingQueryException

import fastwin as fw
import spark_glue
from tests.support.spark_streams import run_stream
from tests.support.user_errors import BASE, COUNT, RUNNING, TUMBLING, Answers, Failing
from tests.support.variants import variants

ROWS = pa.table({"k": ["a"] * 2, "ts": pa.array([1, 2], pa.timestamp("ms", tz="UTC")), "v": [1, 2]})
FAILING = [spec for spec, names, _ in RUNNING if names is not None]


def sentence(spec: fw.WindowSpec) -> str:
    with pytest.raises(fw.FastwinError) as caught:
        spec.run(ROWS)
    return without_addresses(f"fastwin.errors.{type(caught.value).__name__}: {caught.value}")


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]+", "0x", text)


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(ROWS, folder / "rows.parquet")
    return spark.read.parquet(str(folder))


@pytest.mark.parametrize("i", range(len(FAILING)))
def test_batch_frame_says_what_run_says(rows, i):
    with pytest.raises(PythonException) as caught:
        spark_glue.apply(FAILING[i], rows, key_groups=1).collect()
    assert sentence(FAILING[i]) in without_addresses(str(caught.value))


STREAMS = {
    "answer of a trigger": TUMBLING.trigger(Answers(None)).aggregate(**COUNT),
    "at the end of a window": TUMBLING.process(Failing(), output="n int"),
    "windows without an end": BASE.window(fw.GlobalWindows.create()).trigger(fw.EventTimeTrigger()).aggregate(**COUNT),
}


@pytest.mark.parametrize("case", variants(STREAMS, "at the end of a window"))
def test_stream_says_what_run_says(spark, tmp_path, case):
    later = ROWS.set_column(1, "ts", pa.array([1_000, 2_000], pa.timestamp("ms", tz="UTC")))
    says = sentence(STREAMS[case])
    with pytest.raises(StreamingQueryException) as caught:
        run_stream(spark, STREAMS[case], [ROWS, later], tmp_path, watermark="0 s", key_groups=1)
    assert says in without_addresses(str(caught.value))
