"""The JSON API: answers by counting, and a sentence for every request that makes no sense."""

import http.client
import json
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from fastwin.serve.app import Settings
from fastwin.serve.server import known_names
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, clicks, counted, distinct
from tests.support.service import SPEC, put_clicks, serving

END = FIRST + 30 * HOUR


@pytest.fixture
def service(make_service):
    return make_service()


def test_store_says_what_it_holds(service):
    found = service.json("/api/store")
    assert found["keys"] == ["module"]
    assert [(a["name"], a["how"], a["type"]) for a in found["aggregates"]] == [
        ("pv", "count", "int64"),
        ("uv", "estimate", "int64"),
    ]
    assert (found["pane_ms"], found["coarse_ms"], found["window_ms"]) == (3 * MINUTE, HOUR, DAY)
    assert found["watermark"] == END
    assert service.json("/api/keys") == {"keys": [f"module%20{i}" for i in range(5)], "more": False}


def test_current_figures(service):
    for path, start, end in (
        ("/api/current", END - DAY, END),
        ("/api/current?window=6h", END - 6 * HOUR, END),
        (f"/api/current?window=1%20hour&end={FIRST + 12 * HOUR}", FIRST + 11 * HOUR, FIRST + 12 * HOUR),
    ):
        found = service.json(path)
        assert (found["start"], found["end"]) == (start, end)
        expected = {
            module.replace(" ", "%20"): (row["pv"], distinct(service.table, module, start, end))
            for module, row in counted(service.table, start, end).items()
        }
        assert {row["key"]: (row["pv"], row["uv"]) for row in found["rows"]} == expected
        assert [row["pv"] for row in found["rows"]] == sorted((row["pv"] for row in found["rows"]), reverse=True)
    assert len(service.json("/api/current?limit=2")["rows"]) == 2
    named = service.json("/api/current?key=module%203&key=module%25203")
    assert [row["key"] for row in named["rows"]] == ["module%203"]


def test_times_as_dates(service):
    day = service.json(f"/api/current?end={FIRST + DAY}")
    for text in (
        "2024-01-02",
        "2024-01-02T00:00",
        "2024-01-02 00:00:00Z",
        "2024-01-02T02:00%2B02:00",
        "2024-01-02T02:00+02:00",
    ):
        assert service.json(f"/api/current?end={text.replace(' ', '%20')}") == day
    series = service.json(f"/api/series?key=module%201&start={FIRST}&end={FIRST + DAY}")
    assert service.json("/api/series?key=module%201&start=2024-01-01&end=2024-01-02") == series


def test_sorted_by_any_aggregate(service):
    for name in ("pv", "uv"):
        found = [row[name] for row in service.json(f"/api/current?sort={name}&window=6h")["rows"]]
        assert found == sorted(found, reverse=True)


def test_series(service):
    found = service.json("/api/series?key=module%201&key=module%202&window=6h&range=12h&step=1h")
    assert found["times"] == [END - 12 * HOUR + i * HOUR for i in range(1, 13)]
    assert [series["key"] for series in found["series"]] == ["module%201", "module%202"]
    for series, module in zip(found["series"], ("module 1", "module 2"), strict=True):
        for at, pv, uv in zip(found["times"], series["pv"], series["uv"], strict=True):
            assert pv == counted(service.table, at - 6 * HOUR, at)[module]["pv"]
            assert uv == distinct(service.table, module, at - 6 * HOUR, at)
    found = service.json("/api/series?key=module%201")
    assert (len(found["times"]), found["step_ms"]) == (480, 3 * MINUTE)
    found = service.json(f"/api/series?key=module%201&start={FIRST}&end={END}")
    assert found["step_ms"] == HOUR and found["times"][-1] == END


