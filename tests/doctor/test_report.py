"""``fastwin doctor``: what it finds, what it prints, and how it ends."""

import importlib.metadata
import json
import re
import socket
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import fastwin as fw
from fastwin.__main__ import main
from fastwin.doctor import itself, report, spark, surroundings
from fastwin.doctor.finding import Finding
from fastwin.machine import memory, packages
from tests.support.documents import ROOT

OK = Finding("Python", "ok", "3.11", "runs fastwin")
ABSENT = Finding("extra store", "missing", "needs the package rocksdict", "panes", "pip install x", "store")
WRONG = Finding("Java", "wrong", "Java 8", "Spark", "get one", "spark")


def test_what_makes_the_exit_status_1() -> None:
    assert report.faults([OK, ABSENT]) == []
    assert report.faults([OK, ABSENT, WRONG]) == [WRONG]
    assert report.faults([OK, ABSENT], ["store"]) == [ABSENT]
    assert report.faults([OK, ABSENT], ["spark"]) == []
    java = Finding("Java", "missing", "", "", extra="spark")
    assert report.faults([java], ["demo"]) == [java]
    with pytest.raises(
        fw.SpecError, match=r"--need: must be one of spark, store, .*, got 'sprak'; did you mean spark\?"
    ):
        report.faults([OK], ["sprak"])


def test_text_says_what_for_and_what_mends_it() -> None:
    lines = [" ".join(line.split()) for line in report.text([OK, WRONG]).splitlines()]
    assert lines[0] == f"fastwin {fw.__version__}"
    assert lines[2:] == ["ok Python 3.11", "for: runs fastwin", "wrong Java Java 8", "for: Spark", "mend: get one"]


def test_the_command_looks_at_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "FASTWIN_STORE", "FASTWIN_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    status = main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert status == (not told["ok"]) and told["fastwin"] == fw.__version__
    found = {one["name"]: one for one in told["findings"]}
    extras = [f"extra {name}" for name in surroundings.EXTRAS]
    assert list(found) == [
        "Python", "compiled modules", "packages", "memory", *extras, "Java", "Redis server", "/dev/shm",
    ]  # fmt: skip
    assert all(one["purpose"] and one["found"] and (one["status"] == "ok" or one["mend"]) for one in found.values())
    assert {found[name]["status"] for name in ("Python", "compiled modules", "packages", "memory")} == {"ok"}


def test_a_wrong_extra_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--need", "nothing"]) == 1
    assert capsys.readouterr().err.startswith("fastwin: --need: must be one of spark, ")


def test_compiled_modules_that_are_missing_or_cannot_be_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "fastwin"
    (folder / "core").mkdir(parents=True)
    (folder / "core" / "lost.pyx").touch()
    found = itself.kernels(folder)
    assert (found.status, found.found, found.mend) == (
        "wrong",
        "1 are not there, such as fastwin.core.lost",
        "make compile",
    )
    (folder / "core" / "lost.abi3.so").write_bytes(b"no library")
    assert "fastwin.core.lost cannot be loaded" in itself.kernels(folder).found


@pytest.mark.parametrize(("versions", "status", "says"), [
    ({"redis": "5.0"}, "ok", "redis 5.0"),
    ({}, "missing", "needs the package redis"),
    ({"redis": "3.0"}, "wrong", "needs redis >=5, and 3.0 is installed"),
])  # fmt: skip
def test_an_extra_of_one_package(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], status: str, says: str
) -> None:
    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "requires", lambda name: ['redis[hiredis]>=5; extra == "redis"'])
    found = surroundings.extra("redis")
    assert (found.status, found.found) == (status, says)
    assert status == "ok" or found.mend == "pip install 'fastwin[redis]'"


