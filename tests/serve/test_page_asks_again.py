"""What was chosen, and not answered, or answered by a process that knew less, is asked again: without a new batch."""

import pytest

from fastwin.serve.app import Settings
from tests.support.browser import chromium
from tests.support.page import drawn, figures, settle, wait

QUICK = Settings(refresh_ms=200)
# The first answer to a question, changed as a slower process of the service would have given it.
OLDER = """
const real = window.fetch, asked = new Set();
window.fetch = async (url, options) => {
  const answer = await real(url, options);
  const name = String(url).split("?")[0];
  if (name !== "/api/%s" || asked.has(name)) return answer;
  asked.add(name);
  const body = await answer.json();
  body.stamp = "older";
  for (const row of body.rows ?? []) row.pv = 0;
  for (const series of body.series ?? []) series.pv = series.pv.map(() => 0);
  return new Response(JSON.stringify(body), { status: 200, headers: { "content-type": "application/json" } });
};
"""


def state(driver) -> str:
    return driver.execute_script("return document.body.dataset.state")


def shown(driver) -> tuple[dict, dict]:
    """Returns what cards and chart say; the order of the lines depends on what was chosen before."""
    return figures(driver), {name: values for name, _, values in drawn(driver) or []}


def choose(driver, name: str, text: str) -> None:
    """Chooses an option of a list by what it says."""
    script = """const [name, text] = arguments, list = document.getElementById(name);
        list.value = [...list.options].find(option => option.text === text).value;
        list.dispatchEvent(new Event("change"));"""
    driver.execute_script(script, name, text)


def block(driver, *urls: str) -> None:
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(urls)})


@pytest.mark.parametrize("blocked", ["current", "series"])
def test_a_choice_that_was_not_answered(make_service, tmp_path, blocked):
    service = make_service(QUICK)
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        day = shown(driver)
        choose(driver, "window", "1 hour")
        wait(driver, lambda d: shown(d)[0] != day[0] and shown(d)[1] not in ({}, day[1]))
        hour = shown(driver)
        choose(driver, "window", "24 hours")
        wait(driver, lambda d: shown(d) == day)
        block(driver, f"*/api/{blocked}*")
        choose(driver, "window", "1 hour")
        wait(driver, lambda d: state(d) == "broken")
        block(driver)
        wait(driver, lambda d: shown(d) == hour and state(d) != "broken")


@pytest.mark.parametrize("name", ["current", "series"])
def test_an_answer_of_an_older_version(make_service, tmp_path, name):
    service = make_service(QUICK)
    with chromium(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OLDER % name})
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        wait(driver, lambda d: all(numbers[0] for numbers in figures(d).values()))
        wait(driver, lambda d: any(any(values) for _, _, values in drawn(d) or []))


def test_a_browser_that_keeps_nothing(make_service, tmp_path):
    """It refuses to read and to write what a page would keep."""
    refuse = """for (const name of ["sessionStorage", "localStorage"])
        Object.defineProperty(window, name, { get() { throw new DOMException("refused", "SecurityError"); } });"""
    service = make_service(Settings(token="very secret", refresh_ms=200))
    with chromium(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": refuse})
        driver.get(f"http://127.0.0.1:{service.port}/")
        wait(driver, lambda d: state(d) == "token")
        driver.find_element("id", "token").send_keys("very secret")
        driver.find_element("css selector", "#token-form button").click()
        settle(driver)
