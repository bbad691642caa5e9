"""Older versions of Spark: what they lack is refused by a sentence, and what they do otherwise comes to the same."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import Observation
from pyspark.sql import types as T

import fastwin as fw
import spark_glue
from spark_glue.plan import compat
from spark_glue.plan.compat import spark_struct_of
from spark_glue.plan.settings import FORMAT_KEY
from spark_glue.plan.types import arrow_schema, spark_fields
from spark_glue.session import warn_of_format
from tests.support.spark_events import events
from tests.support.spark_streams import assert_same_rows, run_stream

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
    struct = spark_struct_of(schema)
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


@pytest.fixture
def large_types(spark):
    """Spark hands out and takes text and bytes of any size in one batch."""
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(key, "true")
    yield
    spark.conf.unset(key)


WORDS = pa.table({"k": ["a", "b", None, "a"], "ts": [1, 2, None, 3], "v": ["x", None, "y", "z"]})
OF_WORDS = (
    fw.key_by("k")
    .event_time("ts", unit="ms")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("divert")
    .aggregate(least=fw.Min("v"), first=fw.First("several"), one=fw.First("one"))
)


@pytest.mark.parametrize("text", ["4.0.1", "4.3.0"], ids=["at once", "by batches"])
def test_large_types_of_a_group_are_given_back(spark, version, large_types, text):
    version(text)
    rows = WORDS.append_column("several", pa.array([["p"], None, [], ["q", "r"]]))
    rows = rows.append_column("one", pa.array([{"p": "s"}, None, {"p": None}, {"p": "t"}]))
    counted = Observation()
    found = spark_glue.apply(OF_WORDS, spark.createDataFrame(rows), name=counted).toArrow()
    expected = OF_WORDS.run(rows)
    assert found["first"].type.value_type == pa.large_string()
    assert [len(found.filter(found["bad"].is_valid())), counted.get["bad"]] == [1, 1]
    main = found.filter(found["bad"].is_null()).drop_columns(["bad"])
    assert_same_rows(main.cast(expected.main.schema), expected.main)


def test_history_with_large_types(spark, tmp_path, large_types):
    spec = OF_WORDS.bad_rows("drop").aggregate(least=fw.Min("v"))
    later = pa.table({"k": ["a", "b"], "ts": [5, 600_000], "v": ["w", "v"]})
    batches = run_stream(spark, spec, [later], tmp_path, watermark="1 s", history=spark.createDataFrame(WORDS))
    rows = pa.concat_tables([batch.rows for batch in batches])
    assert sorted(zip(rows["k"].to_pylist(), rows["least"].to_pylist(), strict=True)) == [("a", "w"), ("b", None)]


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