def test_an_extra_without_all_of_its_packages_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pandas that Spark could not work with is no fault where there is no Spark."""

    def version(name: str) -> str:
        if name == "pandas":
            return "9.0"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(packages, "version", version)
    metadata = ['pyspark>=4; extra == "spark"', 'pandas<3; extra == "spark"']
    monkeypatch.setattr(packages, "requires", lambda name: metadata)
    found = surroundings.extra("spark")
    assert (found.status, found.found) == ("missing", "needs the package pyspark; and pandas <3, and 9.0 is installed")


def test_connect_needs_what_the_extra_of_pyspark_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "4.3.0", "pandas": "2.3.0"}
    metadata = {
        "fastwin": ['fastwin[spark]; extra == "connect"', 'pyspark[connect]>=4; extra == "connect"'],
        "pyspark": ['pandas>=9; extra == "connect"', 'grpcio>=1.76; extra == "connect"', 'mlflow>=3; extra == "ml"'],
    }

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    metadata["fastwin"] += ['pyspark>=4; extra == "spark"', 'pandas>=2.2,<3; extra == "spark"']
    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "requires", metadata.__getitem__)
    assert (surroundings.extra("spark").status, surroundings.extra("connect").status) == ("ok", "missing")
    assert surroundings.extra("connect").found == "needs the package grpcio"
    versions["grpcio"] = "1.76.1"
    assert surroundings.extra("connect").found == "pyspark 4.3.0, pandas 2.3.0, grpcio 1.76.1"


def test_the_doctor_knows_the_extras_that_users_install() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(surroundings.EXTRAS) == set(extras) - {"docs", "release", "bench", "engines", "dev"}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(surroundings.EXTRAS) == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_variables_that_lead_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_installed", lambda: "4.3.0")
    (nothing,) = spark.variables({"SPARK_HOME": str(tmp_path)})
    assert (nothing.status, nothing.mend) == ("wrong", "unset SPARK_HOME")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    for release, status in (("Spark 4.3.0 (git) built for Hadoop", "ok"), ("Spark 4.0.1 built", "wrong")):
        (tmp_path / "RELEASE").write_text(release)
        (home,) = spark.variables({"SPARK_HOME": str(tmp_path)})
        assert home.status == status
    assert home.found.endswith("is 4.0.1, pyspark is 4.3.0")

    (same,) = spark.variables({"PYSPARK_PYTHON": sys.executable})
    assert same.status == "ok"
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.8\n")
    other.chmod(0o755)
    (wrong,) = spark.variables({"PYSPARK_PYTHON": str(other)})
    assert wrong.status == "wrong" and "is 3.8, and this is 3." in wrong.found
    (gone,) = spark.variables({"PYSPARK_PYTHON": str(tmp_path / "gone")})
    assert gone.found.endswith("does not run")


@pytest.mark.parametrize(("modules", "says"), [
    ({"fastwin": "__version__ = '0.0.9'"}, f"has fastwin 0.0.9, and this is {fw.__version__}"),
    ({"fastwin": "raise ImportError('of another Python')"}, "cannot load what workers need: ImportError: of another Python"),
    ({"fastwin": f"__version__ = {fw.__version__!r}", "pandas": "raise ImportError('no pandas')"}, "workers need: ImportError: no pandas"),
    ({"fastwin": "import os; os._exit(3)"}, "cannot load what workers need: it ended with 3"),
    ({}, "cannot load what workers need: ModuleNotFoundError: No module named 'fastwin'"),
])  # fmt: skip
def test_a_python_for_workers_without_what_they_need(tmp_path: Path, modules: dict[str, str], says: str) -> None:
    """What lies in the current folder does not count: workers may run elsewhere."""
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    options = "" if modules else "-E -S"  # then it finds nothing that is installed
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{tmp_path}' exec '{sys.executable}' {options} \"$@\"\n")
    program.chmod(0o755)
    (found,) = spark.variables({"PYSPARK_PYTHON": str(program)})
    assert found.status == "wrong" and found.found.endswith(says)


@pytest.mark.parametrize(("installed", "remote", "status"), [
    ("4.3.0", False, "wrong"), (None, False, "missing"), ("4.3.0", True, "missing"),
])  # fmt: skip
def test_java_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None, remote: bool, status: str
) -> None:
    monkeypatch.setattr(spark, "_installed", lambda: installed)
    found = spark.java({"PATH": str(tmp_path)} | ({"SPARK_REMOTE": "sc://127.0.0.1"} if remote else {}))
    assert found.status == status
    assert remote or (found.found.endswith("there is no java on PATH") and found.mend)


@contextmanager
def answering(listener: socket.socket) -> Iterator[None]:
    """Answers one PING, as Redis does."""
    listener.settimeout(10)

    def answer() -> None:
        link, _ = listener.accept()
        link.settimeout(10)
        with link:
            link.recv(64)
            link.sendall(b"+PONG\r\n")

    with listener, ThreadPoolExecutor(1) as pool:
        served = pool.submit(answer)
        yield
        served.result(20)


def redis_of(url: str) -> Finding:
    """What is said of a URL, which shows no password."""
    found = surroundings.redis_server({"FASTWIN_STORE": url})
    assert "secret" not in f"{found.found} {found.mend}"
    return found


def test_a_redis_that_answers_and_one_that_does_not() -> None:
    with answering(listener := socket.create_server(("127.0.0.1", 0))):
        port = listener.getsockname()[1]
        found = redis_of(f"redis://:secret@127.0.0.1:{port}/0")
    assert (found.status, found.found) == ("ok", f"a Redis answers at 127.0.0.1 port {port}")
    gone = redis_of(f"redis://:secret@127.0.0.1:{port}/0")
    assert (gone.status, gone.mend) == ("wrong", f"start one: redis-server --port {port}")
    assert gone.found == f"no Redis answers at 127.0.0.1 port {port}"


@pytest.mark.parametrize(("way", "who"), [
    ("redis+cluster://:secret@{}", "a Redis answers"),
    ("redis+sentinel://:secret@{}/clicks", "a Sentinel answers"),
    ("rediss+cluster://:secret@{}", "something listens"),
    ("REDISS+sentinel://:secret@{}/clicks", "something listens"),
])  # fmt: skip
def test_one_of_several_servers_answers(way: str, who: str) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and listens not
        gone = nobody.getsockname()[1]
        with ExitStack() as stack:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            if "rediss" not in way.lower():
                stack.enter_context(answering(listener))
            port = listener.getsockname()[1]
            found = redis_of(way.format(f"127.0.0.1:{gone},127.0.0.1:{port}"))
        assert found.status == "ok" and found.found.startswith(f"{who} at 127.0.0.1 port {port}")
        found = redis_of(way.format(f"127.0.0.1:{gone},127.0.0.1:{port}"))
    assert found.status == "wrong" and found.found.endswith(f" at 127.0.0.1 port {gone}, 127.0.0.1 port {port}")
    assert found.mend == "start it, or mend FASTWIN_STORE"


def test_a_redis_behind_a_socket(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen()
    with answering(listener):
        found = redis_of(f"unix://:secret@{tmp_path}/socket?db=1")
    assert (found.status, found.found) == ("ok", f"a Redis answers at {tmp_path}/socket")
    gone = redis_of(f"unix://{tmp_path}/socket")
    assert (gone.status, gone.found) == ("wrong", f"no Redis answers at {tmp_path}/socket")


@pytest.mark.parametrize(("url", "says"), [
    ("redis://:secret[@host:6379/0", "FASTWIN_STORE: redis:... is no URL for Redis: it must be "),
    ("redis://:secret@host:port/0", "FASTWIN_STORE: redis:... is no URL for Redis: it must be "),
    ("redis+cluster://:secret@one,tw[o", "FASTWIN_STORE: redis+cluster:... is no URL for Redis: it must be "),
    ("redis+sentinel://:secret@127.0.0.1", "FASTWIN_STORE: redis+sentinel://127.0.0.1:26379 names no service"),
    ("redis://:secret@redis..internal:6379", "no Redis answers at redis..internal port 6379"),
])  # fmt: skip
def test_a_store_whose_url_cannot_be(url: str, says: str) -> None:
    found = redis_of(url)
    assert found.status == "wrong" and found.found.startswith(says)


def test_where_copies_of_state_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert surroundings.copies({"FASTWIN_CACHE_DIR": str(tmp_path)}).status == "ok"
    assert surroundings.copies({"FASTWIN_CACHE_DIR": str(tmp_path / "gone")}).status == "wrong"
    monkeypatch.setattr(memory, "SHARED", tmp_path / "gone")
    found = surroundings.copies({})
    assert (found.status, found.found) == ("missing", "not there")
    assert memory.shared_memory(tmp_path).serves
    assert not memory.SharedMemory(memory.LEAST_FREE - 1, True).serves
    assert memory.bytes_of_memory() > 1 << 20
