"""What ``fastwin pvuv`` refuses before Spark starts, how its page and it are ended, and the store that it is given."""

import argparse
import io
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import spark_glue
from fastwin.errors import NotInstalledError, SpecError, StoreError
from fastwin.machine import packages
from fastwin.store import PaneStore
from spark_glue.apps.console import ended_as_by_ctrl_c, fresh_folder, start_spark
from spark_glue.apps.pvuv import command, report
from spark_glue.apps.pvuv import main as pvuv
from spark_glue.apps.pvuv.page import Page
from spark_glue.apps.pvuv.places import without_password
from tests.support.pvuv import GOOD, arguments


def test_without_the_packages_of_the_page_nothing_begins(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "requires", lambda name: ['not-there>=1; extra == "serve"'])
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers())
    parsed = parser.parse_args(["pvuv", str(tmp_path / "access.log"), "--serve"])
    with pytest.raises(NotInstalledError, match=r"^pvuv: needs the package not-there: pip install 'fastwin\[serve\]'$"):
        parsed.run(parsed)
    parsed.serve = False
    with pytest.raises(SpecError, match="there is no file or folder"):
        parsed.run(parsed)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rocksdb:/home/ann@example/store", "rocksdb:/home/ann@example/store"),
        ("redis://localhost/0?namespace=a", "redis://localhost/0?namespace=a"),
        ("redis://:secret@h:1/0?socket_timeout=5", "redis://...@h:1/0?socket_timeout=5"),
        ("redis://h/0?password=secret&namespace=a", "redis://h/0?password=...&namespace=a"),
        ("redis://h/0?namespace=a&password=se@cret", "redis://h/0?namespace=a&password=..."),
        ("rediss://h/0?ssl_password=secret&namespace=a", "rediss://h/0?ssl_password=...&namespace=a"),
        ("redis://h/0?password_file=/etc/p", "redis://h/0?password_file=/etc/p"),
    ],
)
def test_no_password_is_shown(url, shown):
    assert without_password(url) == shown


def page_that_runs(monkeypatch: pytest.MonkeyPatch, program: str) -> Page:
    """Returns a page whose process runs another program."""
    begin = subprocess.Popen
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda command, **options: begin([sys.executable, "-c", program], **options))
        return Page("redis://:secret@127.0.0.1/0", 8765)


def test_a_page_ends_with_what_it_follows(monkeypatch):
    with page_that_runs(monkeypatch, "import time; time.sleep(100)") as page:
        page.check()
        assert page.outcome(wait=False) == 0
    assert page._process.returncode == -signal.SIGTERM


def test_a_page_that_cannot_begin_is_told_before_the_stream_does(monkeypatch):
    with page_that_runs(monkeypatch, "raise SystemExit(3)") as page:
        page._process.wait()
        with pytest.raises(SpecError, match=r"^--serve: the page has ended with status 3: what it said stands above$"):
            page.check()


def test_kill_ends_what_it_ends_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_spark_that_does_not_start_is_told_with_its_messages(monkeypatch, tmp_path):
    def session(*given):
        os.write(2, b"Error: there is no such master\n")
        raise RuntimeError("the gateway has ended")

    monkeypatch.setattr(spark_glue, "session", session)
    with pytest.raises(SpecError) as told:
        start_spark("app", "local[x]", {}, tmp_path / "spark.log")
    assert str(told.value).splitlines() == [
        "--master: Spark does not start at 'local[x]': the gateway has ended",
        "  Error: there is no such master",
    ]


