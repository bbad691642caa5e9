"""The processors that a process may use: those of the machine, unless somebody says fewer."""

import os

import pytest

from fastwin.machine import processors as module
from fastwin.machine.processors import processors


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"new": "max 100000\n"}, 8),
        ({"new": "150000 100000\n"}, 2),
        ({"new": "200000 100000\n"}, 2),
        ({"new": "5000 100000\n"}, 1),
        ({"new": "6400000 100000\n"}, 8),
        ({"new": "nonsense"}, 8),
        ({"quota": "300000\n", "period": "100000\n"}, 3),
        ({"quota": "-1\n", "period": "100000\n"}, 8),
        ({"quota": "300000\n"}, 8),
    ],
)
def test_a_container_may_say_fewer(tmp_path, monkeypatch, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "_LIMITS", tmp_path / "new")
    monkeypatch.setattr(module, "_OLD_LIMITS", (tmp_path / "quota", tmp_path / "period"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert processors() == expected


def test_where_nobody_says_it_is_the_machines(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_LIMITS", tmp_path / "none")
    monkeypatch.setattr(module, "_OLD_LIMITS", (tmp_path / "none", tmp_path / "none"))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1