def test_new_panes_are_seen(service):
    before = service.json("/api/store")
    more = clicks(500, hours=31, seed=7)
    put_clicks(service.store, pa.concat_tables([service.table, more]))
    deadline = time.monotonic() + 20
    while service.json("/api/store")["version"] == before["version"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    both = counted(pa.concat_tables([service.table, more]), END + HOUR - DAY, END + HOUR)
    found = service.json("/api/current")
    assert {row["key"]: row["pv"] for row in found["rows"]} == {k.replace(" ", "%20"): r["pv"] for k, r in both.items()}


SERIES = "/api/series?key=module%201"
BAD = [
    ("unknown module", "/api/series?key=nobody", 404, "knows no 'nobody'"),
    ("unknown module, now", "/api/current?key=nobody", 404, "knows no 'nobody'"),
    ("no module", "/api/series", 400, "name 1 to 50 keys"),
    ("too many modules", SERIES + "&key=x" * 60, 400, "at most 50"),
    ("end before start", f"{SERIES}&start={END}&end={END - HOUR}", 400, "end: must be after start"),
    ("end is start", f"{SERIES}&start={END}&end={END}", 400, "end: must be after start"),
    ("start alone", f"{SERIES}&start={END}", 400, "goes with end"),
    ("ten years", f"{SERIES}&range=3650d", 400, "at most 8 d"),
    ("ten years by start", f"{SERIES}&start={END - 3650 * DAY}&end={END}", 400, "at most 8 d"),
    ("window of ten years", "/api/current?window=3650d", 400, "at most 8 d"),
    ("too many points", f"{SERIES}&range=8d&step=3min", 400, "at most 2000 points"),
    (
        "too many points of all keys",
        "/api/series?range=99h&step=3min" + "".join(f"&key=k{i}" for i in range(26)),
        400,
        "at most 50,000 points of all keys together, got 51,480",
    ),
    ("range off the grid", f"{SERIES}&range=4min", 400, "multiple of a pane"),
    ("step does not divide", f"{SERIES}&range=24h&step=21min", 400, "does not divide"),
    ("negative range", f"{SERIES}&range=-3min", 400, "multiple of a pane"),
    ("no duration", "/api/current?window=soon", 400, "is no duration"),
    ("no duration, long", "/api/current?window=" + "9" * 900 + "h", 400, "digits"),
    ("months", "/api/current?window=1month", 400, "no fixed length"),
    ("end is no number", "/api/current?end=yesterday", 400, "whole number"),
    ("end off the grid", f"/api/current?end={END + 1}", 400, "within a pane"),
    ("end beyond the calendar", f"/api/current?end={2**53}", 400, "years 1 to 9999"),
    ("windows before the calendar", f"{SERIES}&end=-62135510400000", 400, "years 1 to 9999"),
    ("end is huge", "/api/current?end=" + "9" * 500, 400, "whole number"),
    ("end is no date", "/api/current?end=2015-02-30", 400, "a time such as 2015-05-20"),
    ("end is a date off the grid", "/api/current?end=2024-01-01T10:01", 400, "within a pane"),
    ("start is no date", f"{SERIES}&start=soon&end={END}", 400, "start: must be"),
    ("sorted by nothing", "/api/current?sort=users", 400, "sort: must be one of pv, uv"),
    ("limit", "/api/current?limit=0", 400, "from 1 to 1000"),
    ("limit in other digits", "/api/current?limit=%D9%A3", 400, "whole number"),
    ("unknown parameter", "/api/current?windw=1h", 400, "is no parameter here"),
    ("parameter twice", "/api/current?window=1h&window=2h", 400, "given 2 times"),
    ("parameters where none are", "/api/store?x=1", 400, "takes no parameters"),
    ("many parameters", "/api/current?" + "a=1&" * 300, 400, "At most 200 parameters"),
    ("long key", "/api/current?key=" + "x" * 5_000, 400, "longer than"),
    ("key that no store takes", "/api/series?key=" + "x" * 1_060, 404, "knows no 'xxx"),
    ("key that no store takes, now", "/api/current?key=" + "%2525" * 170 + "x" * 560, 404, "knows no '%25"),
    ("key with NUL", "/api/current?key=%00", 404, "knows no"),
    ("key that is no UTF-8", "/api/current?key=%FF", 404, "knows no"),
    ("key with a broken escape", "/api/current?key=%25FF", 404, "knows no"),
    ("key of two columns", "/api/current?key=a,b", 404, "knows no"),
    ("62 kB query", "/api/current?key=" + "x" * 62_000, 414, "longer than 60000"),
    ("50 keys in another alphabet", "/api/current?" + "&".join(["key=" + "%D1%8F" * 195] * 50), 404, "knows no"),
    ("long path", "/" + "x" * 2_000, 414, "path is longer"),
    ("nothing there", "/api/nothing", 404, "There is nothing here"),
    ("path traversal", "/static/../server.py", 404, "There is nothing here"),
    ("path traversal, escaped", "/static/..%2f..%2f..%2fetc%2fpasswd", 404, "There is nothing here"),
    ("path traversal, twice escaped", "/static/%252e%252e/server.py", 404, "There is nothing here"),
    ("path traversal, back strokes", "/static/..\\..\\app.py", 404, "There is nothing here"),
]


@pytest.mark.parametrize("case", BAD, ids=[name for name, *_ in BAD])
def test_bad_requests(shared, case):
    _, path, expected, says = case
    status, headers, body = shared.get(path)
    assert (status, headers["content-type"]) == (expected, "application/json"), body
    found = json.loads(body)
    assert list(found) == ["error"] and says in found["error"]
    assert found["error"].endswith(".") and "Traceback" not in found["error"] and len(found["error"]) < 400


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One service for all requests that change nothing."""
    from fastwin.store import PaneStore

    url = f"rocksdb:{tmp_path_factory.mktemp('shared') / 'store'}"
    with PaneStore.open(url, SPEC) as store:
        table = clicks(2_000)
        put_clicks(store, table)
        with serving(store, url, table, Settings(hosts=known_names("127.0.0.2"))) as service:
            yield service


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_only_get(shared, method):
    status, _, body = shared.get("/api/current", method=method)
    assert status == 405 and json.loads(body) == {"error": "Only GET is known here."}


def test_query_string_of_a_megabyte(shared):
    """The server stops reading long before it has it all, and says so."""
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as client:
        hung_up, answer = False, b""
        try:
            client.sendall(b"GET /api/current?key=" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        except OSError:
            hung_up = True
        try:
            while part := client.recv(65_536):
                answer += part
        except ConnectionResetError:
            hung_up = True
    if answer or not hung_up:
        assert answer.split()[1].startswith(b"4")
    assert b"Traceback" not in answer
    assert shared.json("/api/store")


def test_garbage_instead_of_http(shared):
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        answer = client.recv(65_536)
    assert answer.split()[1] == b"400" and b"Traceback" not in answer


def test_foreign_name_of_host_is_refused(shared):
    """So a web page elsewhere cannot read the service through a name that it points at the loopback."""
    for name in ("evil.example", "127.0.0.3", "", ":80", "::1"):
        assert shared.get("/api/store", {"Host": name})[0] == 421
    for name in (f"localhost:{shared.port}", "localhost", "127.0.0.2:80", "[::1]", f"[::1]:{shared.port}"):
        assert shared.get("/api/store", {"Host": name})[0] == 200


def test_a_slash_too_many_is_taken_back(shared):
    """By a path alone: behind a proxy with TLS, the client knows another scheme and name than the service does."""
    status, headers, _ = shared.get("/api/current/?window=6h", {"Host": "localhost", "X-Forwarded-Proto": "https"})
    assert (status, headers["location"]) == (307, "/api/current?window=6h")
    assert shared.get("/static/page.js/")[1]["location"] == "/static/page.js"


def test_token(make_service):
    service = make_service(Settings(token="very secret"))
    for headers, says in (
        ({}, "is missing"),
        ({"Authorization": "Bearer wrong"}, "is wrong"),
        ({"Authorization": "Bearer very secre"}, "is wrong"),
    ):
        status, answered, body = service.get("/api/current", headers)
        assert status == 401 and answered["www-authenticate"] == "Bearer"
        assert says in json.loads(body)["error"]
    for scheme in ("Bearer", "bearer"):  # of any case, says HTTP
        assert service.get("/api/current", {"Authorization": f"{scheme} very secret"})[0] == 200
    assert service.get("/api/current", {"Authorization": "Basic very secret"})[0] == 401
    assert service.get("/")[0] == 200  # the empty page


def test_empty_store_is_no_fault(make_service):
    service = make_service(table=clicks(0))
    for path in ("/api/current", "/readyz"):
        status, headers, body = service.get(path)
        assert status == 503 and "holds no panes yet" in json.loads(body)["error"] and headers["retry-after"]
    assert service.get("/healthz")[0] == 200


def test_probes_need_no_token(make_service):
    service = make_service(Settings(token="very secret"))
    assert service.json("/healthz") == {"healthy": True}
    assert service.json("/readyz") == {"ready": True, "watermark": END, "version": 1}


def test_probes_tell_no_details(make_service, tmp_path, caplog):
    """Addresses and paths are for the log, and for those who have the token."""
    service = make_service(Settings(token="very secret"))
    service.store.close()
    shutil.rmtree(tmp_path / "store0")
    time.sleep(0.25)
    status, headers, body = service.get("/readyz")
    assert status == 503 and headers["retry-after"]
    assert json.loads(body) == {
        "error": "The store does not answer as it should; the service's log says why.",
        "reason": "store",
    }
    assert str(tmp_path) in caplog.text
    assert str(tmp_path) in service.get("/api/store", {"Authorization": "Bearer very secret"})[2].decode()


def test_page_needs_nothing_from_elsewhere(shared):
    for path in ("/", "/static/page.css", "/static/page.js", "/static/draw.js"):
        status, headers, body = shared.get(path)
        assert status == 200
        assert b"http://" not in body and b"https://" not in body and b"//cdn" not in body
        assert "default-src 'none'" in headers["content-security-policy"]
    status, headers, body = shared.get("/static/plotly.min.js", {"Accept-Encoding": "gzip"})
    assert status == 200 and headers["content-encoding"] == "gzip" and len(body) < 2_500_000
    assert shared.get("/static/plotly.min.js", {"If-None-Match": headers["etag"]})[0] == 304


def test_bad_requests_slow_nobody_down(service):
    """While many ask nonsense, every sensible question is answered."""
    stop = threading.Event()

    def nonsense():
        while not stop.is_set():
            for _, path, *_ in BAD[::3]:
                service.get(path)

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(nonsense) for _ in range(4)]
        try:
            answers = [service.json(f"/api/current?limit={limit}") for limit in range(1, 40)]
        finally:
            stop.set()
        for one in asking:
            one.result(60)
    assert all(len(answer["rows"]) == min(limit, 5) for limit, answer in enumerate(answers, 1))


def test_many_readers_at_once(service):
    expected = service.json("/api/current")

    def read(_number):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        found = []
        for _ in range(10):
            connection.request("GET", "/api/current")
            answer = connection.getresponse()
            found.append((answer.status, json.loads(answer.read())))
        connection.close()
        return found

    with ThreadPoolExecutor(50) as pool:
        for found in pool.map(read, range(50), timeout=120):
            assert found == [(200, expected)] * 10
