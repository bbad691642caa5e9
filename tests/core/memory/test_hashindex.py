"""Keys that someone has chosen against a hash that is known do not slow the tables down."""

import subprocess
import sys

import numpy as np
import pytest

from fastwin.core.keys.keycolumns import hash_int64, hash_text
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.sessions.sessiontable import HEAD_CELLS as SESSION_HEAD
from fastwin.core.sessions.sessiontable import SessionTable
from fastwin.core.sessions.sessiontimers import SessionTimers
from fastwin.core.timers.timerqueue import TimerQueue
from fastwin.core.windows.windowtable import HEAD_CELLS as WINDOW_HEAD
from fastwin.core.windows.windowtable import WindowTable
from tests.support.kernels import accumulators, no_columns

MASK = 2**64 - 1
FACTOR = 0x9E3779B97F4A7C15
FAR = 500  # places: with hashes that nobody knows, a search is over long before

N = 20_000


def _signed(values: list[int]) -> np.ndarray:
    return np.array([value & MASK for value in values], np.uint64).view(np.int64)


def _unmixed(h: int) -> int:
    """The int whose routing hash this is."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9)):
        h = (h ^ h >> shift ^ h >> 2 * shift) * pow(factor, -1, 2**64) & MASK
    return (h ^ h >> 30 ^ h >> 60) - FACTOR & MASK


def _ints_of_one_place() -> np.ndarray:
    """Ints whose low halves are alike, once multiplied by a factor that is known and folded."""
    products = [(i << 32 | i) * pow(FACTOR, -1, 2**64) & MASK for i in range(N)]
    return _signed([product ^ product >> 32 for product in products])


def _texts_of_one_hash(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes keys of one routing hash: a difference in a word that the next word takes back, or not, ``bits`` times."""
    pair = b"some sixteen byte"[:16]
    undone = (2**63 | 2**34).to_bytes(8, "little")
    other = bytes(a ^ b for a, b in zip(pair, (2**63).to_bytes(8, "little") + undone, strict=True))
    texts = [b"".join(other if i >> bit & 1 else pair for bit in range(bits)) for i in range(2**bits)]
    return np.arange(0, 16 * bits * (2**bits + 1), 16 * bits), np.frombuffer(b"".join(texts), np.uint8)


def test_chosen_ints_lie_apart() -> None:
    keys = KeyTable("int64")
    assert keys.intern_int64(_ints_of_one_place()).tolist() == list(range(N))
    assert keys._farthest() < FAR


@pytest.mark.parametrize("shift", [0, 16, 32, 44])
def test_ints_in_steps_lie_apart(shift: int) -> None:
    keys = KeyTable("int64")
    keys.intern_int64(_signed([i << shift for i in range(N)]))
    keys.intern_int64(np.arange(N).astype(np.float64).view(np.int64))
    assert keys._farthest() < FAR


def test_ints_of_one_key_group_lie_apart() -> None:
    values = _signed([_unmixed(i << 32) for i in range(N)])
    assert not np.any(hash_int64(values) & np.uint64(2**32 - 1))  # all of them, whatever their number
    keys = KeyTable("int64")
    keys.intern_int64(values)
    assert keys._farthest() < FAR


def test_chosen_texts_lie_apart() -> None:
    offsets, data = _texts_of_one_hash(12)
    assert len(np.unique(hash_text(offsets, data))) == 1
    keys = KeyTable("bytes")
    assert len(np.unique(keys.intern_bytes(offsets, data))) == 2**12
    assert keys._farthest() < FAR


def test_chosen_windows_lie_apart() -> None:
    keys = KeyTable("int64")
    keys.intern_int64(np.arange(1))
    windows = WindowTable(keys, np.zeros(WINDOW_HEAD, np.int64))
    starts = np.arange(N)
    windows.insert(np.zeros(N, np.int32), starts, hash_int64(starts).view(np.int64))
    windows._check()
    assert windows._farthest() < FAR


def test_chosen_timers_lie_apart() -> None:
    queue = TimerQueue()
    for namespace, time in enumerate(hash_int64(np.arange(N)).view(np.int64).tolist()):
        queue.add(time, 0, namespace)
    assert len(queue) == N
    assert queue._farthest() < FAR


def test_sessions_at_chosen_times_lie_apart() -> None:
    sessions = SessionTable(KeyTable("int64"), accumulators(head_cells=SESSION_HEAD))
    timers = SessionTimers(sessions, 1)
    candidates = np.arange(8_000_000)
    chosen = candidates[hash_int64(candidates - 1) % np.uint64(4096) == 0]
    keys = sessions.keys.intern_int64(chosen)
    _, armed = sessions.add(keys, chosen - 1, 1, -(2**63), 0, no_columns(len(chosen)))
    timers.arm(armed, -(2**63), 0)
    timers._check(-(2**63), 0)
    assert timers._farthest() < FAR


FIRES = """
import sys
import numpy as np, pyarrow as pa
import fastwin as fw

random = np.random.default_rng(3)
n = 6_000
table = pa.table({
    "key": pa.array([f"k{i}" for i in random.integers(0, 900, n)]) if sys.argv[1] == "text" else random.integers(0, 900, n),
    "ts": random.integers(0, 600_000, n), "v": random.integers(0, 50, n)})
start = fw.key_by("key").event_time("ts")
if sys.argv[2] == "sliding":
    spec = start.window(fw.SlidingEventTimeWindows.of("2 minutes", "30 seconds"))
elif sys.argv[2] == "session":
    spec = start.window(fw.EventTimeSessionWindows.with_gap("20 seconds"))
else:
    spec = start.window(fw.TumblingEventTimeWindows.of("1 minute")).trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(2)))
stream = spec.aggregate(n=fw.Count(), s=fw.Sum("v")).open(watermark="1 minute")
for at in range(0, n, 500):
    print(stream.process(table.slice(at, 500)).main.to_pydict())
print(stream.advance_watermark(2**60).main.to_pydict())
print(stream.metrics)
"""


@pytest.mark.parametrize(("key", "kind"), [("text", "sliding"), ("int", "session"), ("int", "count")])
def test_results_and_their_order_are_the_same_in_every_process(key: str, kind: str) -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", FIRES, key, kind], capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 10_000


def test_each_index_hashes_in_its_own_way() -> None:
    """So that every test with two tables is one of results that do not depend on hashes."""
    found = set()
    for _ in range(30):
        keys = KeyTable("int64")
        keys.intern_int64(np.random.default_rng(5).integers(0, 2**62, 3_500))
        found.add(keys._farthest())
    assert len(found) > 1
