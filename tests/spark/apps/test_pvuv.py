"""``fastwin pvuv`` from an access log to a store: every window by plain counting, unique visitors by Redis."""

import argparse
import gzip
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import redis

import spark_glue
from fastwin.errors import NotInstalledError, SpecError, StoreError
from fastwin.machine import packages
from fastwin.store import PaneStore, key_to_text
from spark_glue.apps.console import ended_as_by_ctrl_c, start_spark
from spark_glue.apps.pvuv import command
from spark_glue.apps.pvuv import main as pvuv
from spark_glue.apps.pvuv.accesslog import first_lines, parse_lines
from spark_glue.apps.pvuv.modules import OTHER, Events, module_of
from spark_glue.apps.state.main import load_spec
from tests.support.redis_server import RedisServer

PANE, DAY = 180_000, 86_400_000
GOOD = '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /blog/a?x=1 HTTP/1.1" 200 5 "-" "Agent/1"'
ACCESS_LOG = os.environ.get("FASTWIN_ACCESS_LOG")
"""Set to the path of a real log, plain or gzipped, to have it counted too."""


def parse(line: str):
    return parse_lines([line]).rows.to_pylist()


# --- the page ---


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


def test_a_page_ends_with_what_it_follows():
    page = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    assert pvuv._end_of(page, "redis://127.0.0.1/0", following=True) == 0
    assert page.returncode == -signal.SIGTERM


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
def test_a_page_that_has_died_is_told_of(status, told, capsys):
    page = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({status})"])
    assert pvuv._end_of(page, "redis://:secret@127.0.0.1/0") == told
    said = capsys.readouterr().err
    assert bool(said) == bool(told)
    assert not said or "fastwin serve --store redis://...@127.0.0.1/0" in said


# --- lines ---


def test_combined_line():
    assert parse(GOOD) == [
        {
            "ts": datetime(2015, 5, 17, 10, 5, 3, tzinfo=UTC),
            "host": None,
            "ip": "1.2.3.4",
            "method": "GET",
            "path": "/blog/a",
            "status": 200,
            "agent": "Agent/1",
        }
    ]


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        (GOOD.replace("+0000", "-0730"), "ts", datetime(2015, 5, 17, 17, 35, 3, tzinfo=UTC)),
        (GOOD.replace("+0000", "+0530"), "ts", datetime(2015, 5, 17, 4, 35, 3, tzinfo=UTC)),
        (GOOD.replace("17/May/2015", "29/Feb/2024"), "ts", datetime(2024, 2, 29, 10, 5, 3, tzinfo=UTC)),
        ("Shop.example:443 " + GOOD, "host", "Shop.example"),
        (GOOD.replace("1.2.3.4", "2001:db8::7"), "ip", "2001:db8::7"),
        (GOOD.replace("- - [", "- john doe ["), "ip", "1.2.3.4"),
        (GOOD.rpartition(' "-"')[0], "agent", None),  # the common format
        (GOOD + ' "10.0.0.1" rt=0.1', "agent", "Agent/1"),
        (GOOD.replace("Agent/1", r"a \"quoted\" one"), "agent", r"a \"quoted\" one"),
        (GOOD.replace("/blog/a?x=1", "http://host.example/b/c?d"), "path", "/b/c"),
        (GOOD.replace(" HTTP/1.1", ""), "path", "/blog/a"),
        (GOOD.replace(" 5 ", " - "), "status", 200),
    ],
)
def test_relatives_of_the_combined_format(line, column, value):
    assert parse(line)[0][column] == value


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        GOOD[:-1],
        GOOD.replace("GET /blog/a?x=1 HTTP/1.1", "-"),
        GOOD.replace("GET /blog/a?x=1 HTTP/1.1", r"\x16\x03\x01"),
        GOOD.replace("17/May", "31/Jun"),
        GOOD.replace("17/May", "29/Feb"),
        GOOD.replace("17/May", "00/May"),
        GOOD.replace("May", "Mai"),
        GOOD.replace(":10:05:03", ":24:05:03"),
        GOOD.replace("+0000", "+0099"),
        GOOD.replace("200", "two hundred"),
        "\ufffd\x00",
    ],
)
def test_malformed_lines_are_kept(line):
    parsed = parse_lines([GOOD, line, "", GOOD], first=7)
    assert parsed.malformed == [(8, line)] and parsed.rows.num_rows == 2


def test_first_lines_plain_gzipped_and_damaged(tmp_path):
    text = "\r\n".join([GOOD, "caf\u00e9", "x" * 70_000]).encode("latin-1")
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text))
    assert first_lines(tmp_path / "plain", 2) == first_lines(tmp_path / "packed", 2) == [GOOD, "caf\ufffd"]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(200_000))[:100_000])
    with pytest.raises(SpecError, match=r"cut.gz cannot be read"):
        first_lines(tmp_path / "cut.gz", 1_000)
    (tmp_path / "empty").write_bytes(b"")
    assert first_lines(tmp_path / "empty", 10) == []


