"""session(class_archive=): a JVM writes its classes when it ends, and the next one reads them."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import fastwin as fw
import spark_glue
from spark_glue.classarchive import archive_options, archived_classes
from tests.support.spark_submit import ROOT

PROGRAM = """
import spark_glue
spark = spark_glue.session(master="local[1]", class_archive="classes")
options = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
print("\\nOPTION", *[option for option in options if "jsa" in option])
"""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


def option_for(folder: Path | str, environment: Mapping[str, str] | None = None) -> str:
    options = archive_options(folder, environment)
    assert options is not None
    return options.split()[0]


def archive_in(folder: Path) -> Path:
    option = option_for(folder)
    assert option.startswith("-XX:ArchiveClassesAtExit=")
    return Path(option.partition("=")[2])


def test_what_is_not_there_is_written_and_what_is_whole_is_read(tmp_path: Path) -> None:
    archive = archive_in(tmp_path / "not" / "there")
    assert archive.parent.is_dir()
    archive.write_bytes(bytes(1_000))  # of a JVM that was killed while it wrote
    assert archive_in(archive.parent) == archive
    archive.write_bytes(b"\xa8\xba\x0b\xf0")
    assert option_for(archive.parent) == f"-XX:SharedArchiveFile={archive}"
    archive.parent.chmod(0o500)  # it is read all the same
    assert option_for(str(archive.parent)) == f"-XX:SharedArchiveFile={archive}"


def test_another_java_has_an_archive_of_its_own(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    found = {
        option_for(tmp_path, environment)
        for environment in (os.environ, {"PATH": str(java.parent)}, {"JAVA_HOME": str(tmp_path)}, {"PATH": ""})
    }
    assert len(found) == 3, "the same one on PATH and in JAVA_HOME"


def test_a_home_is_found_and_what_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"={tmp_path}/cache/spark-" in option_for("~/cache")
    (tmp_path / "file").touch()
    with pytest.raises(fw.SpecError, match=r"class_archive: must be a folder that can be made: .*file"):
        archive_options(tmp_path / "file")
    for odd in " '\"\\:\n":
        with pytest.raises(
            fw.SpecError, match=r"(?s)class_archive: .* means something to those who read it; .* got .*my.cl"
        ):
            archive_options(tmp_path / f"my{odd}cl")


def test_jars_that_have_changed_have_an_archive_of_their_own(tmp_path: Path) -> None:
    jar = tmp_path / "jars" / "spark.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"1")
    environment = {"SPARK_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    found = [option_for(tmp_path, environment)]
    os.utime(jar, (1, 1))
    found.append(option_for(tmp_path, environment))
    jar.with_name("more.jar").touch()
    found.append(option_for(tmp_path, environment))
    assert len(set(found)) == 3
    assert option_for(tmp_path, environment) == found[-1]


def test_settings_in_a_folder_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.warns(UserWarning, match="class_archive: HADOOP_CONF_DIR is set.* goes without"):
        assert archive_options(tmp_path / "classes") is None

    def session() -> None:
        with archived_classes(tmp_path / "classes"):
            assert "classes" not in os.environ.get("SPARK_SUBMIT_OPTS", "")

    with pytest.warns(UserWarning, match="goes without") as told:
        session()
    assert told[0].filename == __file__, "the line that asked for a session"
    assert told[0].lineno == session.__code__.co_firstlineno + 1
    assert not (tmp_path / "classes").exists()


@pytest.mark.parametrize("before", [None, "-Xmx1g"])
def test_the_environment_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    if before:
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", before)
    with archived_classes(tmp_path):
        assert os.environ["SPARK_SUBMIT_OPTS"].split()[0].startswith(before or "-XX:ArchiveClassesAtExit=")
    assert os.environ.get("SPARK_SUBMIT_OPTS") == before
    with archived_classes(None):
        assert os.environ.get("SPARK_SUBMIT_OPTS") == before


def test_a_session_that_runs_is_returned_as_it_is(spark, tmp_path: Path) -> None:
    assert spark_glue.session(class_archive=tmp_path / "classes") is spark
    assert not (tmp_path / "classes").exists()


@pytest.mark.long
def test_the_next_program_reads_it(tmp_path: Path) -> None:
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": "-Xlog:class+load:file=loaded.log"},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return done.stdout.split("OPTION")[1].strip()

    assert run().startswith("-XX:ArchiveClassesAtExit=")
    end = time.monotonic() + 120
    while option_for(tmp_path / "classes").startswith("-XX:Archive") and time.monotonic() < end:
        time.sleep(0.2)
    assert run() == option_for(tmp_path / "classes")
    loaded = (tmp_path / "loaded.log").read_text()
    assert loaded.count("shared objects file (top)") > 1_000, "it does not fit"
