"""What one can do on the page beside choosing: sort, read times in one's own zone, compare at a glance."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from fastwin.serve.app import Settings
from tests.support.browser import chromium
from tests.support.clicks import DAY, FIRST, HOUR, clicks, counted
from tests.support.page import drawn, figures, settle, wait
from tests.support.service import SPEC, put_clicks

END = FIRST + 30 * HOUR


def names(driver) -> list[str]:
    return list(figures(driver))


def rows(driver) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll('#now-table tbody tr')].map(r => r.firstChild.textContent)"
    )


def heads(driver) -> dict[str, str]:
    """Returns what the heads of the table say of its order."""
    script = "return [...document.querySelectorAll('#now-table thead th')].map(h => [h.textContent, h.ariaSort])"
    return dict(driver.execute_script(script))


def click(driver, head: str) -> None:
    script = "[...document.querySelectorAll('#now-table th button')].find(b => b.textContent === arguments[0]).click()"
    driver.execute_script(script, head)


def test_sorting(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        drawn_before = {line[0] for line in drawn(driver)}
        found = figures(driver)
        ordered = [n for n, _ in found.values()]
        assert ordered == sorted(ordered, reverse=True) and names(driver) == rows(driver)
        assert heads(driver) == {"Key": "none", "Page views": "descending", "Unique visitors": "none"}

        def shows(place: int, wanted: list[int]) -> None:
            wait(driver, lambda d: names(d) == rows(d) and [each[place] for each in figures(d).values()] == wanted)

        click(driver, "Page views")
        shows(0, ordered[::-1])
        assert heads(driver)["Page views"] == "ascending"
        click(driver, "Unique visitors")
        shows(1, sorted((n for _, n in found.values()), reverse=True))
        assert driver.find_element("id", "sort").get_property("value") == "uv"
        Select(driver.find_element("id", "sort")).select_by_visible_text("Name")
        wait(driver, lambda d: names(d) == rows(d) == sorted(found) and heads(d)["Key"] == "ascending")
        assert {line[0] for line in drawn(driver)} == drawn_before  # what is drawn does not hang on it
        # From the keyboard: the head keeps the focus although the table is made anew.
        driver.find_element("css selector", "#now-details summary").click()
        driver.execute_script("document.querySelector('#now-table th button').focus()")
        ActionChains(driver).send_keys(Keys.ENTER).perform()
        wait(driver, lambda d: names(d) == sorted(found, reverse=True))
        wait(driver, lambda d: d.execute_script("return document.activeElement.textContent") == "Key")


@pytest.mark.long
def test_more_keys_than_are_asked_for_are_sorted_by_the_store(make_service, tmp_path):
    """The first thousand by views are other ones than by visitors."""
    table = clicks(6_000, modules=1_200, hours=2)
    service = make_service(table=table)
    end = FIRST + 2 * HOUR
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        assert len(rows(driver)) == 1_000
        Select(driver.find_element("id", "sort")).select_by_visible_text("Unique visitors")
        best = max(row["uv"] for row in service.json("/api/current?sort=uv&limit=1")["rows"])
        wait(driver, lambda d: next(iter(figures(d).values()))[1] == best)
        assert f"{len(counted(table, end - DAY, end)) - 60:,} more" in driver.find_element("id", "figures-more").text


@pytest.mark.long
def test_more_keys_than_the_page_has(make_service, tmp_path):
    """It says what it has, and what it does not know."""
    service = make_service(table=clicks(6_000, modules=1_200, hours=2))
    total = service.json("/api/current?limit=1")["total"]
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        caption = "return document.querySelector('#now-table caption').textContent"
        for name, by in (("Name", "Page views"), ("Unique visitors", "Unique visitors")):
            Select(driver.find_element("id", "sort")).select_by_visible_text(name)
            told = f"24 hours until 2024-01-01 02:00 UTC. 1,000 of {total:,} keys, those with the highest {by}"
            wait(driver, lambda d, told=told: d.execute_script(caption) == told)
        driver.find_element("id", "find").send_keys("nobody")
        told = f"None of the 1,000 in the table has that name; {total - 1_000} more are in the store."
        wait(driver, lambda d: d.find_element("id", "figures-more").text == told)


def test_keys_that_are_gone_for_a_while_stay_chosen(make_service, tmp_path):
    """They are drawn again, in their colours, when they have something in the window again."""
    table = clicks(600, hours=12)
    hour = clicks(20, modules=1, hours=1).set_column(0, "module", pa.array(["rare"] * 20))
    service = make_service(table=pa.concat_tables([table, hour]).sort_by("ts"))
    colours = "return Object.fromEntries(document.getElementById('chart').data.map(t => [t.name, t.line.color]))"
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)

        def press(name: str) -> None:
            driver.find_element("css selector", f"#figures button[data-key='{name.replace(' ', '%20')}']").click()

        first = next(iter(figures(driver)))
        press("rare")
        wait(driver, lambda d: len(d.execute_script(colours)) == 4)
        before = driver.execute_script(colours)
        window = Select(driver.find_element("id", "window"))
        window.select_by_visible_text("1 hour")
        wait(driver, lambda d: "rare" not in d.execute_script(colours))
        press(first)  # another choice, while it is not there
        wait(driver, lambda d: first not in d.execute_script(colours))
        window.select_by_visible_text("24 hours")
        wait(driver, lambda d: "rare" in d.execute_script(colours))
        assert driver.execute_script(colours) == {name: before[name] for name in before if name != first}


def test_page_stays_where_it_was_scrolled_to(make_service, tmp_path):
    """Also with each batch after a click on a figure, which keeps the focus."""
    service = make_service()
    with chromium(tmp_path / "profile", height=400) as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        driver.find_element("css selector", "#figures button").click()
        wait(driver, lambda d: len(drawn(d)) == 4)
        driver.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
        before, found = driver.execute_script("return scrollY"), figures(driver)
        put_clicks(service.store, pa.concat_tables([service.table, clicks(700, hours=31, seed=9)]))
        wait(driver, lambda d: figures(d) != found)
        assert driver.execute_script("return document.activeElement.dataset.key")
        assert driver.execute_script("return scrollY") == before > 300


def test_no_key_has_anything(make_service, tmp_path):
    service = make_service(table=clicks(50, hours=1))
    service.store.put(SPEC.panes().run(clicks(50, hours=1)).main, watermark=END + DAY)
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        told = "No key has anything in this window."
        wait(driver, lambda d: d.find_element("id", "figures-more").text == told)


@pytest.mark.long
def test_time_zone(make_service, tmp_path):
    zone, until, first = "America/St_Johns", "2024-01-02 02:30 America/St Johns", "2024-01-01 02:33:00"
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        zones = [option.get_attribute("value") for option in Select(driver.find_element("id", "zone")).options]
        assert zones[0] == "UTC" and len(zones) == len(set(zones)) > 300
        Select(driver.find_element("id", "zone")).select_by_value(zone)
        for _ in range(2):
            assert driver.find_element("id", "until").text == f"24 hours until {until}"
            times = driver.execute_script("return document.getElementById('chart').data[0].x")
            assert times[0] == first and times[-1] == until[:16] + ":00"
            table = driver.execute_script("return document.querySelector('#series-table').textContent")
            assert f"Window until ({until[17:]})" in table and until[:16] in table
            driver.refresh()  # the choice is kept
            settle(driver)


def test_the_hour_that_clocks_show_twice(make_service, tmp_path):
    """At the end of summer time no two windows of the table have the same name, nor are two at one place of the chart."""
    table = clicks(3_000, hours=12)
    times = pc.add(table["ts"], pa.scalar(300 * DAY - 6 * HOUR, pa.duration("ms")))  # until 2024-10-27 06:00 UTC
    service = make_service(table=table.set_column(1, "ts", times))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        Select(driver.find_element("id", "zone")).select_by_value("Europe/Berlin")
        script = "return [...document.querySelectorAll('#series-table tbody tr')].map(r => r.firstChild.textContent)"
        names = driver.execute_script(script)[::-1]
        assert len(set(names)) == len(names) == 480
        change = names.index("2024-10-27 02:00 +01:00")
        assert names[change - 21 : change - 19] == ["2024-10-27 01:57", "2024-10-27 02:00 +02:00"]
        assert names[change - 1] == "2024-10-27 02:57 +02:00" and names[change + 20] == "2024-10-27 03:00"
        assert names[-1] == "2024-10-27 07:00"
        times = driver.execute_script("return document.getElementById('chart').data[0].x")
        assert times == sorted(set(times)) and len(times) == 480
        assert times[change - 20] == "2024-10-27 01:00:00" and times[change] == "2024-10-27 02:00:00"
        note = "Clocks go back within it; the chart has all times at +01:00."
        assert driver.find_element("id", "chart-hint").text.endswith(note)
        Select(driver.find_element("id", "zone")).select_by_value("UTC")
        assert note not in driver.find_element("id", "chart-hint").text


def test_lines_and_bars_beside_the_figures(make_service, tmp_path):
    service = make_service(table=clicks(3_000, modules=6, hours=12))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        wait(driver, lambda d: len(d.find_elements("css selector", "#figures svg path")) == 6)
        assert "Lines: Page views per hour over 24 hours" in driver.find_element("id", "figures-hint").text
        key = driver.find_element("css selector", "#figures button").get_attribute("data-key")
        found = service.json(f"/api/series?key={key.replace('%', '%25')}&window=1h&step=1h&range=24h")
        values = found["series"][0]["pv"]
        assert values[:12] == [None] * 12  # nothing is known of before, so nothing is drawn
        path = driver.find_element("css selector", "#figures path").get_attribute("d")
        points = [tuple(map(float, each.split("h0.1")[0].split())) for each in path.replace("M", "L").split("L")[1:]]
        assert [x for x, _ in points] == pytest.approx([100 * i / 23 for i in range(12, 24)], abs=0.06)
        assert [y for _, y in points] == pytest.approx([23 - 22 * v / max(values[12:]) for v in values[12:]], abs=0.06)
        script = "return [...document.querySelectorAll('#figures .bar')].map(b => Number(b.style.getPropertyValue('--share')))"
        shares = driver.execute_script(script)
        views = [row[0] for row in figures(driver).values()]
        assert shares == pytest.approx([each / views[0] for each in views])


@pytest.mark.long
def test_chart_is_whole_when_the_window_changes_its_size(make_service, tmp_path):
    service = make_service()
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        for width in (1280, 375, 900):
            size = {"width": width, "height": 1_700, "deviceScaleFactor": 1, "mobile": width < 500}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            script = """const box = document.getElementById("chart").getBoundingClientRect();
                const svg = document.querySelector("#chart .main-svg").getBoundingClientRect();
                return [...document.querySelectorAll("#chart :is(.legend, .xtick)")].map(e => e.getBoundingClientRect())
                    .filter(e => e.bottom > box.bottom || e.right > box.right + 30).length === 0 && svg.right <= box.right + 1"""
            wait(driver, lambda d, script=script: d.execute_script(script))


def test_figures_that_need_no_second_question(make_service, tmp_path):
    """Small lines are asked for once while their hour lasts, and not with each look."""
    service = make_service(Settings(refresh_ms=200))
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"http://127.0.0.1:{service.port}/")
        settle(driver)
        wait(driver, lambda d: d.find_elements("css selector", "#figures svg path"))
        script = "return performance.getEntriesByType('resource').filter(e => /api.(\\w+)/.exec(e.name)?.[1] === arguments[0]).length"
        asked = driver.execute_script(script, "series")
        before = driver.execute_script(script, "store")
        wait(driver, lambda d: d.execute_script(script, "store") > before + 3)
        assert driver.execute_script(script, "series") == asked == 2