def test_bytes_that_are_no_text_are_replaced():
    """As Spark hands them over: it does not look."""
    raw = pa.array([GOOD.encode(), GOOD.encode().replace(b"Agent", b"\xff\xfe"), b"\xff"])
    lines = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    parsed = parse_lines(lines)
    assert parsed.rows["agent"].to_pylist() == ["Agent/1", "\ufffd\ufffd/1"]
    assert parsed.malformed == [(3, "\ufffd")]


@pytest.mark.parametrize(
    ("option", "value", "module"),
    [
        ("path", "/blog/tags/x", "/blog"),
        ("path", "//blog//x", "/blog"),
        ("path", "/", "/"),
        ("path", None, "/"),
        ("path:2", "/blog/tags/x", "/blog/tags"),
        ("host", "Shop.Example", "shop.example"),
        ("host", None, OTHER),
        ("regex:^/(blog|shop)/", "/shop/7", "shop"),
        ("regex:^/(blog|shop)/", "/else", OTHER),
        ("regex:/[a-z]+", "/ab/1", "/ab"),
    ],
)
def test_modules(option, value, module):
    assert module_of(option)[1](value) == module


@pytest.mark.parametrize("option", ["", "path:0", "path:x", "regex:", "regex:(", "query"])
def test_modules_that_are_none(option):
    with pytest.raises(SpecError, match="--module"):
        module_of(option)


def test_which_requests_count():
    changes = [
        ("GET", "GET"),
        ("GET", "POST"),
        (" 200 ", " 404 "),
        ("/a?x=1", "/a.PNG?x"),
        ("/a?x=1", "/a.css"),
        ("a?x=1", "a.pdf"),
    ]
    rows = parse_lines([GOOD.replace(*change) for change in changes]).rows
    found = {counted: Events("path", "ip+agent", counted).of(rows) for counted in ("requests", "pages", "views")}
    assert {counted: (events.num_rows, skipped) for counted, (events, skipped) in found.items()} == {
        "requests": (6, 0),
        "pages": (4, 2),
        "views": (1, 5),
    }
    assert found["requests"][0]["visitor"].to_pylist() == ["1.2.3.4 Agent/1"] * 6
    alone = arguments("LOG", "--visitor", "ip").visitor
    assert Events("path", alone, "requests").of(rows)[0]["visitor"].to_pylist() == ["1.2.3.4"] * 6
    assert Events("host").of(rows)[0]["module"].to_pylist() == [OTHER] * 4
    long = parse_lines([GOOD.replace("/blog", "/" + "x" * 8_000), GOOD.replace("/blog", "/" + "%\U0001f600" * 99)]).rows
    modules = Events("path").of(long)[0]["module"].to_pylist()
    assert modules == ["/" + "x" * 199 + "...", "/" + "%\U0001f600" * 99]  # and a store takes both
    assert all(key_to_text([module]) for module in modules)
    chosen = [arguments("LOG", *given).count for given in ((), ("--all-requests",), ("--pages-only",))]
    assert chosen == ["pages", "requests", "views"]


# --- the command ---


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers())
    return parser.parse_args(["pvuv", *given])


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
        (("REAL", "--store", "mysql://x"), "must begin with rocksdb: or redis://"),
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


@pytest.mark.parametrize("given", [(), ("--retention", "7 days")])
def test_the_store_is_told_how_long_to_keep_panes(tmp_path, monkeypatch, given):
    class EnoughError(Exception):
        pass

    def to_store(url, spec, *, retention):
        told.append(retention)
        raise EnoughError

    told: list[str | None] = []
    (tmp_path / "log").write_text(f"{GOOD}\n")
    monkeypatch.setattr(spark_glue, "to_store", to_store)
    with pytest.raises(EnoughError):
        pvuv.run(arguments(str(tmp_path / "log"), "--out", str(tmp_path / "out"), *given))
    assert told == [given[1] if given else None]


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


def small_log(path: Path) -> list[str]:
    """Two days of requests, a few minutes out of order, with lines between that are none."""
    dice = random.Random(4)
    first = datetime(2024, 3, 1, 22, tzinfo=UTC)
    made = []
    for _ in range(3_000):
        seconds = dice.randrange(2 * 86_400)
        moment = first + timedelta(seconds=seconds)
        ip, path_ = (
            f"10.0.{dice.randrange(3)}.{dice.randrange(250)}",
            dice.choice(["/blog/a", "/shop/b?c=1", "/", "/blog", "/blog/a.png?size=2"]),
        )
        line = f'{ip} - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "GET {path_} HTTP/1.1" 200 7 "-" "A/{dice.randrange(3)}"'
        made.append((seconds + dice.randrange(300), line))
    lines = [line for _, line in sorted(made)]
    for at in (5, 700, 2_900):
        lines.insert(at, f"malformed {at}")
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return lines


