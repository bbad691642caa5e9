"""What the page makes of values and keys that are no plain numbers and words."""

from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise

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


@contextmanager
def shown(driver, folder, spec, table):
    """Shows a store of a table's windows, for as long as the context lasts, and yields its service."""
    url = f"rocksdb:{folder / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        with serving(store, url, table, Settings()) as service:
            driver.get(f"http://127.0.0.1:{service.port}/")
            wait(driver, lambda d: d.execute_script("return document.body.dataset.state") == "stale")
            yield service


def cells(driver, name: str) -> list[list[str]]:
    script = """return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map(
        row => [...row.children].map(cell => cell.textContent))"""
    return driver.execute_script(script, name)


def test_many_aggregates_have_a_chart_each(driver, tmp_path):
    """None lies on another one, however many there are; and a name is whole under the mouse."""
    spec = spec_of("1 hour", "3 minutes", **{f"n{at}": fw.Sum("x") for at in range(12)})
    table = clicks(200, modules=1, hours=2)
    table = table.set_column(0, "module", pa.array(["a name of more than 15 characters"] * 200))
    with shown(driver, tmp_path, spec, table):
        wait(driver, drawn)
        script = """const all = document.getElementById('chart')._fullLayout;
            const axes = Object.keys(all).filter(name => /^yaxis/.test(name));
            return axes.map(name => [all[name]._offset, all[name]._length])"""
        places = sorted(driver.execute_script(script))
        assert len(places) == 12 and all(height > 130 for _, height in places)
        assert all(top + height + 20 < below for (top, height), (below, _) in pairwise(places))
        driver.execute_script(
            "const c = document.getElementById('chart');"
            "Plotly.Fx.hover(c, {xval: Date.parse(c.data[0].x[3] + 'Z')}, 'xy')"
        )
        told = "return [...document.querySelectorAll('#chart .hoverlayer text')].map(t => t.textContent).join()"
        wait(driver, lambda d: "a name of more than 15 characters" in d.execute_script(told))


def test_values_below_zero_have_bars_and_lines(driver, tmp_path):
    values = {"up": 30, "none": None, "down": -10}
    times = [FIRST + at * 180_000 for at in range(20) for _ in values]
    table = pa.table(
        {
            "module": [*values] * 20,
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "paid": pa.array([*values.values()] * 20).cast(pa.decimal128(21, 2)),
        }
    )
    with shown(driver, tmp_path, spec_of("1 hour", "3 minutes", paid=fw.Sum("paid")), table):
        wait(driver, drawn)
        assert {name: line[-1] for name, _, line in drawn(driver)} == {"up": 600, "none": None, "down": -200}
        script = """return [...document.querySelectorAll('#figures button')].map(b => [
            b.querySelector('.name').textContent, ...['--from', '--share'].map(
                name => Number(b.querySelector('.bar').style.getPropertyValue(name)))])"""
        bars = {name: ends for name, *ends in driver.execute_script(script)}
        assert bars == {"up": [0.25, 1], "none": [0.25, 0.25], "down": [0, 0.25]}
        script = "return document.querySelector('#figures button[data-key=down] path')?.getAttribute('d')"
        assert wait(driver, lambda d: d.execute_script(script)).split("h0.1")[0] == "M0.0 23.0"


def test_values_beyond_what_javascript_holds(driver, tmp_path):
    """Whole numbers are exact, a time beyond its dates is the number, and none of a list of times is one."""
    far, late = 9_000_000_000_000_000, 327_403_382_400_000  # the year 12345
    times = pa.array([FIRST, FIRST + 1], pa.timestamp("ms", tz="UTC"))
    table = pa.table(
        {
            "module": ["a", "b"],
            "ts": times,
            "big": [2**60 + 1, 2**60 + 2],
            "far": pa.array([far, -far], pa.timestamp("ms")),
            "late": pa.array([late, late + 250], pa.timestamp("ms")),
        }
    )
    spec = spec_of(
        "1 hour", "3 minutes", big=fw.Max("big"), far=fw.Max("far"), late=fw.Max("late"), some=fw.Collect("ts"),
        best=fw.TopK("ts", 1),
    )  # fmt: skip
    with shown(driver, tmp_path, spec, table):
        wait(driver, drawn)
        for zone in ("UTC", "Asia/Tokyo"):
            hour = "00:00" if zone == "UTC" else "09:00"
            driver.execute_script(
                "const z = document.getElementById('zone'); z.value = arguments[0];"
                "z.dispatchEvent(new Event('change'))",
                zone,
            )
            day = f"2024-01-01 {hour}"
            assert cells(driver, "now-table") == [
                ["b", f"{2**60 + 2:,}", str(-far), f"12345-01-01 {hour}:00.250", f"{day}:00.001", f"{day}:00.001 (1)"],
                ["a", f"{2**60 + 1:,}", str(far), f"12345-01-01 {hour}", day, f"{day} (1)"],
            ]
        assert drawn(driver)[0][2][-1] == float(2**60)


def test_nothing_that_can_be_drawn(driver, tmp_path):
    times = pa.array([FIRST], pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a"], "ts": times, "took": pa.array([5], pa.duration("s"))})
    with shown(driver, tmp_path, spec_of("1 hour", "3 minutes", took=fw.Max("took")), table):
        told = driver.find_element("id", "chart-hint")
        wait(driver, lambda d: told.text == "None of the figures is a number that can be drawn.")
        assert not driver.find_element("id", "chart").is_displayed()
        assert cells(driver, "now-table") == [["a", "0:00:05"]]


def test_a_store_without_keys_has_one_of_all(driver, tmp_path):
    windows = fw.SlidingEventTimeWindows.of("1 hour", "3 minutes")
    spec = fw.key_by().event_time("ts").window(windows).aggregate(pv=fw.Count())
    with shown(driver, tmp_path, spec, clicks(50, hours=1)) as service:
        wait(driver, drawn)
        assert cells(driver, "now-table") == [["all", "50"]] and drawn(driver)[0][0] == "all"
        (series,) = service.json("/api/series")["series"]
        assert (series["key"], series["pv"][-1]) == ("", 50)
        assert service.get("/api/series?key=a")[0] == 404