@pytest.mark.parametrize(("status", "told"), [(0, 0), (130, 0), (1, 1)])
def test_a_page_that_has_died_is_told_of(status, told, capsys, monkeypatch):
    with page_that_runs(monkeypatch, f"raise SystemExit({status})") as page:
        assert page.outcome(wait=True) == told
    said = capsys.readouterr().err
    assert bool(said) == bool(told)
    assert not said or "fastwin serve --store redis://...@127.0.0.1/0" in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("nowhere.log",), "there is no file or folder"),
        (("-", "--follow"), "--follow: needs a file or a folder"),
        (("LOG", "--slide", "7h"), "7 h does not divide the size"),
        (("LOG", "--window", "soon"), "is no duration"),
        (("LOG", "--module", "query"), "--module"),
        (("LOG", "--watermark=-1s"), "--watermark: must not be negative"),
        (("LOG", "--batch", "0"), "--batch"),
        (("REAL", "--out", "TAKEN"), "is not empty"),
        (("LOG",), "has no line of an access log among its first 2"),
        (("REAL", "--out", "FOLLOWED"), "has what a run with --follow goes on with; add --follow"),
        (("REAL", "--store", "mysql://x"), "must begin with one of redis, redis+cluster, redis+sentinel, rediss"),
        (("REAL", "--retention", "soon"), "is no duration"),
        (("REAL", "--retention", "1 h"), "--retention: must be at least a window, 24h, got '1 h'"),
        (("REAL", "--port", "70000"), "--port: must be 0 to 65535, got 70000"),
    ],
)
def test_wrong_options_are_told_before_spark_starts(tmp_path, monkeypatch, given, says):
    monkeypatch.chdir(tmp_path)
    for name, kept in (("FOLLOWED", "options.json"), ("pvuv-output", "of-an-earlier-run")):
        Path(name).mkdir()
        (Path(name) / ".fastwin-pvuv").touch()
        (Path(name) / kept).touch()
    Path("LOG").write_text("hello\nworld\n")
    Path("REAL").write_text(f"hello\n{GOOD}\n")
    Path("TAKEN").mkdir()
    Path("TAKEN/mine").write_text("")
    monkeypatch.setattr(spark_glue, "session", lambda *a: pytest.fail("Spark was started"))
    with pytest.raises(SpecError, match=re.escape(says)):
        pvuv.run(arguments(*given))
    assert Path("FOLLOWED/options.json").exists() and Path("pvuv-output/of-an-earlier-run").exists()


@pytest.mark.parametrize(
    ("module", "shown", "asked"),
    [("/\x1b[2J", "/\\ufffd[2J", None), ("/é", "/\\xe9", None), ("/e", "/e", "/e")],
)
def test_a_module_is_no_command_of_the_terminal(tmp_path, monkeypatch, module, shown, asked):
    """Also where the terminal knows few letters."""
    spec, url = pvuv.spec_of("24h", "3m"), f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(pa.table({"module": [module], "ts": [0], "visitor": ["a"]})).main)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "ascii"))
    with pytest.raises(SpecError, match="there is no file"):  # told in the end, when the terminal is known
        pvuv.run(arguments(str(tmp_path / "none"), "--out", str(tmp_path / "out")))
    run = SimpleNamespace(places=SimpleNamespace(url=url), arguments=SimpleNamespace(window="24h"))
    assert report._report_last_window(run) == asked
    sys.stdout.flush()
    said = out.getvalue().decode("ascii")
    assert f"  {shown} " in said and "1 views" in said


def earlier_folder(path: Path) -> Path:
    """Returns a folder of an earlier run, with a file and a folder in it."""
    (path / "checkpoint").mkdir(parents=True)
    for name in (".fastwin-pvuv", "malformed.log", "checkpoint/offsets"):
        (path / name).touch()
    return path


def test_a_new_folder_is_its_owners_alone(tmp_path):
    """It has lines of the log. One that is there may be for others, too."""
    (tmp_path / "there").mkdir(0o755)
    modes = [fresh_folder(tmp_path / name, "pvuv").stat().st_mode & 0o777 for name in ("new/out", "there")]
    assert modes == [0o700, 0o755]


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_is_emptied(tmp_path, linked):
    there = earlier_folder(tmp_path / "there")
    out = tmp_path / "out" if linked else there
    if linked:
        out.symlink_to(there)
    assert fresh_folder(out, "pvuv") == there
    assert out.is_symlink() == linked and [path.name for path in there.iterdir()] == [".fastwin-pvuv"]
    if linked:
        there.joinpath(".fastwin-pvuv").unlink()
        there.rmdir()
        assert fresh_folder(out, "pvuv") == there and there.is_dir()


