"""Streams beyond the budget, whose memory lies in a file on a disk of the executor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastwin as fw
from fastwin.run import planner
from fastwin.run.replica import Replica, open_replica
from spark_glue.state import cold, folders
from spark_glue.state.live import Live, LiveStreams
from tests.support.cold_streams import KEYS, SCHEMA, feed, filled


@pytest.fixture
def disk(monkeypatch):
    """A folder on a disk, which other tests' folders may not be."""
    folder = Path(__file__).parent / ".spilled"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv(cold.FOLDER_VARIABLE, str(folder))
    monkeypatch.setenv(cold.SPILL_VARIABLE, str(1 << 30))
    monkeypatch.setattr(folders, "_said", set())
    monkeypatch.setattr(folders, "_held", {})
    yield folder
    folder.rmdir()  # nothing has been left in it


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.ROOT_VARIABLE, str(tmp_path / "shelves"))


def live(stream: Replica) -> Live:
    return Live("token", stream, None, stream.metrics.state_bytes)


@pytest.mark.usefixtures("disk")
def test_a_stream_in_a_file_goes_on_as_one_in_memory():
    one, other = filled(), filled()
    rng = np.random.default_rng(0)
    put_away = 0
    for batch in range(12):
        put_away += cold.put_away(one, one.metrics.state_bytes) is not None
        keys = rng.integers(0, (batch + 1) * KEYS, 5_000)  # blocks grow, and others come
        for stream in (one, other):
            feed(stream, keys, 60 * batch)
        assert one.delta() == other.delta()
        fired = [stream.advance_watermark(60 * batch - 50).main.sort_by("k") for stream in (one, other)]
        assert fired[0].equals(fired[1])
        one._operator._check()
    assert one.snapshot() == other.snapshot()
    assert put_away > 1


@pytest.mark.usefixtures("disk", "root")
def test_streams_beyond_the_budget_stay():
    streams = [filled() for _ in range(3)]
    size = streams[0].metrics.state_bytes
    kept = LiveStreams(limit=size * 3 // 2)
    for _ in range(2):
        for share, stream in enumerate(streams):
            kept.take(("run", share))
            kept.put(("run", share), live(stream))
    assert [kept.take(("run", share)) is not None for share in range(3)] == [True, True, True]


@pytest.mark.usefixtures("disk", "root")
def test_what_stays_in_memory_is_within_the_budget():
    streams = [filled() for _ in range(3)]
    kept = LiveStreams(limit=1_000)
    for share, stream in enumerate(streams):
        kept.put(("run", share), live(stream))
        assert kept.nbytes <= 1_000


@pytest.mark.usefixtures("disk")
def test_the_disk_has_a_bound(monkeypatch):
    stream = filled()
    size = stream.metrics.state_bytes
    monkeypatch.setenv(cold.SPILL_VARIABLE, str(size * 3 // 2 * (os.cpu_count() or 1)))
    monkeypatch.setattr(cold, "_mapped", lambda _: [(0, size)])  # what others have taken
    assert cold.put_away(stream, size) is None
    monkeypatch.setattr(cold, "_mapped", lambda _: [])
    assert cold.put_away(stream, size) is not None


@pytest.mark.usefixtures("disk")
def test_without_the_variable_nothing_goes_to_the_disk(monkeypatch):
    monkeypatch.delenv(cold.SPILL_VARIABLE)
    assert cold.put_away(filled(), 1) is None


@pytest.mark.usefixtures("disk")
def test_a_disk_that_fails_is_said_once(monkeypatch, caplog):
    def fails(*_: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cold, "put_on_file", fails)
    monkeypatch.setattr(cold, "_mapped", lambda _: [])  # of memory that streams before had
    stream = filled()
    for _ in range(2):
        assert cold.put_away(stream, stream.metrics.state_bytes) is None
    assert [record.message.count("No space left") for record in caplog.records] == [1]
    feed(stream, np.arange(KEYS), 70)
    stream._operator._check()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no file system in memory")
@pytest.mark.usefixtures("disk")
def test_memory_is_no_disk(monkeypatch, caplog):
    monkeypatch.setenv(cold.FOLDER_VARIABLE, "/dev/shm")
    stream = filled()
    assert cold.put_away(stream, stream.metrics.state_bytes) is None
    assert "lies in memory" in caplog.text


@pytest.mark.usefixtures("disk")
def test_windows_whose_memory_is_not_known_stay_in_memory():
    sessions = fw.key_by("k").event_time("ts", unit="ms").window(fw.EventTimeSessionWindows.with_gap(10))
    stream = open_replica(planner.plan(sessions.aggregate(n=fw.Count()), SCHEMA), coalesce=True)
    feed(stream, np.arange(KEYS), 5)
    assert cold.put_away(stream, stream.metrics.state_bytes) is None


LIMITED = """
import resource, sys
from tests.support.cold_streams import filled
from spark_glue.state.cold import put_away

first = filled(1_000)
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + (160 << 20), -1))
streams = []
for _ in range(12):
    streams.append(filled(200_000))
    put_away(streams[-1], streams[-1].metrics.state_bytes)
print(sum(stream.metrics.state_bytes for stream in streams) >> 20, "MB")
for stream in streams:
    stream._operator._check()
"""


@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize(("spill", "lives"), [("0", False), (str(4 << 30), True)])
def test_a_worker_of_limited_memory_holds_more_state_than_that(spill, lives):
    root = Path(__file__).parents[3]
    environment = os.environ | {cold.SPILL_VARIABLE: spill, "PYTHONPATH": str(root), "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([sys.executable, "-c", LIMITED], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == lives, done.stderr
    assert ("MemoryError" in done.stderr) != lives
    if lives:
        assert int(done.stdout.split()[0]) > 160
