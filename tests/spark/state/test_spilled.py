"""Streams beyond the budget stay with their worker: what is large of them lies on the disk of the executor."""

import gc
import os
import re

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.core.memory.regions import use_files
from fastwin.machine.cgroups import processors
from fastwin.run import planner
from fastwin.run.replica import Replica, open_replica
from spark_glue.state import folders, ledger, spilled
from spark_glue.state.live import Live, LiveStreams
from tests.support.disk import bytes_in_files, files_on_disk

KEYS = 20_000
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
SPEC = fw.key_by("k").event_time("ts", unit="ms").window(fw.SlidingEventTimeWindows.of(300, 100))
PLAN = planner.plan(SPEC.aggregate(n=fw.Count(), newest=fw.Max("ts")), SCHEMA, coalesce=True)


@pytest.fixture(autouse=True)
def disk(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.ROOT_VARIABLE, str(tmp_path / "shelves"))
    monkeypatch.setattr(folders, "_said", set())
    monkeypatch.setattr(folders, "_held", {})
    monkeypatch.setattr(ledger, "_lives", lambda _: True)
    monkeypatch.setattr(spilled, "_tried", "")
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    before = bytes_in_files()
    with files_on_disk() as folder:
        monkeypatch.setenv(spilled.FOLDER_VARIABLE, str(folder))
        yield folder
    use_files(None)
    gc.collect()
    assert bytes_in_files() == before


def filled(keys: int = KEYS) -> Replica:
    stream = open_replica(PLAN)
    feed(stream, np.arange(keys), 50)
    return stream


def feed(stream: Replica, keys: np.ndarray, time: int) -> None:
    stream.process(pa.table({"k": keys, "ts": np.full(len(keys), time)}, schema=SCHEMA))


def put(kept: LiveStreams, share: int, stream: Replica) -> Live:
    left = Live("token", stream, None, stream.metrics.state_bytes)
    kept.put(("run", share), left)
    return left


def visited(kept: LiveStreams, share: int, keys: np.ndarray = np.arange(9)) -> Live:
    """Takes a stream, feeds it and puts it back."""
    found = kept.take(("run", share))
    feed(found.stream, keys, 50)
    return put(kept, share, found.stream)


