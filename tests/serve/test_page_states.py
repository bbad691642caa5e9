"""What the page says when there is nothing to show, when it may not ask, and when what it shows is old."""

import re
import shutil
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from fastwin.serve.answers import Answers
from fastwin.serve.app import Settings
from fastwin.serve.params import Query
from fastwin.store import PaneStore
from tests.support.browser import chromium
from tests.support.clicks import DAY, FIRST, HOUR, clicks
from tests.support.contrast import contrast
from tests.support.page import drawn, figures, settle, wait
from tests.support.service import SPEC, put_clicks

STATIC = Path(__file__).resolve().parents[2] / "fastwin" / "serve" / "static"


def state(driver) -> str:
    return driver.execute_script("return document.body.dataset.state")


def shown(driver, name: str) -> str:
    """Returns the text of an element; nothing while it is hidden."""
    return driver.find_element("id", name).text


def test_empty_then_filled(make_service, tmp_path):
    service = make_service(table=clicks(0))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        wait(driver, lambda d: state(d) == "empty")
        assert shown(driver, "state-title") == "No data yet"
        assert not driver.find_element("tag name", "main").is_displayed() and not shown(driver, "problem")
        put_clicks(service.store, clicks(500))
        settle(driver)
        assert not driver.find_element("id", "state").is_displayed()


def test_token_is_asked_for(make_service, tmp_path):
    service = make_service(Settings(token="very secret", refresh_ms=200))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        wait(driver, lambda d: state(d) == "token")
        for given in ("wrong", "very secret"):
            driver.find_element("id", "token").send_keys(given)
            driver.find_element("css selector", "#token-form button").click()
            if given == "wrong":
                wait(driver, lambda d: "The token is wrong" in shown(d, "state-text"))
        settle(driver)
        assert "secret" not in driver.current_url


def test_a_token_that_browsers_cannot_send(make_service, tmp_path):
    """It is wrong, and no fault of the service. A right one is taken from the address, also of a page that is open."""
    service = make_service(Settings(token="very secret", refresh_ms=200))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/#token=geheim%E2%80%A6")
        for _ in range(2):
            wait(driver, lambda d: state(d) == "token")
            assert shown(driver, "state-text") == "The token is wrong."
            assert driver.find_element("id", "token").is_displayed()
            driver.refresh()  # it is kept, and no more right than before
        wait(driver, lambda d: state(d) == "token")
        driver.execute_script("location.hash = 'token=very%20secret'")
        settle(driver)
        assert driver.current_url == f"http://127.0.0.1:{service.port}/"
        driver.execute_script("location.hash = 'chart-part'")
        wait(driver, lambda d: d.current_url.endswith("/#chart-part"))