PARTS = re.compile(r".*[.](css|m?js|map|png|jpe?g|gif|svg|ico|webp|avif|bmp|woff2?|ttf|eot|otf)", re.IGNORECASE)


def plainly(lines: list[str]) -> tuple[dict, int, int]:
    """Returns the visitors of every page by module and pane, malformed lines and other requests: by splitting text."""
    found, malformed, others = defaultdict(list), 0, 0
    for line in lines:
        try:
            head, request, status, _, _, _, *agent = line.split('"')[:7] if line.count('"') >= 6 else (None,) * 7
            agent = line.split('"')[5]
            text = head.split("[")[1].rstrip("] ")
            moment = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
            path = request.split(" ")[1].split("?")[0].split("#")[0]
            assert status.split()[0].isdigit()
        except (ValueError, IndexError, AttributeError, AssertionError):
            malformed += 1
            continue
        if PARTS.fullmatch(path):
            others += 1
            continue
        at = int(moment.timestamp()) * 1_000
        module = "/" + "".join([part for part in path.split("/") if part][:1])
        found[module, at - at % PANE].append(f"{head.split()[0]} {agent}")
    return found, malformed, others


@pytest.mark.parametrize("source", ["small", *(["given"] if ACCESS_LOG else [])])
def test_log_to_store(spark, tmp_path, monkeypatch, capsys, source):
    if source == "given":
        log = Path(ACCESS_LOG)
        opener = gzip.open if log.suffix == ".gz" else open
        with opener(log, "rt", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    else:
        log = tmp_path / "access.log.gz"
        lines = small_log(log)
    monkeypatch.setattr(spark_glue, "session", lambda *a: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)  # it belongs to all tests
    assert pvuv.run(arguments(str(log), "--out", str(tmp_path / "out"))) == 0
    told = capsys.readouterr().out
    requests, malformed, others = plainly(lines)
    assert f"{sum(map(len, requests.values())):,} events, {others:,} requests not counted, 0 too late, " in told
    assert f"{malformed:,} malformed lines" in told and others > 10
    assert "images, styles, scripts and fonts do not count" in told.splitlines()[0]
    assert re.search(r"^[\d.]+ s: [\d.]+ s starting Spark, [\d.]+ s the first micro-batch, ", told, re.MULTILINE)
    assert f"fastwin serve --store rocksdb:{tmp_path / 'out' / 'store'}" in told
    assert f"--spec {os.path.relpath(tmp_path / 'out' / 'specs.py')}:panes --key " in told
    panes = load_spec(f"{tmp_path / 'out' / 'specs.py'}:panes")
    assert repr(panes) == repr(pvuv.spec_of("24h", "3m").panes())
    kept = (tmp_path / "out" / "malformed.log").read_text().splitlines()
    assert len(kept) == malformed and set(kept) <= set(lines)

    server = RedisServer(tmp_path)
    try:
        client = redis.Redis.from_url(server.url)
        pipeline = client.pipeline(transaction=False)
        for (module, at), visitors in requests.items():
            pipeline.pfadd(f"{module} {at}", *visitors)
        pipeline.execute()
        with PaneStore.open(f"rocksdb:{tmp_path / 'out' / 'store'}", read_only=True) as store:
            first, end = min(at for _, at in requests), store.watermark
            assert end == max(at for _, at in requests) + PANE  # all of the log is in
            series = store.series(start=first, end=end)
            modules = store.keys()["module"].to_pylist()
            assert sorted(modules) == sorted({module for module, _ in requests})
        views = Counter({key: len(visitors) for key, visitors in requests.items()})
        rows = zip(*(series[name].to_pylist() for name in ("module", "pv", "uv")), strict=True)
        ends = series["window_end"].cast(pa.int64()).to_pylist()
        expected, pipeline = [], client.pipeline(transaction=False)
        for module in modules:
            for until in range(first + PANE, end + PANE, PANE):
                panes = [at for at in range(max(until - DAY, first), until, PANE) if (module, at) in views]
                expected.append((module, until, sum(views[module, at] for at in panes)))
                pipeline.pfcount(*([f"{module} {at}" for at in panes] or ["none"]))
        counts = pipeline.execute()
        assert len(expected) == series.num_rows
        for (module, pv, uv), until, wanted, count in zip(rows, ends, expected, counts, strict=True):
            assert (module, until, pv, uv) == (*wanted, count)
    finally:
        server.stop()


def test_the_page_of_a_store_with_a_password(monkeypatch):
    """It is another process, whose command line all can read."""
    from spark_glue.apps.pvuv import main

    started = []
    monkeypatch.setattr(main.subprocess, "Popen", lambda command, **options: started.append((command, options)))
    main._serve("redis://:secret@localhost", 8765)
    ((command, options),) = started
    assert "secret" not in " ".join(command)
    assert options["env"]["FASTWIN_STORE"] == "redis://:secret@localhost"
