"""Each state of the page in light, dark and on a phone: it fits, and its text stands out. FASTWIN_SCREENSHOTS keeps
pictures."""

import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

from fastwin.serve.app import Settings
from tests.support.browser import chromium
from tests.support.clicks import clicks
from tests.support.contrast import contrast, luminance
from tests.support.page import settle, wait
from tests.support.variants import variants

PANE = 180_000
SHOTS = os.environ.get("FASTWIN_SCREENSHOTS")
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 375), "dark phone": ("dark", 375)}
TEXTS = """
const shown = [...document.querySelectorAll('h1, h2, h3, p, button, label, th, td, summary, a, span, b, input')].filter(
    e => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && !e.closest('#chart') && (e.value
        || [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())));
const solid = e => {for (; e; e = e.parentElement) {const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== 'transparent') return c} return 'rgb(255, 255, 255)'};
return shown.map(e => [e.textContent.trim().slice(0, 40), getComputedStyle(e).color, solid(e)])
"""


def check_looks(driver, state: str) -> None:
    backgrounds = {}
    for look, (scheme, width) in LOOKS.items():
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        # A phone shows more of a page that is too wide for it.
        wait(driver, lambda d, width=width: d.execute_script("return innerWidth") == width, 10)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, (state, look)
        texts = driver.execute_script(TEXTS)
        assert texts, (state, look)
        for text, colour, behind in texts:
            assert contrast(colour, behind) >= 3, (state, look, text, colour, behind)
        backgrounds[look] = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            driver.save_screenshot(str(Path(SHOTS) / f"{state} {look}.png"))
    assert luminance(backgrounds["light"]) > 0.7 > 0.1 > luminance(backgrounds["dark"])


@pytest.mark.parametrize("state", variants(["empty", "token", "fine", "stale", "broken", "down"], "fine"))
def test_states_in_light_and_dark_and_on_a_phone(make_service, tmp_path, state):
    settings = Settings(token="very secret" if state == "token" else None, refresh_ms=200)
    table = clicks(0 if state == "empty" else 500)
    if state == "fine":  # up to now
        end = int(time.time() * 1_000) // PANE * PANE
        past = table["ts"].cast(pa.int64()).to_numpy()
        times = pa.array(past - past.max() + end - PANE - 1, pa.timestamp("ms", tz="UTC"))
        table = table.set_column(table.column_names.index("ts"), "ts", times)
    service = make_service(settings, table=table)
    with chromium(tmp_path / "profile") as driver:
        if state == "down":
            shutil.rmtree(tmp_path / "store0")
        driver.get(f"http://127.0.0.1:{service.port}/")
        if state == "broken":
            settle(driver)
            shutil.rmtree(tmp_path / "store0")
        wait(driver, lambda d: d.execute_script("return document.body.dataset.state") == state)
        if state in ("fine", "stale"):
            settle(driver)
        check_looks(driver, state)
