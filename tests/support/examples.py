"""The examples as modules, and what each of them gives over its whole table, and batch by batch."""

import importlib
from types import ModuleType
from typing import Any

import pyarrow as pa

ON_SPARK = (
    "thirty_seconds",
    "one_second_trigger",
    "certain_element",
    "two_of_a_kind",
    "bounds_from_data",
    "session_totals",
    "average_with_window",
    "last_three",
    "early_and_late",
)
"""Those that the tests run on Spark as well; the others have tests of their own there."""

NAMES = (
    *ON_SPARK,
    "p99_per_minute",
    "months_in_a_zone",
    "several_windows",
    "orders_and_payments",
    "events_sent_twice",
    "corrected_results",
    "best_sellers",
    "alarms_not_repeated",
)

# The key, the window's bounds in seconds after noon, and the other columns.
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "thirty_seconds": [
        ("a", 0, 30, 2, 21.0),
        ("a", 30, 60, 1, 22.5),
        ("a", 90, 120, 1, 23.0),
        ("b", 0, 30, 1, 18.0),
        ("b", 30, 60, 1, 17.0),
        ("b", 60, 90, 1, 16.5),
    ],
    "one_second_trigger": [
        *[("a", 0, 4, 5)] * 4,  # at the seconds 1, 2, 3 and 4
        *[("b", 0, 4, 1)] * 2,  # at 3 and 4
        *[("b", 12, 16, 1)] * 4,
    ],
    "certain_element": [
        ("ann", None, None, ["tea", "milk"]),
        ("ann", None, None, ["jam"]),
        ("bob", None, None, ["rice"]),
    ],
    "two_of_a_kind": [("m1", None, None, "heat", 5), ("m2", None, None, "heat", 13)],
    "bounds_from_data": [("lamp", 0, 60, 5, 12), ("desk", 30, 45, 3, 90)],
    "session_totals": [
        ("ann", 0, 32, ["home", "news", "shop"], 4),
        ("ann", 70, 80, ["home"], 1),
        ("bob", 3, 13, ["home"], 1),
        ("bob", 50, 60, ["shop"], 1),
    ],
    "average_with_window": [
        ("a", 0, 60, 21.0, 2, None),
        ("a", 60, 120, 40.0, 1, 19.0),
        ("a", 120, 180, 41.0, 1, 1.0),
        ("b", 0, 60, 10.0, 1, None),
        ("b", 60, 120, 11.5, 2, 1.5),
        ("b", 180, 240, 13.0, 1, 1.5),
    ],
    "last_three": [
        ("x", None, None, [1.0, 2.0], 1.5),
        ("x", None, None, [2.0, 3.0, 4.0], 3.0),
        ("x", None, None, [4.0, 5.0, 6.0], 5.0),
        ("y", None, None, [50.0, 52.0], 51.0),
    ],
    "early_and_late": [
        ("north", 0, 3600, 2, 30, 0, "EARLY", False),
        ("north", 0, 3600, 3, 60, 1, "ON_TIME", False),
        ("north", 3600, 7200, 2, 15, 0, "EARLY", False),
        ("north", 3600, 7200, 2, 15, 1, "ON_TIME", False),
        ("north", 7200, 10800, 1, 9, 0, "ON_TIME", False),
        ("south", 0, 3600, 2, 11, 0, "EARLY", False),
        ("south", 0, 3600, 3, 15, 1, "ON_TIME", False),
    ],
    "p99_per_minute": [
        ("cart", 0, 60, 50, 0, 58.561979516876015, 34.126276903648446),
        ("cart", 120, 180, 0, 0, None, None),
        ("cart", 180, 240, 3, 1, 30.26717133872236, 30.26717133872236),
        ("cart", 60, 120, 0, 0, None, None),
        ("search", 0, 60, 3, 1, 120.31456328864707, 120.31456328864707),
    ],
    "months_in_a_zone": [
        ("north", -43200, -43200, 1, 1),
        ("north", -43200, -43200, 1, 7),
        ("north", -43200, -43200, 2, 25),
        ("south", -43200, -43200, 1, 9),
    ],
    "several_windows": [
        ("home", "five", -120, 180, 3, 2),
        ("home", "five", -180, 120, 3, 2),
        ("home", "five", -240, 60, 2, 2),
        ("home", "five", -60, 240, 3, 2),
        ("home", "five", 0, 300, 3, 2),
        ("home", "five", 60, 360, 1, 1),
        ("home", "hour", 0, 3600, 3, 2),
        ("home", "minute", 0, 60, 2, 2),
        ("home", "minute", 60, 120, 1, 1),
    ],
    "orders_and_payments": [
        (1, 0, 60, 5, 20, 12, "card"),
        (2, 0, 60, 30, 35, None, None),
        (3, 60, 120, 80, 10, 85, "card"),
    ],
    "events_sent_twice": [
        ("a", 1, 0, 600, 0, 20.5),
        ("a", 1, 900, 1500, 900, 30.0),
        ("a", 2, 1, 601, 1, 20.7),
        ("b", 1, 4, 604, 4, 18.0),
    ],
    "corrected_results": [
        ("north", 0, 3600, 2, 30, "insert"),
        ("north", 0, 3600, 3, 60, "update"),
        ("south", 0, 3600, 1, 4, "insert"),
        ("south", 3600, 7200, 1, 1, "insert"),
    ],
    "best_sellers": [
        ("north", 0, 3600, 1, 120, "bob", 50),
        ("north", 0, 3600, 2, 3000, "dan", 40),
        ("south", 0, 3600, 1, 180, "cat", 35),
        ("south", 3600, 7200, 1, 4200, "eve", 10),
    ],
    "alarms_not_repeated": [("a", 0, 60, 90.0), ("a", 660, 720, 91.0), ("b", 120, 180, 85.0)],
}