def test_streams_beyond_the_budget_stay():
    kept = LiveStreams(limit=filled().metrics.state_bytes * 3 // 2)
    lives = [put(kept, share, filled()) for share in range(4)]
    assert [live.spilled > 0 for live in lives] == [False, True, True, True]
    for _ in range(3):
        lives = [visited(kept, share) for share in range(4)]
        assert [live.spilled > 0 for live in lives] == [False, True, True, True]
    assert len(kept) == 4
    assert kept.nbytes <= filled().metrics.state_bytes * 3 // 2
    assert kept.spilled == sum(live.spilled for live in lives) == bytes_in_files()


def test_a_stream_comes_back_to_memory_where_there_is_room():
    kept = LiveStreams(limit=filled().metrics.state_bytes * 3 // 2)
    for share in range(2):
        put(kept, share, filled())
    assert kept.spilled
    first = kept.take(("run", 0)).stream
    first.advance_watermark(10_000)
    put(kept, 0, first)
    kept._limit *= 4
    for _ in range(2):
        assert [visited(kept, share).spilled for share in range(2)] == [0, 0]
    assert bytes_in_files() == 0


def test_what_grows_beyond_the_budget_in_a_visit_grows_on_the_disk():
    kept = LiveStreams(limit=1 << 20)
    assert kept.take(("run", 0)) is None
    large = filled(20 * KEYS)
    assert bytes_in_files() > large.metrics.state_bytes // 2
    put(kept, 0, large)
    before = bytes_in_files()
    feed(large, np.arange(40 * KEYS, 60 * KEYS), 70)  # grows where it lies
    other = filled(20 * KEYS)  # nobody visits a share any more
    assert bytes_in_files() > before
    large = kept.take(("run", 0))
    large = None
    gc.collect()
    assert bytes_in_files() == 0
    assert other.metrics.state_rows == 20 * KEYS


@pytest.mark.parametrize(
    "spec",
    [SPEC.aggregate(names=fw.CollectSet("ts")), SPEC.top(2, by="ts"), SPEC.deduplicate("last")],
    ids=["lists", "top", "last"],
)
def test_streams_that_stay_large_in_memory_are_let_go_once(spec, caplog):
    kept = LiveStreams(limit=200_000)
    for _ in range(3):
        stream = open_replica(planner.plan(spec, SCHEMA, coalesce=True))
        feed(stream, np.arange(KEYS), 50)
        put(kept, 0, stream)
        assert kept.take(("run", 0)) is None
    assert len(kept._hopeless) == 1
    (said,) = (one.getMessage() for one in caplog.records if "stay in memory" in one.getMessage())
    assert re.match(
        r"streams: \d{6,} bytes of one stay in memory, .* FASTWIN_LIVE_BYTES leaves to all \(200000\)", said
    )


def test_without_a_ledger_a_stream_goes_to_the_disk_too(monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(ledger.Ledger, "kept", fails)
    kept = LiveStreams(limit=filled().metrics.state_bytes * 3 // 2 * processors())
    for share in range(3):
        put(kept, share, filled())
    assert len(kept) == 3
    assert kept.spilled


@pytest.mark.parametrize("name", [spilled.FOLDER_VARIABLE, "SPARK_LOCAL_DIRS", None])
def test_the_folder_is_that_of_the_variable_or_of_spark(disk, monkeypatch, name):
    monkeypatch.delenv(spilled.FOLDER_VARIABLE)
    use_files(None)
    if name is not None:
        monkeypatch.setenv(name, f"{disk}/none,{disk}" if name == "SPARK_LOCAL_DIRS" else str(disk))
    assert (spilled.spill(filled()) > 0) == (name is not None)


@pytest.mark.parametrize("limit", ["0", "1"])
def test_the_bytes_on_the_disk_have_a_bound(monkeypatch, limit):
    one, other = filled(), filled()
    monkeypatch.setenv(spilled.SPILL_VARIABLE, limit)
    assert spilled.spill(one) == 0
    monkeypatch.delenv(spilled.SPILL_VARIABLE)
    assert spilled.spill(other) > 0


def test_a_stream_on_the_disk_stays_there_when_the_bound_is_reached(monkeypatch):
    size = filled().metrics.state_bytes
    monkeypatch.setenv(spilled.SPILL_VARIABLE, str(size // 2 * processors()))
    kept = LiveStreams(limit=size * 3 // 2)
    for share in range(3):
        kept.take(("run", share))
        put(kept, share, filled())
    assert [visited(kept, share).spilled > 0 for share in range(2)] == [False, True]
    assert kept.take(("run", 2)) is None


def test_a_disk_that_cannot_be_used_is_said_once(disk, monkeypatch, caplog):
    monkeypatch.setenv(spilled.FOLDER_VARIABLE, str(disk / "none"))
    kept = LiveStreams(limit=filled().metrics.state_bytes * 3 // 2)
    for _ in range(2):
        for share in range(2):
            kept.take(("run", share))
            put(kept, share, filled())
    assert [kept.take(("run", share)) is not None for share in range(2)] == [True, False]
    assert [record.message.count("cannot lie on a local disk") for record in caplog.records] == [1]


@pytest.mark.skipif(not os.path.ismount("/dev/shm") or not os.access("/dev/shm", os.W_OK), reason="no /dev/shm")
def test_memory_is_no_disk(monkeypatch, caplog):
    monkeypatch.setenv(spilled.FOLDER_VARIABLE, "/dev/shm")
    assert spilled.spill(filled()) == 0
    assert "/dev/shm: it lies in memory" in caplog.text


def test_a_child_of_the_worker_begins_without_streams():
    kept = LiveStreams(limit=1 << 20)
    assert put(kept, 0, filled()).spilled
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert kept.take(("run", 0)) is None
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    visited(kept, 0).stream._operator._check()
