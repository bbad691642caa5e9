"""What the page shows, read out of a browser."""

import html
from typing import Any

__all__ = ["drawn", "figures", "settle", "wait"]


def figures(driver: Any) -> dict[str, tuple[int, ...]]:
    """Returns what the cards say."""
    script = """return [...document.querySelectorAll('#figures button')].map(
        b => [b.querySelector('.name').textContent, ...[...b.querySelectorAll('b')].map(x => x.textContent)])"""
    return {name: tuple(int(n.replace(",", "")) for n in numbers) for name, *numbers in driver.execute_script(script)}


def wait(driver: Any, condition: Any, seconds: float = 40) -> Any:
    """Waits until a condition of the driver holds, and returns what it gives."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds, poll_frequency=0.1).until(condition)


def drawn(driver: Any) -> list[tuple[str, int, list]] | None:
    """Returns the lines that Plotly has drawn: name, number of points and values; None where nothing is drawn."""
    lines = driver.execute_script(
        "const c = document.getElementById('chart'); if (!c.data || !c.querySelector('.scatterlayer path.js-line'))"
        " return null; return c.data.map(t => [t.name, t.x.length, t.y])"
    )
    # Plotly takes names for markup, so the page hands it escaped ones.
    return lines and [(html.unescape(name), points, values) for name, points, values in lines]


def settle(driver: Any) -> None:
    """Waits until there are figures and a chart."""
    wait(driver, lambda d: figures(d) and drawn(d))
