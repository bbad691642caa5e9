"""``fastwin pvuv`` from an access log to a store: every window by plain counting, unique visitors by Redis."""

import gzip
import os
import random
import re
import shlex
import subprocess
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import redis

import spark_glue
from fastwin.errors import SpecError
from fastwin.store import PaneStore, key_to_text
from spark_glue.apps.pvuv import main as pvuv
from spark_glue.apps.pvuv.accesslog import first_lines, parse_lines
from spark_glue.apps.pvuv.modules import OTHER, Events, module_of
from spark_glue.apps.pvuv.page import Page
from spark_glue.apps.state.main import load_spec
from tests.support.pvuv import GOOD, arguments
from tests.support.redis_server import RedisServer

PANE, DAY = 180_000, 86_400_000
ACCESS_LOG = os.environ.get("FASTWIN_ACCESS_LOG")
"""Set to the path of a real log, plain or gzipped, to have it counted too."""


def parse(line: str):
    return parse_lines([line]).rows.to_pylist()


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
        (GOOD.replace("1.2.3.4 - - [", "2001:db8::7 - john doe ["), "ip", "2001:db8::7"),
        (GOOD.replace("1.2.3.4 - - [", "2001:db8::7 - john doe ["), "host", None),
        ("[2001:db8::1]:443 " + GOOD, "host", "[2001:db8::1]"),
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
    (tmp_path / "garbage.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 99)
    with pytest.raises(SpecError, match=r"garbage.gz cannot be read"):
        first_lines(tmp_path / "garbage.gz", 1)
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


def small_log(path: Path) -> list[str]:
    """Two days of requests, a few minutes out of order, with lines between that are none, or of impossible dates."""
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
    for text in ("31/Dec/9999:23:59:59 -0100", "31/Dec/1969:23:59:59 +0000", "01/Jan/0001:00:00:00 +1400"):
        lines.insert(300, GOOD.replace("17/May/2015:10:05:03 +0000", text))
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return lines


PARTS = re.compile(r".*[.](css|m?js|map|png|jpe?g|gif|svg|ico|webp|avif|bmp|woff2?|ttf|eot|otf)", re.IGNORECASE)


def plainly(lines: list[str]) -> tuple[dict, int, int, int]:
    """Returns the visitors of every page by module and pane, and how many lines are malformed, other requests, and of
    impossible dates: by splitting text."""
    found, malformed, others, misdated = defaultdict(list), 0, 0, 0
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
        if not 0 <= at <= time.time() * 1_000 + DAY:
            misdated += 1
            continue
        module = "/" + "".join([part for part in path.split("/") if part][:1])
        found[module, at - at % PANE].append(f"{head.split()[0]} {agent}")
    return found, malformed, others, misdated


@pytest.mark.parametrize("source", ["small", *(["given"] if ACCESS_LOG else [])])
def test_log_to_store(spark, tmp_path, monkeypatch, capsys, source):
    """Also in folders whose names Spark would read as patterns."""
    folder = tmp_path / "a[1]{b},c"
    folder.mkdir()
    out = folder / "out"
    if source == "given":
        log = Path(ACCESS_LOG)
        opener = gzip.open if log.suffix == ".gz" else open
        with opener(log, "rt", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    else:
        log = folder / "access.log.gz"
        lines = small_log(log)
    monkeypatch.setattr(spark_glue, "session", lambda *a: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)  # it belongs to all tests
    assert pvuv.run(arguments(str(log), "--out", str(out))) == 0
    told = capsys.readouterr().out
    requests, malformed, others, misdated = plainly(lines)
    assert f"{sum(map(len, requests.values())):,} events, {others:,} requests not counted, 0 too late, " in told
    assert f"{malformed:,} malformed lines" in told and others > 10
    assert source == "given" or misdated == 3
    assert (f", {misdated:,} dated before 1970 or more than a day ahead, " in told) == bool(misdated)
    assert "images, styles, scripts and fonts do not count" in told.splitlines()[0]
    assert re.search(r"^[\d.]+ s: [\d.]+ s starting Spark, [\d.]+ s the first micro-batch, ", told, re.MULTILINE)
    assert f"fastwin serve --store {shlex.quote(f'rocksdb:{out}/store')}" in told
    assert f"--spec {shlex.quote(f'{os.path.relpath(out)}/specs.py:panes')} --key " in told
    panes = load_spec(f"{out / 'specs.py'}:panes")
    assert repr(panes) == repr(pvuv.spec_of("24h", "3m").panes())
    kept = (out / "malformed.log").read_text().splitlines()
    assert len(kept) == malformed and set(kept) <= set(lines)

    server = RedisServer(tmp_path)
    try:
        client = redis.Redis.from_url(server.url)
        pipeline = client.pipeline(transaction=False)
        for (module, at), visitors in requests.items():
            pipeline.pfadd(f"{module} {at}", *visitors)
        pipeline.execute()
        with PaneStore.open(f"rocksdb:{out / 'store'}", read_only=True) as store:
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


@pytest.mark.long
def test_a_log_that_ends_now(spark, tmp_path, monkeypatch, capsys):
    """All panes close, also where that takes a time of days ahead."""
    now = datetime.now(UTC)
    moments = [now + timedelta(hours=hours) for hours in (-50, -25, 0)]
    lines = [GOOD.replace("17/May/2015:10:05:03", f"{moment:%d/%b/%Y:%H:%M:%S}") for moment in moments]
    (tmp_path / "access.log").write_text("\n".join(lines))
    monkeypatch.setattr(spark_glue, "session", lambda *a: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    given = ["--window", "72h", "--slide", "12h", "--watermark", "1 day"]
    assert pvuv.run(arguments(str(tmp_path / "access.log"), "--out", str(tmp_path / "out"), *given)) == 0
    told = capsys.readouterr().out
    assert "\n3 events, 0 requests not counted, 0 too late, 0 malformed lines; 3 panes\n" in told
    assert "ahead of the clock" not in told
    with PaneStore.open(f"rocksdb:{tmp_path / 'out' / 'store'}", read_only=True) as store:
        assert store.query()["pv"].to_pylist() == [3]


def test_the_page_of_a_store_with_a_password(monkeypatch):
    """It is another process, whose command line all can read."""
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: started.append((command, options)))
    Page("redis://:secret@localhost", 8765)
    ((command, options),) = started
    assert "secret" not in " ".join(command)
    assert options["env"]["FASTWIN_STORE"] == "redis://:secret@localhost"
