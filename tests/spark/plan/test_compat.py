"""Older versions of Spark: what they lack is refused by a sentence, and what they do otherwise comes to the same."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import types as T

import fastwin as fw
import spark_glue
from spark_glue.plan import compat
from spark_glue.plan.catalyst import FORMAT_KEY
from spark_glue.plan.types import arrow_schema, spark_fields, spark_struct
from spark_glue.session import warn_of_format
from tests.support.spark_events import events
from tests.support.spark_streams import assert_same_rows

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("divert")
    .aggregate(n=fw.Count(), s=fw.Sum("v"))
)


@pytest.fixture
def version(monkeypatch):
    """Makes Spark say that it is another version."""

    def set_version(text: str) -> None:
        monkeypatch.setattr(pyspark, "__version__", text)
        monkeypatch.setattr(compat, "_HERE", compat._version(text))

    return set_version


class ConnectSession:
    """Stands for a session of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, version: str) -> None:
        self.version = version


def test_spark_3_is_refused_at_import():
    code = "import pyspark; pyspark.__version__ = '3.5.9'; import spark_glue"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: spark_glue needs Spark 4.0 or newer, which has transformWithState for Python, and this is Spark "
        "3.5.9: pip install 'pyspark>=4.0,<5'; fastwin itself needs no Spark"
    )


def test_a_thread_of_its_own_knows_the_session(spark):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(compat.current_session).result() is spark


def test_versions_of_snapshots_are_read():
    assert compat._version("4.2.0.dev3") == (4, 2)


def test_a_type_that_a_version_lacks_is_named_with_it(version):
    time = pa.schema([("at", pa.time64("us"))])
    if hasattr(T, "TimeType"):
        assert isinstance(spark_fields(time, "output")[0].dataType, T.TimeType)
    version("4.0.5")
    assert compat.lacking(pa.time64("us")) == "which Spark 4.0.5 has not: TIME came with Spark 4.1"
    assert compat.lacking(pa.uint16()) == "which Spark has not"


def test_timestamps_with_and_without_a_zone_stay_so():
    schema = pa.schema(
        [("a", pa.timestamp("us", tz="UTC")), ("b", pa.timestamp("us")), ("c", pa.list_(pa.timestamp("us")))]
    )
    struct = spark_struct(schema)
    assert [type(field.dataType) for field in struct][:2] == [T.TimestampType, T.TimestampNTZType]
    assert isinstance(struct["c"].dataType.elementType, T.TimestampNTZType)
    assert arrow_schema(struct).types[:2] == schema.types[:2]


def test_a_group_at_once_gives_what_batches_give(spark, version):
    table = events(3, 500, null_times=0.1)
    expected = SPEC.run(table)
    version("4.0.5")
    found = spark_glue.apply(SPEC, spark.createDataFrame(table), key_groups=3).toArrow()
    assert_same_rows(found.filter(pa.compute.is_null(found["bad"])).drop_columns(["bad"]), expected.main)
    assert found.num_rows - expected.main.num_rows == expected.bad.num_rows > 0


def test_a_group_at_once_may_give_nothing(spark, version):
    table = events(3, 20)
    table = table.set_column(table.column_names.index("ts"), "ts", pa.nulls(20, table["ts"].type))
    spec = SPEC.bad_rows("drop")
    version("4.0.5")
    assert spark_glue.apply(spec, spark.createDataFrame(table), key_groups=3).toArrow().num_rows == 0


def test_scans_are_rows_for_a_version_without_columnar_input(version):
    version("4.1.4")
    assert not compat.has_columnar_input()
    version("4.3.0")
    assert compat.has_columnar_input()


def test_the_second_format_of_4_0_is_warned_of(version):
    session = SimpleNamespace(version="4.0.5", conf={FORMAT_KEY: "2"})
    version("4.0.5")
    assert compat.checkpoint_format(session) == "1"
    with pytest.warns(
        UserWarning, match=r"is 2: what Spark 4\.0\.5 writes in it can be read by no newer Spark; set it to 1"
    ):
        warn_of_format(session)
    version("4.1.0")
    assert compat.checkpoint_format(session) == "2"
    assert compat.checkpoint_format(ConnectSession("4.0.1")) == "1"


@pytest.mark.parametrize(
    ("client", "server", "runs"),
    [("4.1.0", "4.3.0", True), ("4.0.5", "4.3.0", False), ("4.3.0", "4.0.5", False), ("4.3.0", "4.1.0", True)],
)
def test_streams_over_connect_need_both_sides_to_have_them(version, client, server, runs):
    version(client)
    if runs:
        compat.check_streams(ConnectSession(server))
        return
    with pytest.raises(fw.SpecError, match=f"need Spark 4.1 or newer on both.*client is {client}, the server {server}"):
        compat.check_streams(ConnectSession(server))


def test_a_classic_session_has_streams_in_every_version(version):
    version("4.0.0")
    compat.check_streams(SimpleNamespace(version="4.0.0"))


def test_only_an_observation_is_one():
    assert compat.is_observation(pyspark.sql.Observation("a"))
    assert not compat.is_observation("a")