# What differs where the watermark moves after each batch, and ends at the end of time.
ON_A_STREAM: dict[str, list[tuple[Any, ...]]] = {
    "one_second_trigger": [
        *[("a", 0, 4, n) for n in (3, 4, 5, 5)],
        *[("b", 0, 4, 1)] * 2,
        *[("b", 12, 16, 1)] * 4,
    ],
    "bounds_from_data": [("lamp", 0, 60, 5, 12), ("desk", 30, 45, 2, 80)],
    "early_and_late": [
        ("north", 0, 3600, 2, 30, 0, "EARLY", False),
        ("north", 0, 3600, 3, 60, 1, "ON_TIME", False),
        ("south", 0, 3600, 1, 5, 0, "ON_TIME", False),
        ("south", 0, 3600, 2, 11, 1, "LATE", False),
        ("north", 3600, 7200, 2, 15, 0, "EARLY", False),
        ("north", 3600, 7200, 2, 15, 1, "ON_TIME", False),
        ("north", 7200, 10800, 1, 9, 0, "ON_TIME", False),
    ],
}

# The late rows of such a stream, and its side outputs, as the scripts print them.
BESIDES = {
    "average_with_window": {"side output jumps": ["sensor=a, was=21.0, now=40.0"]},
    "bounds_from_data": {
        "late": ["auction=desk, ts=12:00:43, price=90, opens_ms=1704110430000, closes_ms=1704110445000"]
    },
    "early_and_late": {"late": ["shop=south, ts=12:50:00, price=4"]},
}


def load(name: str) -> ModuleType:
    """Returns an example as a module."""
    return importlib.import_module(f"examples.{name}")


def simplified(table: pa.Table) -> list[tuple[Any, ...]]:
    """Returns rows in a fixed order, with times as seconds after noon."""
    rows = [
        tuple(
            (value.hour - 12) * 3600 + value.minute * 60 + value.second if hasattr(value, "hour") else value
            for value in row.values()
        )
        for row in table.to_pylist()
    ]
    return sorted(rows, key=repr)
