"""One Spark session for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.jvm import COMPILED, UNCOMPILED
from tests.support.spark_events import TIME_ZONE

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that asks for the session."""
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tests' own folder for copies of state; Spark's workers inherit it."""
    from spark_glue.state.folders import ROOT_VARIABLE

    folder = tmp_path_factory.mktemp("copies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ROOT_VARIABLE, str(folder))
        yield folder


@pytest.fixture(scope="session")
def spark(cache_folder: Path) -> Iterator:
    """A session as users get it, on two cores, and quiet."""
    import spark_glue

    built = spark_glue.session(
        app_name="fastwin tests",
        master="local[2]",
        config={
            "spark.sql.session.timeZone": TIME_ZONE,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.streaming.numRecentProgressUpdates": 1000,
            "spark.sql.adaptive.enabled": False,
        }
        | UNCOMPILED,
    )
    built.sparkContext.setLogLevel("OFF")  # failed queries are part of the tests
    yield built
    built.stop()


@pytest.fixture
def limited(spark, compiled) -> Iterator[None]:
    """Spark's own limit of bytes in a batch, with which columns reach Python sooner than rows, where Spark compiles."""
    from spark_glue.plan.settings import BATCH_BYTES_KEY

    before = spark.conf.get(BATCH_BYTES_KEY)
    spark.conf.set(BATCH_BYTES_KEY, "64m")
    yield
    spark.conf.set(BATCH_BYTES_KEY, before)


@pytest.fixture
def adaptive(spark):
    """Spark's own default: plans change while they run."""
    key = "spark.sql.adaptive.enabled"
    before = spark.conf.get(key)
    spark.conf.set(key, "true")
    yield
    spark.conf.set(key, before)


@pytest.fixture
def compiled(spark):
    """Spark compiles what it runs, as it does for users."""
    before = {key: spark.conf.get(key) for key in COMPILED}
    for key, value in COMPILED.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)
