"""The processors that a process may use: those of the machine, unless somebody says fewer."""

import os
import subprocess
import sys

import pytest

from fastwin.machine import cgroups
from fastwin.machine.cgroups import processors
from tests.support.groups import groups


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "5000 100000\n"}, 1),
        ({"cpu.max": "6400000 100000\n"}, 8),
        ({"cpu.max": "nonsense"}, 8),
        ({"pods/one/cpu.max": "150000 100000\n"}, 2),
        ({"pods/cpu.max": "200000 100000\n", "pods/one/cpu.max": "300000 100000\n"}, 2),
        ({"pods/cpu.max": "max 100000\n", "pods/one/cpu.max": "max 100000\n"}, 8),
        ({"pods/other/cpu.max": "150000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n"}, 8),
        ({"cpu/box/cpu.cfs_quota_us": "300000\n", "cpu/box/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_a_container_may_say_fewer(tmp_path, monkeypatch, files, expected):
    groups(tmp_path, monkeypatch, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert processors() == expected


def test_where_nobody_says_it_is_the_machines(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroups, "_OWN", tmp_path / "none")
    monkeypatch.setattr(cgroups, "_MOUNT", tmp_path / "none")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1


def test_the_file_runs_without_the_package(tmp_path):
    """As setup.py runs it, where nothing is installed yet."""
    code = f"import runpy; print(runpy.run_path({cgroups.__file__!r})['processors']())"
    told = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert int(told.stdout) == processors()
