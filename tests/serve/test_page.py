"""The page in a real browser: the right figures, news as they come, on a phone, from the keyboard, from nowhere else."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from fastwin.serve.app import Settings
from tests.support.browser import chromium
from tests.support.clicks import DAY, FIRST, HOUR, clicks, counted, distinct
from tests.support.page import drawn, figures, settle, wait
from tests.support.service import put_clicks

END = FIRST + 30 * HOUR
SHOTS = os.environ.get("FASTWIN_SCREENSHOTS")
"""Set to a folder to have screenshots written there."""


def expected(table: pa.Table, start: int, end: int) -> dict[str, tuple[int, int]]:
    return {
        module: (row["pv"], distinct(table, module, start, end)) for module, row in counted(table, start, end).items()
    }


def shoot(driver, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(exist_ok=True)
        driver.execute_script("document.activeElement.blur()")
        height = driver.execute_script("return document.documentElement.scrollHeight")
        width = driver.execute_script("return innerWidth")
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": min(height, 2_400), "deviceScaleFactor": 1, "mobile": width < 500},
        )
        driver.save_screenshot(str(Path(SHOTS) / f"{name}.png"))


def complaints(driver) -> list[str]:
    """Returns what the browser's console has been told to be wrong."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def addresses(driver) -> set[str]:
    """Returns all addresses in a network that have been asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {url for url in sent if url.startswith(("http:", "https:", "ws:", "wss:"))}


def test_page_shows_and_follows(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        assert figures(driver) == expected(service.table, END - DAY, END)
        assert "24 hours until 2024-01-02 06:00 UTC" in driver.find_element("id", "until").text
        lines = drawn(driver)
        assert len(lines) == 6 and {points for _, points, _ in lines} == {480}
        top = max(figures(driver).items(), key=lambda item: item[1])
        assert lines[0][0] == top[0] and lines[0][2][-1] == top[1][0]
        assert lines[3][0] == top[0] and lines[3][2][-1] == top[1][1]
        shoot(driver, "page")

        # News: the page follows by itself.
        more = pa.concat_tables([service.table, clicks(700, hours=31, seed=9)])
        put_clicks(service.store, more)
        wait(driver, lambda d: figures(d) == expected(more, END + HOUR - DAY, END + HOUR))
        wait(driver, lambda d: drawn(d)[0][2][-1] == max(figures(d).values())[0])
        assert "07:00 UTC" in driver.find_element("id", "until").text

        # Another window, another range, another choice.
        from selenium.webdriver.support.ui import Select

        Select(driver.find_element("id", "window")).select_by_visible_text("1 hour")
        wait(driver, lambda d: figures(d) == expected(more, END, END + HOUR))
        Select(driver.find_element("id", "range")).select_by_visible_text("6 hours")
        wait(driver, lambda d: {points for _, points, _ in drawn(d)} == {120})
        driver.find_element("css selector", "#figures button[aria-pressed=true]").click()
        wait(driver, lambda d: len(drawn(d)) == 4)

        # The tables say the same as figures and chart.
        driver.find_element("css selector", "#now-details summary").click()
        rows = driver.execute_script(
            "return [...document.querySelectorAll('#now-table tbody tr')].map(r => [...r.children].map(c => c.textContent))"
        )
        assert {row[0]: (int(row[1]), int(row[2])) for row in rows} == figures(driver)
        driver.find_element("css selector", "#series-details summary").click()
        newest = driver.execute_script(
            "return [...document.querySelector('#series-table tbody tr').children].map(c => c.textContent)"
        )
        assert newest[0] == "2024-01-02 07:00"
        assert [int(text) for text in newest[1:]] == [line[2][-1] for line in (drawn(driver)[i] for i in (0, 2, 1, 3))]

        assert complaints(driver) == []
        assert {url.split("/")[2] for url in addresses(driver)} == {f"127.0.0.1:{service.port}"}


@pytest.mark.long
def test_phone(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile", 375, 812) as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        assert driver.execute_script("return innerWidth") == 375
        assert figures(driver) == expected(service.table, END - DAY, END)
        wide = """return [...document.querySelectorAll('body *')].filter(e => {
            const r = e.getBoundingClientRect();
            return r.width && (r.right > 376 || r.left < -1) && !e.closest('.scroll, .skip, svg') }).map(e => e.outerHTML.slice(0, 80))"""
        assert driver.execute_script(wide) == []
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 375
        small = """return [...document.querySelectorAll('button, select, input, summary')].filter(e =>
            e.getClientRects().length && e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 80))"""
        assert driver.execute_script(small) == []  # large enough for a finger
        shoot(driver, "page-phone")
        driver.find_element("css selector", "#now-details summary").click()
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 375
        assert complaints(driver) == []


def test_keyboard_and_screen_reader(make_service, tmp_path):
    from selenium.webdriver.common.keys import Keys

    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        # Everything that can be used has a name, and the tree of roles has what a reader looks for.
        nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
        nameless = [
            role for role, name in named if role in ("button", "combobox", "searchbox", "img", "form") and not name
        ]
        assert nameless == []
        roles = {role for role, _ in named}
        assert {"heading", "main", "form", "status", "combobox", "searchbox"} <= roles
        # A card is chosen from the keyboard, and keeps the focus although the figures are made anew.
        driver.execute_script("document.querySelector('#figures li:last-child button').focus()")
        key = driver.switch_to.active_element.get_attribute("data-key")
        assert driver.switch_to.active_element.get_attribute("aria-pressed") == "false"
        driver.switch_to.active_element.send_keys(Keys.SPACE)
        wait(driver, lambda d: len(drawn(d)) == 8)
        assert driver.switch_to.active_element.get_attribute("data-key") == key
        assert driver.switch_to.active_element.get_attribute("aria-pressed") == "true"
        driver.find_element("id", "find").send_keys("module 2")
        wait(driver, lambda d: list(figures(d)) == ["module 2"])


def test_token_and_faults_are_told(make_service, tmp_path):
    service = make_service(Settings(token="very secret", refresh_ms=200, title="Departures", labels={"pv": "Flights"}))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        told = driver.find_element("id", "state-text")
        wait(driver, lambda d: "The token is missing" in told.text)
        driver.get("about:blank")
        driver.get(f"http://127.0.0.1:{service.port}/#token=very%20secret")
        settle(driver)
        assert driver.title == "Departures"
        assert "Flights" in driver.find_element("id", "figures").text
        assert "secret" not in driver.current_url
        assert driver.find_element("id", "problem").get_attribute("hidden") == "true"


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "ключ, ~%"])
def test_odd_names_are_shown_as_they_are(make_service, tmp_path, name):
    table = clicks(200)
    table = table.set_column(0, "module", pa.array([name] * table.num_rows))
    service = make_service(table=table)
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        assert list(figures(driver)) == [name]
        assert {line[0] for line in drawn(driver)} == {name}
        assert complaints(driver) == []