def test_a_page_that_cannot_show_something_does_not_blame_the_service(make_service, tmp_path):
    service = make_service()
    fault = "addEventListener('DOMContentLoaded', () => Plotly.react = () => { throw new Error('no room'); }, true)"
    with chromium(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": fault})
        driver.get(f"http://127.0.0.1:{service.port}/")
        for _ in range(3):
            wait(driver, lambda d: state(d) == "broken")
            assert shown(driver, "problem") == "The page cannot show this: no room. The figures below are old."


def test_age_is_told_and_old_data_stands_out(make_service, tmp_path):
    now = int(time.time() * 1_000) // DAY * DAY - DAY
    old = clicks(500)
    fresh = old["ts"].cast(pa.int64()).to_numpy() - FIRST + now  # up to six hours ahead of the clock, at most
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        assert re.match(r"The data ends \d+ (months|years) ago\. Looked \d second", shown(driver, "age"))
        assert state(driver) == "stale"
        table = old.set_column(1, "ts", pa.array(fresh, pa.timestamp("ms", tz="UTC")))
        end = int(time.time() * 1_000) // 180_000 * 180_000
        panes = SPEC.panes().run(table).main
        panes = panes.filter(pa.array([start.timestamp() * 1_000 < end for start in panes["window_start"].to_pylist()]))
        service.store.put(panes, watermark=end)
        wait(driver, lambda d: state(d) == "fine")
        assert re.match(r"The data ends \d+ (second|minute)s? ago", shown(driver, "age"))


def test_broken_store_keeps_the_figures_and_says_so(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        before = figures(driver)
        service.store.close()
        shutil.rmtree(tmp_path / "store0")
        wait(driver, lambda d: state(d) == "broken")
        told = shown(driver, "problem")
        assert "there is no store at" in told and told.endswith("The figures below are old.")
        assert figures(driver) == before
        # Another store in its place: nothing of the old one stays.
        with PaneStore.open(f"rocksdb:{tmp_path / 'store0'}", SPEC) as store:
            put_clicks(store, clicks(300, modules=2, seed=4))
            wait(driver, lambda d: state(d) == "stale" and len(figures(d)) == 2)


def test_service_that_never_answered(make_service, tmp_path):
    service = make_service()
    service.store.close()
    shutil.rmtree(tmp_path / "store0")
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        wait(driver, lambda d: state(d) == "down")
        assert shown(driver, "state-title") == "The store does not answer"
        assert "there is no store at" in shown(driver, "state-text")


def test_figures_without_a_chart_are_as_old_as_they_are(make_service, tmp_path):
    """The first series is never answered."""
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/series*"]})
        driver.get(f"http://127.0.0.1:{service.port}/")
        wait(driver, lambda d: state(d) == "broken")
        told = "The service does not answer; trying again. The figures below are old."
        assert shown(driver, "problem") == told
        assert re.search(r"Looked \d+ seconds? ago\.$", shown(driver, "age"))
        # The alarm is read out once, however often the page asks: nobody writes it again.
        driver.execute_script("""window.written = 0;
            new MutationObserver(found => window.written += found.length).observe(
                document.getElementById('problem'), {childList: true, characterData: true, subtree: true})""")
        script = "return performance.getEntriesByType('resource').filter(e => e.name.includes('/api/store')).length"
        before = driver.execute_script(script)
        wait(driver, lambda d: d.execute_script(script) > before + 5)
        assert shown(driver, "problem") == told and driver.execute_script("return window.written") == 0
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        settle(driver)


def test_service_that_stops_answering(make_service, tmp_path, monkeypatch):
    """The page does not wait for ever, and finds the service again. Its 20 seconds are half a one here."""
    released = threading.Event()
    released.set()
    answered = Answers.store

    def store(self: Answers, query: Query) -> bytes:
        released.wait(30)
        return answered(self, query)

    monkeypatch.setattr(Answers, "store", store)
    service = make_service()
    shorter = "const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 40);"
    with chromium(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": shorter})
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        released.clear()
        try:
            wait(driver, lambda d: state(d) == "broken", 15)
            assert shown(driver, "problem").startswith("The service does not answer; trying again. The figures below")
        finally:
            released.set()
        wait(driver, lambda d: state(d) == "stale")


def colours(driver) -> dict[str, str]:
    return dict(driver.execute_script("return document.getElementById('chart').data.map(t => [t.name, t.line.color])"))


def test_colours_belong_to_keys_and_nothing_chosen_draws_nothing(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        before = colours(driver)
        assert len(set(before.values())) == 3

        def press(name: str) -> None:
            driver.execute_script(
                "[...document.querySelectorAll('#figures button')].find(b => b.dataset.key === arguments[0]).click()",
                name.replace(" ", "%20"),
            )

        first, *others = before
        press(first)
        wait(driver, lambda d: len(drawn(d)) == 4)
        assert colours(driver) == {name: before[name] for name in others}
        press(first)
        wait(driver, lambda d: len(drawn(d)) == 6)
        assert colours(driver) == before
        for name in before:
            press(name)
        wait(driver, lambda d: drawn(d) is None)
        assert "Nothing is chosen" in shown(driver, "chart-hint")


def test_gaps_where_there_is_no_data(make_service, tmp_path):
    """Before the first pane there is nothing, which is no zero."""
    service = make_service(table=clicks(300, hours=3))
    found = service.json("/api/series?key=module%201&window=1h&range=12h&step=1h")
    since = service.json("/api/store")["since"]
    assert [value is None for value in found["series"][0]["pv"]] == [time <= since for time in found["times"]]
    assert found["series"][0]["pv"].count(None) == 9
    future = service.json(f"/api/series?key=module%201&window=1h&range=6h&step=1h&end={FIRST + 6 * HOUR}")
    assert [value is None for value in future["series"][0]["uv"]] == [False] * 3 + [True] * 3
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        _, _, values = drawn(driver)[0]
        assert values[0] is None and values[-1] > 0


@pytest.mark.parametrize(("name", "card"), [("COLOURS", "#ffffff"), ("DARK_COLOURS", "#1a222a")])
def test_lines_stand_out_from_the_card(name, card):
    text = (STATIC / "draw.js").read_text()
    lines = re.findall(r"#[0-9a-f]{6}", re.search(rf"const {name} = \[(.*)\]", text)[1])
    assert len(set(lines)) == 6
    for line in lines:
        assert contrast(line, card) >= 3, line
