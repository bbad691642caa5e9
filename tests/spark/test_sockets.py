"""Unix domain sockets between Spark's JVM and its Pythons: where there are any, and what is left of them."""

import os
import stat
import tempfile

import pyspark
import pytest
from pyspark.sql import functions as F

import spark_glue.sockets
from spark_glue.plan.compat import has_unix_sockets
from spark_glue.sockets import unix_sockets

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"
needs_them = pytest.mark.skipif(not has_unix_sockets(), reason=f"Spark {pyspark.__version__} has none")


@needs_them
@pytest.mark.parametrize("master", [None, "local", "local[3]"])
def test_local_mode_has_them(master):
    settings = unix_sockets({} if master is None else {"spark.master": master}, {})
    assert settings[ENABLED] == "true"
    assert stat.S_IMODE(os.stat(settings[FOLDER]).st_mode) == 0o700, "others could talk to a worker"
    assert unix_sockets({}, {}) == settings, "one folder is enough for a process"


@pytest.mark.parametrize(
    ("wanted", "environment"),
    [
        ({"spark.master": "spark://host:7077"}, {}),
        ({"spark.master": "yarn"}, {}),
        ({ENABLED: "false"}, {}),
        ({}, {"PYSPARK_UDS_MODE": "false"}),
        ({}, {"MASTER": "yarn"}),
        ({}, {"PYSPARK_GATEWAY_PORT": "25333"}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}),
        ({"spark.master": "local"}, {"PYSPARK_SUBMIT_ARGS": f"--conf {ENABLED}=false pyspark-shell"}),
    ],
)
def test_where_nothing_is_said(wanted, environment):
    """Elsewhere the machines of a cluster would look for a folder of this one, or somebody has chosen."""
    assert unix_sockets(wanted, environment) == {}


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR"])
def test_an_installation_with_settings_of_its_own(tmp_path, variable):
    folder = tmp_path / "conf"
    folder.mkdir()
    environment = {variable: str(tmp_path if variable == "SPARK_HOME" else folder)}
    assert bool(unix_sockets({}, environment)) == has_unix_sockets()
    (folder / "spark-defaults.conf").write_text("spark.master yarn\n")
    assert unix_sockets({}, environment) == {}


def test_no_sockets_below_a_long_path(tmp_path, monkeypatch):
    """The system allows a socket's path 104 bytes, and Spark refuses a folder of more than 61."""
    deep = tmp_path / ("deep" * 15)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert unix_sockets({}, {}) == {}
    assert not list(deep.iterdir())


@needs_them
def test_a_folder_of_the_users():
    assert unix_sockets({FOLDER: "/run/mine"}, {}) == {ENABLED: "true", FOLDER: "/run/mine"}


@needs_them
def test_a_system_without_them(monkeypatch):
    monkeypatch.delattr(spark_glue.sockets.socket, "AF_UNIX")
    assert unix_sockets({}, {}) == {}


@needs_them
def test_sockets_of_ended_tasks_are_gone(spark):
    """All that a session keeps are the sockets of its accumulators and of its daemons."""
    folder = spark.sparkContext.getConf().get(FOLDER)

    def same(batches):
        yield from batches

    def ask() -> int:
        spark.range(0, 64, 1, 8).withColumn("id", F.col("id") + 0).mapInArrow(same, "id long").count()
        return len(os.listdir(folder))

    assert ask() == ask() <= 8
