"""What the page makes of values and keys that are no plain numbers and words."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.serve.app import Settings
from fastwin.store import PaneStore
from tests.support.browser import chromium
from tests.support.clicks import FIRST, clicks, spec_of
from tests.support.page import drawn, settle, wait
from tests.support.service import serving

LINK = '<a href="https://elsewhere.test/">x</a>'
SPEC = spec_of(
    "1 hour", "3 minutes", pv=fw.Count(), paid=fw.Sum("paid"), best=fw.TopK("user", 2), some=fw.Collect("user")
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


def test_lists_decimals_and_markup(driver, tmp_path):
    """Lists are told, decimals sorted as numbers, and a key is a text also in the chart."""
    rows = [(LINK, "9.00", "<i>ann</i>"), (LINK, "0.50", "bob"), (LINK, "0.00", "bob"), ("home", "100.00", "eve")]
    modules, paid, users = zip(*rows, strict=True)
    times = pa.array([FIRST] * len(rows), pa.timestamp("ms", tz="UTC"))
    paid = pa.array(map(Decimal, paid), pa.decimal128(9, 2))
    table = pa.table({"module": modules, "ts": times, "paid": paid, "user": users})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, SPEC) as store:
        store.put(SPEC.panes().run(table).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            wait(driver, drawn)
            script = """return [...document.querySelectorAll('#now-table tbody tr')].map(
                row => [...row.children].map(cell => cell.textContent))"""
            home, linked = ["home", "1", "100.00", "eve (1)", "eve"], [LINK, "3", "9.50", "bob (2), <i>ann</i> (1)"]
            found = driver.execute_script(script)
            assert [row[:4] for row in found] == [linked, home[:4]] and found[1] == home
            sort = driver.find_element("id", "sort")
            assert [option.text for option in sort.find_elements("tag name", "option")] == [
                "Page views",
                "paid",
                "Name",
            ]
            click = "[...document.querySelectorAll('#now-table th button')].find(b => b.textContent === 'paid').click()"
            driver.execute_script(click)
            assert [row[0] for row in driver.execute_script(script)] == ["home", LINK]
            legend = "return [...document.querySelectorAll('#chart .legendtext')].map(x => x.textContent)"
            wait(driver, lambda d: set(d.execute_script(legend)) == {"home", LINK})
            assert not driver.execute_script("return document.querySelectorAll('#chart a').length")


def test_long_texts_stay_in_their_figures(driver, tmp_path):
    spec = spec_of("1 hour", "3 minutes", pv=fw.Count(), best=fw.TopK("path", 3))
    paths = [f"/{'verylong' * 24}{i}/index.html" for i in range(3)]
    times = pa.array([FIRST] * 4, pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a", "a", "a", "b"], "ts": times, "path": [*paths, "/"]})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            wait(driver, drawn)
            beyond = """return [...document.querySelectorAll('#figures b')].filter(b =>
                b.getBoundingClientRect().right > b.closest('button').getBoundingClientRect().right + 1).length"""
            assert driver.execute_script(beyond) == 0
            assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
            whole = driver.execute_script("return document.querySelector('#figures b.text').title")
            assert all(path in whole for path in paths)
            hidden = "const b = document.querySelector('#figures b.text'); return b.scrollHeight > b.clientHeight"
            assert driver.execute_script(hidden)
            driver.execute_script("document.querySelector('#figures b.text').closest('button').focus()")
            assert not driver.execute_script(hidden)


def test_durations_are_sorted_by_how_long_they_are(driver, tmp_path):
    """Their texts sort otherwise."""
    spec = spec_of("1 hour", "3 minutes", took=fw.Max("took"), pv=fw.Count())
    took = {"nine hours": 9 * 3_600, "ten": 36_000, "days": 2 * 86_400 + 1, "a day": 100_000, "less than none": -1}
    times = pa.array([FIRST] * len(took), pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": list(took), "ts": times, "took": pa.array(list(took.values()), pa.duration("s"))})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            wait(driver, drawn)
            script = "return [...document.querySelectorAll('#now-table tbody tr')].map(r => r.firstChild.textContent)"
            assert driver.execute_script(script) == ["days", "a day", "ten", "nine hours", "less than none"]


def test_tumbling_windows_of_long_keys(driver, tmp_path):
    """None of the usual ranges of a chart is long enough, and kept long enough. The small lines take two questions."""
    windows = fw.TumblingEventTimeWindows.of("5 minutes")
    spec = fw.key_by("module").event_time("ts").window(windows).aggregate(pv=fw.Count())
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        panes = spec.panes().run(clicks(200, modules=1, hours=1)).main.slice(4)
        named = [panes.set_column(0, "module", pa.array([f"{at} " + "я" * 500] * len(panes))) for at in range(25)]
        store.put(pa.concat_tables(named))
        with serving(store, url, clicks(0), Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            settle(driver)
            options = driver.find_element("id", "range").find_elements("tag name", "option")
            assert [option.text for option in options] == ["20 minutes", "40 minutes"]
            assert [points for _, points, _ in drawn(driver)] == [8] * 3
            wait(driver, lambda d: len(d.find_elements("css selector", "#figures button svg")) == 25)


def test_numbers_are_shown_with_what_they_say(driver, tmp_path):
    """Small ones and large ones, of an aggregate whose name all objects of JavaScript have; panes below a second."""
    windows = fw.TumblingEventTimeWindows.of("250 ms")
    spec = fw.key_by("module").event_time("ts").window(windows).aggregate(constructor=fw.Mean("v"), pv=fw.Count())
    shares = {"few": 0.004, "fewer": 1.23456e-9, "less than none": -0.0012, "none": -0.0, "one": 1.005, "many": 2.5e22}
    times = [FIRST + 250 * at for at in range(20) for _ in shares]
    table = pa.table(
        {
            "module": [*shares] * 20,
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "v": pa.array([*shares.values()] * 20, pa.float64()),
        }
    )
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            wait(driver, drawn)
            script = """return [...document.querySelectorAll('#now-table tr')].map(
                row => [...row.children].map(cell => cell.textContent))"""
            head, *found = driver.execute_script(script)
            assert head == ["Key", "constructor", "Page views"]
            assert dict(row[:2] for row in found) == {
                "few": "0.004", "fewer": "1.23E-9", "less than none": "-0.0012", "none": "0", "one": "1.01", "many": "2.5E22",
            }  # fmt: skip
            assert "until 2024-01-01 00:00:05 UTC" in driver.find_element("id", "chart-hint").text
            script = "return [...document.querySelectorAll('#series-table tbody th')].map(cell => cell.textContent)"
            assert driver.execute_script(script)[:3] == [
                "2024-01-01 00:00:05",
                "2024-01-01 00:00:04.750",
                "2024-01-01 00:00:04.500",
            ]
            assert len(set(driver.execute_script("return document.getElementById('chart').data[0].x"))) > 3


def test_panes_of_a_second_have_ranges_and_lines_of_their_own(driver, tmp_path):
    spec = fw.key_by("module").event_time("ts").window(fw.SlidingEventTimeWindows.of("1 minute", "1 s"))
    spec = spec.aggregate(pv=fw.Count())
    url, table = f"rocksdb:{tmp_path / 'store'}", clicks(3_000, modules=2, hours=1)
    near = pc.less(table["ts"], pa.scalar(FIRST + 120_000, pa.timestamp("ms", tz="UTC")))
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table.filter(near)).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            settle(driver)
            options = driver.find_element("id", "window").find_elements("tag name", "option")
            assert [option.text for option in options] == [
                "1 second",
                "5 seconds",
                "15 seconds",
                "1 minute",
                "5 minutes",
            ]
            wait(driver, lambda d: "per 5 seconds over 1 minute" in d.find_element("id", "figures-hint").text)
            wait(driver, lambda d: len(d.find_elements("css selector", "#figures button svg")) == 2)
