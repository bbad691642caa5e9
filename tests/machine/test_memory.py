"""What is free goes back to the system."""

import os
import subprocess
import sys

import pytest

from fastwin.machine import memory

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
