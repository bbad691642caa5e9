"""Slow questions: they wait for each other, so many and no more, and nobody else waits for them."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from fastwin.serve.answers import Answers
from fastwin.serve.kept import Kept
from fastwin.serve.metrics import Metrics
from fastwin.serve.turns import BusyError, Turns
from fastwin.store import PaneStore
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, clicks
from tests.support.service import SPEC, put_clicks

END = FIRST + 30 * HOUR


@pytest.fixture
def store(tmp_path):
    with PaneStore.open(f"rocksdb:{tmp_path / 'store'}", SPEC) as opened:
        put_clicks(opened, clicks(2_000, modules=30))
        yield opened


@pytest.fixture
def asked(monkeypatch):
    """The bounds of each window that the store is asked for."""
    windows: list[tuple] = []
    query = PaneStore.query
    monkeypatch.setattr(
        PaneStore, "query", lambda self, keys, *bounds: windows.append(bounds) or query(self, keys, *bounds)
    )
    return windows


def test_any_number_of_rows_is_cut_out_of_one_answer(store, asked, monkeypatch):
    monkeypatch.setattr("fastwin.serve.answers._FRESH_SECONDS", 600.0)
    answers = Answers(lambda: store)
    whole = json.loads(answers.current({"limit": ["1000"]}))
    assert len(whole["rows"]) == whole["total"] == 30
    for limit in (1, 2, 29, 30, 31, 1_000):
        found = answers.current({"limit": [str(limit)]})
        assert json.loads(found) == whole | {"rows": whole["rows"][:limit]}
        assert answers.at_once("current", {"limit": [str(limit)]}) == found
    assert asked == [(END - DAY, END)]
    assert list(whole)[-2:] == ["total", "rows"]
    (one,) = json.loads(answers.current({"key": ["module 7"]}))["rows"]
    assert one == next(row for row in whole["rows"] if row["key"] == "module%207")
    assert json.loads(answers.current({"end": [str(FIRST - DAY)]}))["rows"] == []
    answers.close()


def test_turns():
    turns, lock = Turns(1, 2), threading.Lock()
    done: list[int] = []

    def work(number: int) -> None:
        with turns.one(), turns.behind(lock):
            done.append(number)

    with ThreadPoolExecutor(2) as pool:
        with turns.one():
            waiting = [pool.submit(work, number) for number in range(2)]
            end = time.monotonic() + 20
            while turns._waiting < 2:
                assert time.monotonic() < end
                time.sleep(0.001)
            with pytest.raises(BusyError, match="2 questions wait for their turn already") as told:
                work(2)
            assert told.value.status == 503
            assert done == []
        for one in waiting:
            one.result(20)
    work(3)
    assert sorted(done) == [0, 1, 3] and turns._waiting == 0


def test_answer_that_is_not_kept_is_for_all_who_waited():
    """As where a batch ended while it was made: nobody makes it again."""
    turns, released, made = Turns(1, 20), threading.Event(), []
    kept = Kept(1_000, Metrics(), turns)

    def make() -> tuple[bytes, bool]:
        assert released.wait(20)
        made.append(1)
        return b"answer", False

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(kept.once, "question", make) for _ in range(5)]
        end = time.monotonic() + 20
        while turns._waiting < 4:
            assert time.monotonic() < end
            time.sleep(0.001)
        released.set()
        assert [one.result() for one in asked] == [b"answer"] * 5
    assert made == [1] and len(kept) == 0 and not kept._making
    assert kept.once("question", make) == b"answer" and made == [1, 1]


def test_answer_that_comes_just_before_it_is_made(monkeypatch):
    kept = Kept(1_000, Metrics(), Turns(1, 20))
    kept.keep("question", b"answer", 6)
    part, missed = kept.part, iter([None])
    monkeypatch.setattr(kept, "part", lambda question: next(missed, part(question)))
    assert kept.once("question", lambda: pytest.fail("it is there")) == b"answer" and not kept._making


def test_slow_questions_hold_up_nobody_else(make_service, monkeypatch):
    """Those beyond the limit are told to come again; what needs no turn is answered at once."""
    monkeypatch.setattr("fastwin.serve.answers._WAITING", 20)
    released = threading.Event()
    query = PaneStore.query

    def slow(self, *arguments, **options):
        assert released.wait(60)
        return query(self, *arguments, **options)

    monkeypatch.setattr(PaneStore, "query", slow)
    service = make_service()
    paths = [f"/api/current?end={END - at * 3 * MINUTE}" for at in range(45)]
    with ThreadPoolExecutor(len(paths)) as pool:
        try:
            asked = [pool.submit(service.get, path) for path in paths]
            end = time.monotonic() + 15
            while sum(one.done() for one in asked) < 21:
                assert time.monotonic() < end, "all of them wait"
                wait(asked, 0.05)
            for one in asked:
                if one.done():
                    status, headers, body = one.result()
                    assert (status, headers["retry-after"]) == (503, "2")
                    assert json.loads(body) == {
                        "error": "20 questions wait for their turn already; ask again in a moment."
                    }
            assert service.json("/readyz")["ready"] and service.json("/api/store")["watermark"] == END
            assert service.get("/metrics")[0] == 200
        finally:
            released.set()
        statuses = sorted(one.result()[0] for one in asked)
    assert statuses == [200] * 24 + [503] * 21


def test_no_thread_is_to_be_had(make_service, store, monkeypatch):
    """As under a limit of the system: those who ask are told to come again, and are answered when it is over."""
    service, answers = make_service(), Answers(lambda: store)
    answers.current({})
    monkeypatch.setattr("fastwin.serve.answers._FRESH_SECONDS", 600.0)
    answers._seen = answers._seen[0], time.monotonic() - 400  # old enough to be looked at again
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if self.name.startswith("fastwin-"):
            raise RuntimeError("can't start new thread")
        start(self)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        for path in ("/api/current", "/readyz", "/metrics"):
            status, headers, body = service.get(path)
            assert (status, headers["retry-after"]) == (503, "2")
            assert json.loads(body) == {"error": "The service can start no more threads; ask again in a moment."}
        assert answers.at_once("current", {}) and not answers._looking
    for path in ("/api/current", "/readyz", "/metrics"):
        assert service.get(path)[0] == 200
    assert answers.at_once("current", {})
    end = time.monotonic() + 20
    while answers._looking or time.monotonic() - answers._seen[1] > 300:
        assert time.monotonic() < end
        time.sleep(0.001)
    answers.close()
