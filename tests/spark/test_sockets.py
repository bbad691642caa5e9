"""Unix domain sockets between Spark's JVM and its Pythons: where there are any, and what is left of them."""

import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import types

import pyspark
import pytest
from pyspark.sql import functions as F

import spark_glue.sockets
from spark_glue.plan.compat import has_unix_sockets
from spark_glue.sockets import end_quietly, end_quietly_here, unix_sockets
from tests.support.until import until

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"
needs_them = pytest.mark.skipif(not has_unix_sockets(), reason=f"Spark {pyspark.__version__} has none")


def settings(wanted: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_glue.sockets, "_delete_with_spark", os.rmdir)
        with unix_sockets(wanted, environment) as found:
            return found


@needs_them
@pytest.mark.parametrize("master", [None, "local", "local[3]"])
def test_local_mode_has_them(monkeypatch, master):
    kept = []
    monkeypatch.setattr(spark_glue.sockets, "_delete_with_spark", kept.append)
    with unix_sockets({} if master is None else {"spark.master": master}, {}) as found:
        assert found[ENABLED] == "true"
        assert stat.S_IMODE(os.stat(found[FOLDER]).st_mode) == 0o700, "others could talk to a worker"
    assert kept == [found[FOLDER]]
    os.rmdir(found[FOLDER])


def test_a_worker_that_spark_has_left_is_no_traceback():
    """Where an idle worker is ended, it has still something to say, which nobody reads."""

    def closed(sock, authenticated):
        raise BrokenPipeError(32, "Broken pipe")

    daemon = types.ModuleType("pyspark.daemon")
    for work, code in ((closed, 1), (lambda sock, authenticated: 0, 0)):
        daemon.worker = work
        end_quietly(daemon)
        assert daemon.worker(None, True) == code
    end_quietly_here()  # this process is no daemon


@needs_them
def test_spark_does_not_start():
    folders = []

    def start() -> None:
        with unix_sockets({}, {}) as found:
            folders.append(found[FOLDER])
            assert os.path.isdir(folders[0])
            raise RuntimeError("no Java")

    with pytest.raises(RuntimeError, match="no Java"):
        start()
    assert not os.path.exists(folders[0])


@pytest.mark.parametrize(
    ("wanted", "environment"),
    [
        ({"spark.master": "spark://host:7077"}, {}),
        ({"spark.master": "yarn"}, {}),
        ({ENABLED: "false"}, {}),
        ({"spark.python.daemon.module": "mine"}, {}),
        ({}, {"PYSPARK_PYTHON": "/usr/bin/other"}),
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
    assert settings(wanted, environment) == {}


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR"])
def test_an_installation_with_settings_of_its_own(tmp_path, variable):
    folder = tmp_path / "conf"
    folder.mkdir()
    environment = {variable: str(tmp_path if variable == "SPARK_HOME" else folder)}
    assert bool(settings({}, environment)) == has_unix_sockets()
    (folder / "spark-defaults.conf").write_text("spark.master yarn\n")
    assert settings({}, environment) == {}


def test_no_sockets_below_a_long_path(tmp_path, monkeypatch):
    """The system allows a socket's path 104 bytes, and Spark refuses a folder of more than 61."""
    deep = tmp_path / ("deep" * 15)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert settings({}, {}) == {}
    assert not list(deep.iterdir())


@needs_them
def test_a_folder_of_the_users():
    assert settings({FOLDER: "/run/mine"}, {}) == {ENABLED: "true"}


@needs_them
def test_a_system_without_them(monkeypatch):
    monkeypatch.delattr(spark_glue.sockets.socket, "AF_UNIX")
    assert settings({}, {}) == {}


@needs_them
def test_sockets_of_ended_tasks_are_gone(spark):
    """What a session keeps are the sockets of its accumulators, daemons and sources, and none of a task."""
    folder = spark.sparkContext.getConf().get(FOLDER)

    def same(batches):
        yield from batches

    def ask() -> int:
        spark.range(0, 64, 1, 8).withColumn("id", F.col("id") + 0).mapInArrow(same, "id long").count()
        return len(os.listdir(folder))

    first = ask()
    assert max(ask() for _ in range(3)) <= first


@needs_them
@pytest.mark.long
def test_the_folder_of_a_killed_program_is_deleted():
    program = textwrap.dedent(f"""
        import os, signal, spark_glue
        spark = spark_glue.session(master="local[1]")
        assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
        print(spark.sparkContext.getConf().get({FOLDER!r}), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    folder = ended.stdout.strip()
    assert folder, ended.stderr
    until(lambda: not os.path.exists(folder))