@pytest.mark.parametrize("name", [None, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_small_log_starts_quickly_unless_the_jvm_has_options_of_its_own(tmp_path, monkeypatch, name):
    """A JVM that is told of two garbage collectors does not start."""
    for one in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(one, raising=False)
    if name is not None:
        monkeypatch.setenv(name, "-XX:+UseG1GC")
    log = tmp_path / "access.log"
    log.write_text(GOOD)
    settings = pvuv._settings(arguments(str(log)))
    assert ("spark.driver.extraJavaOptions" in settings) == (name is None)
    assert settings["spark.sql.shuffle.partitions"] == "1"


def test_a_folder_that_another_process_uses_is_refused(tmp_path):
    out = tmp_path / "out"
    program = "import sys; from pathlib import Path; from spark_glue.apps.console import fresh_folder as f; "
    program += "f(Path(sys.argv[1]), 'pvuv'); print('taken', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "taken\n"
        (out / "store").mkdir()
        with pytest.raises(
            SpecError, match=r"^--out: another pvuv runs in .*out; end that one, or name another folder"
        ):
            fresh_folder(out, "pvuv")
        assert (out / "store").is_dir()
        other.communicate("", timeout=60)
    for _ in range(2):  # its own, from an earlier run
        assert fresh_folder(out, "pvuv") == out and not (out / "store").exists()


@pytest.mark.parametrize(("owner", "name"), [(shutil, "rmtree"), (Path, "unlink")])
def test_a_folder_that_cannot_be_emptied_is_told(tmp_path, monkeypatch, owner, name):
    def denied(path, **options):
        if not options.get("ignore_errors"):
            raise PermissionError(f"not allowed: {path}")

    out = earlier_folder(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, denied)
        with pytest.raises(SpecError, match=r"^--out: .*out cannot be emptied: not allowed: "):
            fresh_folder(out, "pvuv")
    fresh_folder(out, "pvuv")  # it is still known as the command's own
    (tmp_path / "file").touch()
    with pytest.raises(SpecError, match=r"^--out: .*file/out cannot be written: .*Not a directory"):
        fresh_folder(tmp_path / "file" / "out", "pvuv")


@pytest.mark.parametrize("log", ["out/log", "out/logs", "out", "link", "out/link"])
@pytest.mark.parametrize("given", [(), ("--follow",)])
def test_a_log_in_the_folder_that_is_emptied_is_refused(tmp_path, monkeypatch, log, given):
    monkeypatch.chdir(tmp_path)
    earlier_folder(tmp_path / "out")
    Path("out/logs").mkdir()
    for path in ("elsewhere", "out/log", "out/logs/log"):
        Path(path).write_text(f"{GOOD}\n")
    Path("link").symlink_to("out/log")
    Path("out/link").symlink_to("../elsewhere")
    monkeypatch.setattr(spark_glue, "session", lambda *a: pytest.fail("Spark was started"))
    with pytest.raises(SpecError, match=f"^--out: {log} lies in out, which is emptied; name another folder$"):
        pvuv.run(arguments(log, "--out", "out", *given))
    assert Path("out/malformed.log").exists() and Path("out/link").is_symlink()
    assert Path("out/log").read_text() == Path("out/logs/log").read_text() == f"{GOOD}\n"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((), 315_360_000_000),  # ten years: a log that is read once is kept whole
        (("--window", "730 days", "--slide", "1 day"), 8 * 730 * 86_400_000),
        (("--follow",), None),
        (("--store", "rocksdb:elsewhere"), None),  # whoever else has it says how long
        (("--retention", "7 days"), "7 days"),
    ],
)
def test_the_store_is_told_how_long_to_keep_panes(tmp_path, monkeypatch, given, kept):
    class EnoughError(Exception):
        pass

    def to_store(url, spec, *, retention):
        told.append(retention)
        raise EnoughError

    told: list[str | int | None] = []
    (tmp_path / "log").write_text(f"{GOOD}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark_glue, "to_store", to_store)
    with pytest.raises(EnoughError):
        pvuv.run(arguments(str(tmp_path / "log"), "--out", str(tmp_path / "out"), *given))
    assert told == [kept]


@pytest.mark.parametrize("place", ["elsewhere/panes", "out/panes"])
@pytest.mark.parametrize("before", [False, True])
def test_a_store_of_ones_own_is_made(tmp_path, monkeypatch, place, before):
    class EnoughError(Exception):
        pass

    def session(*given):
        raise EnoughError

    monkeypatch.chdir(tmp_path)
    Path("log").write_text(f"{GOOD}\n")
    if before:  # that of an earlier run
        Path("out").mkdir()
        (Path("out") / ".fastwin-pvuv").touch()
    monkeypatch.setattr(pvuv, "start_spark", session)
    for _ in range(2):  # the second one finds the store
        with pytest.raises(EnoughError):
            pvuv.run(arguments("log", "--out", "out", "--store", f"rocksdb:{place}"))
        with PaneStore.open(f"rocksdb:{place}", read_only=True) as store:
            assert store.meta() is None


def test_a_store_that_is_locked_is_told_before_a_folder_is_emptied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log").write_text(f"{GOOD}\n")
    Path("out").mkdir()
    for name in (".fastwin-pvuv", "of-an-earlier-run"):
        (Path("out") / name).touch()
    with PaneStore.open("rocksdb:panes", pvuv.spec_of("24h", "3m")), pytest.raises(StoreError):
        pvuv.run(arguments("log", "--out", "out", "--store", "rocksdb:panes"))
    assert Path("out/of-an-earlier-run").exists()
