"""How much memory there is; what is free goes back to the system, or is kept for the next run."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.machine import memory
from tests.support.groups import groups

GB = 1 << 30


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({}, None, 8),
        ({"memory.max": f"{2 * GB}\n"}, None, 2),
        ({"pods/memory.max": f"{3 * GB}\n", "pods/one/memory.max": "max\n"}, None, 3),
        ({"pods/memory.max": f"{3 * GB}\n", "pods/one/memory.max": f"{2 * GB}\n"}, None, 2),
        ({"pods/memory.max": f"{16 * GB}\n"}, None, 8),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, 8),
        ({"memory/box/memory.limit_in_bytes": f"{2 * GB}\n"}, None, 2),
        ({"memory/memory.limit_in_bytes": f"{2 * GB}\n"}, "3:memory:/docker/of/outside\n", 2),
        ({"memory.max": f"{2 * GB}\n"}, "0::/../../other\n", 2),
        ({"memory.max": f"{2 * GB}\n"}, "", 2),
    ],
)
def test_a_group_may_have_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], own: str | None, expected: int
) -> None:
    """Its own limit, or that of a group above it."""
    groups(tmp_path, monkeypatch, files, **({} if own is None else {"own": own}))
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 8 * GB >> 12, "SC_PAGE_SIZE": 1 << 12}.__getitem__)
    assert memory.bytes_of_memory() == expected * GB


HELD = """
import ctypes
from pathlib import Path
from fastwin.machine.memory import give_back

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) >> 10

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
before = held()
blocks = [libc.malloc(50_000) for _ in range(2_000)]
for block in blocks:
    ctypes.memset(block, 1, 50_000)
full = held()
for block in blocks[:-1]:  # the last one holds the end of the heap
    libc.free(block)
freed = held()
told = give_back(1 << 30)
print(full - before, freed - before, held() - before, told)
"""


def test_what_is_free_before_a_used_block_goes_back() -> None:
    if not hasattr(memory.ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("the C library is not glibc")
    environment = os.environ | {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1048576"}
    done = subprocess.run(
        [sys.executable, "-c", HELD], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    full, freed, left, told = done.stdout.split()
    assert int(full) > 80 and int(freed) > 80  # MB
    assert int(left) < 20
    assert told == "True"


def test_another_c_library_has_nothing_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.give_back(0) is False


FAULTS = """
import resource, sys
import numpy as np
from fastwin.machine.memory import keep_freed

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

asked = sys.argv[1] == "asked" and keep_freed()
for _ in range(3):
    before = faults()
    blocks = [np.ones(1 << 17) for _ in range(40)]  # 1 MiB each, as columns of results
    del blocks
    found = faults() - before
print(asked, found)
"""


@pytest.mark.parametrize(
    ("asked", "variables", "told", "fewest", "most"),
    [
        ("asked", {}, True, 0, 1_000),
        ("not asked", {}, False, 5_000, 50_000),
        ("asked", {"MALLOC_TRIM_THRESHOLD_": "131072"}, False, 5_000, 50_000),  # as somebody has set it
    ],
)
def test_what_was_freed_is_at_hand_again(
    asked: str, variables: dict[str, str], told: bool, fewest: int, most: int
) -> None:
    """40 MiB are 10,240 pages of 4 KiB."""
    if not hasattr(memory.ctypes.CDLL(None), "malloc_trim") or resource.getpagesize() != 4096:
        pytest.skip("the C library is not glibc, or pages are of another size")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, asked],
        env=others | variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    answer, faults = done.stdout.split()
    assert answer == str(told)
    assert fewest <= int(faults) <= most


def test_another_c_library_keeps_what_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in memory._GLIBC_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.keep_freed.__wrapped__() is False


def test_bounded_runs_ask_for_it_and_streams_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    for module in ("threads", "joinrun"):
        monkeypatch.setattr(f"fastwin.run.{module}.keep_freed", lambda module=module: told.append(module))
    start = fw.key_by("k").event_time("t", unit="ms")
    spec = start.window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    table = pa.table({"k": [1], "t": [5]})
    spec.open().process(table)
    spec.run(table)
    join = fw.window_join(start, start, fw.TumblingEventTimeWindows.of(10))
    join.open().process(left=table, right=table)
    join.run(table, table)
    assert told == ["threads", "joinrun"]
