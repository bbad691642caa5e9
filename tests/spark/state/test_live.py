"""The streams that workers leave standing: taken once, and within one budget for all workers of a machine."""

import fcntl
import os
import random
import time
from pathlib import Path

import pytest

from spark_glue.state import folders, ledger, live
from spark_glue.state.live import Live, LiveStreams


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.ROOT_VARIABLE, str(tmp_path / "shelves"))
    monkeypatch.setattr(folders, "_held", {})
    monkeypatch.setattr(folders, "_said", set())
    return folders.cache_root()


def stream(name: object, nbytes: int = 10) -> Live:
    return Live("token", name, None, nbytes)


def workers(count: int, limit: int) -> list[LiveStreams]:
    """Workers as the ledger sees them: with pids of processes that live."""
    pids = [os.getpid(), os.getppid(), 1][:count]
    return [LiveStreams(limit, owner=pid) for pid in pids]


@pytest.mark.usefixtures("root")
def test_a_stream_is_taken_once():
    kept = LiveStreams()
    kept.put(("run", 1), stream("stream"))
    assert kept.take(("run", 2)) is None
    assert kept.take(("run", 1)).stream == "stream"
    assert kept.take(("run", 1)) is None


@pytest.mark.usefixtures("root")
def test_beyond_the_limit_the_first_ones_stay():
    """Shares are visited in turn: the oldest one is the next to be asked for."""
    kept = LiveStreams(limit=25)
    for _ in range(4):
        for place in range(3):
            kept.take(("run", place))
            kept.put(("run", place), stream(place))
    assert kept.nbytes == 20
    assert [kept.take(("run", place)) is not None for place in range(3)] == [True, True, False]
    kept.put(("run", 5), stream("large", 100))
    assert kept.take(("run", 5)) is None


@pytest.mark.parametrize(
    "memory, most", [(1 << 30, 256 << 20), (8 << 30, 2 << 30), (64 << 30, 2 << 30), (None, 2 << 30)]
)
def test_without_a_limit_a_quarter_of_the_memory_may_be_kept(monkeypatch, memory, most):
    monkeypatch.delenv(live.LIVE_VARIABLE, raising=False)
    monkeypatch.setattr(live, "bytes_of_memory", lambda: memory)
    live._by_default.cache_clear()
    try:
        assert LiveStreams()._bytes_allowed() == most
        monkeypatch.setenv(live.LIVE_VARIABLE, "77")
        assert LiveStreams()._bytes_allowed() == 77
        assert LiveStreams(5)._bytes_allowed() == 5
    finally:
        live._by_default.cache_clear()


@pytest.mark.usefixtures("root")
def test_the_limit_holds_for_all_workers_together():
    one, other = workers(2, limit=45)
    for place in range(3):
        one.put(("run", place), stream(place))
    for place in range(3, 6):
        other.put(("run", place), stream(place))
    assert one.nbytes + other.nbytes == 40


@pytest.mark.usefixtures("root")
def test_a_share_that_has_gone_to_another_worker_makes_room_first():
    one, other = workers(2, limit=25)
    one.put(("run", 1), stream(1))
    one.put(("run", 2), stream(2))
    other.put(("run", 1), stream(1))
    assert len(other) == 0  # what the first one still has takes its room
    one.take(("run", 2))
    one.put(("run", 2), stream(2))  # it hears of it with its next share
    assert one.take(("run", 1)) is None
    other.put(("run", 1), stream(1))
    assert len(other) == 1
    assert one.take(("run", 2)) is not None


@pytest.mark.usefixtures("root")
def test_a_stream_that_is_too_far_behind_goes_though_there_is_room():
    one, other = workers(2, limit=1_000)
    one.put(("run", 1), stream(1))
    for _ in range(17):
        other.put(("run", 1), stream(1))
    one.put(("run", 2), stream(2))
    assert one.take(("run", 1)) is None
    assert len(other) == 1


@pytest.mark.usefixtures("root")
def test_shares_that_nobody_visits_any_more_make_room():
    kept = LiveStreams(limit=25)
    kept.put(("run", "idle"), stream("idle"))
    for _ in range(6):
        for place in range(2):
            kept.take(("run", place))
            kept.put(("run", place), stream(place))
    assert kept.take(("run", "idle")) is None
    assert kept.nbytes == 20


def test_a_worker_that_is_gone_takes_no_room(root, monkeypatch):
    gone, left = workers(2, limit=25)
    gone.put(("run", 1), stream(1, 20))
    monkeypatch.setattr("spark_glue.state.ledger._lives", lambda pid: pid != os.getpid())
    left.put(("run", 2), stream(2, 20))
    assert len(left) == 1


def test_containers_share_the_limit_and_cannot_tell_who_lives(root, monkeypatch):
    """Each has processes of the same numbers, and knows of none of the other's."""
    monkeypatch.setattr(ledger, "_lives", lambda pid: False)
    one, other = LiveStreams(limit=45, owner=7), LiveStreams(limit=45, owner=8)

    def put(kept: LiveStreams, place: int) -> bool:
        monkeypatch.setattr(ledger, "_namespace", lambda: f"-{kept._owner}")
        kept.take(("run", place))
        kept.put(("run", place), stream(place))
        return ("run", place) in kept._held

    for _ in range(3):
        assert [put(one, place) for place in (1, 2)] == [True, True]
        assert [put(other, place) for place in (3, 4)] == [True, True]
        assert not put(other, 5)
        assert one.nbytes == other.nbytes == 20
    monkeypatch.setattr(ledger, "_IDLE_S", 0)  # the other container is gone, as far as can be told
    assert [put(other, place) for place in (3, 4, 5, 6)] == [True] * 4


def test_a_container_is_told_from_a_later_one_with_its_number(monkeypatch):
    """The kernel gives the numbers of namespaces again; the first process of another one has started later."""

    def name(stat: str | None) -> str:
        def read(path, **_):
            if stat is None:
                raise PermissionError(path)
            return stat

        monkeypatch.setattr(Path, "read_text", read)
        return ledger._namespace.__wrapped__()

    fields = "S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0"
    names = [name(f"1 (init) (x) {fields} {ticks} 9 9") for ticks in (120, 120, 7_000)] + [name(None), name("")]
    assert names[0] == names[1] and names[3] == names[4]
    assert len(set(names)) == 3
    assert all(one.startswith(names[3]) for one in names)


@pytest.mark.usefixtures("root")
def test_several_runs_share_the_limit():
    """A run that comes later gets its part, as soon as the first one has let go of it."""
    kept = LiveStreams(limit=40)
    found = []
    for runs in (("one",), ("other",), ("one", "other"), ("one", "other")):
        for run in runs:
            for place in range(5):
                kept.take((run, place))
                kept.put((run, place), stream(place))
                assert kept.nbytes <= 40
        found.append([sum(place[0] == run for place in kept._held) for run in ("one", "other")])
    assert found == [[4, 0], [4, 0], [2, 2], [2, 2]]


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("seed", range(5))
def test_streams_wander_between_workers_within_the_limit(seed):
    """A stream that is to go takes its room until its owner has let go of it."""
    dice = random.Random(seed)
    kept = workers(3, limit=160)
    for _ in range(6):
        for place in dice.sample(range(32), 32):
            worker = dice.choice(kept)
            worker.take(("run", place))
            worker.put(("run", place), stream(place))
            assert sum(one.nbytes for one in kept) <= 160
    assert sum(one.nbytes for one in kept) > 80


def test_what_a_worker_keeps_of_a_run_that_was_forgotten_goes(root):
    kept = LiveStreams()
    for run in ("ended", "other"):
        kept.put((run, 1), stream(run))
    folders.forget_run("ended")
    kept.put(("other", 2), stream(2))
    assert kept.take(("ended", 1)) is None
    assert kept.take(("other", 1)).stream == "other"


@pytest.mark.usefixtures("root")
def test_what_a_worker_keeps_of_a_run_that_has_ended_is_forgotten_at_once(monkeypatch):
    told = []
    monkeypatch.setattr(live, "give_back", told.append)
    monkeypatch.setattr(live, "_GIVE_BACK_BYTES", 10)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    kept = LiveStreams()
    for run, share in (("ended", 1), ("ended", 2), ("other", 1)):
        kept.put((run, share), stream(run))
    kept.forget("ended")
    kept.forget("never there")
    assert list(kept._held) == [("other", 1)]
    assert len(told) == 1


def test_after_a_long_pause_a_worker_keeps_what_it_has_of_its_run(root, monkeypatch):
    """It has stood idle, or worked for others, and nobody has used the folder for more than ten minutes."""
    kept = LiveStreams()
    for share in (1, 2):
        kept.put(("run", share), stream(share))
    os.utime(root / "run" / folders._ALIVE, (time.time() - folders._IDLE_S - 1,) * 2)
    monkeypatch.setattr(folders, "_swept", -folders._SWEEP_S)
    taken = kept.take(("run", 1))
    kept.put(("run", 1), taken)
    assert sorted(live.stream for live in kept._held.values()) == [1, 2]


@pytest.mark.usefixtures("root")
def test_streams_of_runs_long_unused_go(monkeypatch):
    kept = LiveStreams()
    now = time.monotonic()
    kept.put(("old", 1), stream(1))
    monkeypatch.setattr(live.time, "monotonic", lambda: now + live._IDLE_S + 1)
    kept.put(("new", 1), stream(2))
    assert len(kept) == 1


def test_a_worker_that_stands_still_stops_no_other(root, monkeypatch, caplog):
    """It may hold the ledger: the others go on with what they have been granted, and wait for it but once."""
    kept = LiveStreams(limit=1_000)
    for place in (1, 2):
        kept.put(("run", place), stream(place))
    monkeypatch.setattr(folders, "_LOCK_S", 0.05)
    (told,) = (root / "run").glob(".live*")
    with open(told) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert kept.take(("run", 1)).stream == 1
        kept.put(("run", 1), stream("again"))
        kept.put(("run", 3), stream(3))
        monkeypatch.setattr(folders, "lock", None)
        kept.put(("other", 1), stream(1))
    assert {place: live.stream for place, live in kept._held.items()} == {("run", 1): "again", ("run", 2): 2}
    assert "another worker stands still with the ledger" in caplog.text
    now = time.monotonic()
    monkeypatch.setattr(live.time, "monotonic", lambda: now + live._PATIENCE_S)
    kept.put(("run", 3), stream(3))
    assert len(kept) == 3


def test_without_a_folder_each_worker_keeps_its_part_and_says_so(root, monkeypatch, caplog):
    root.mkdir(parents=True)
    root.chmod(0o777)
    monkeypatch.setattr(live, "processors", lambda: 4)
    kept = LiveStreams(limit=100)
    for place in range(5):
        kept.put(("run", place), stream(place))
    assert kept.nbytes == 20
    assert [record.message for record in caplog.records if "each keeps at most 25 bytes" in record.message]


def test_without_a_folder_two_runs_share_the_part_of_a_worker(root, monkeypatch):
    """The folder is another user's, who lets nobody look into it."""

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    root.mkdir(parents=True)
    root.chmod(0o777)
    monkeypatch.setattr(live.Path, "exists", denied)
    monkeypatch.setattr(live, "processors", lambda: 4)
    kept = LiveStreams(limit=240)
    for _ in range(2):
        for run in ("one", "other"):
            for place in range(5):
                kept.take((run, place))
                kept.put((run, place), stream(place))
    assert [sum(place[0] == run for place in kept._held) for run in ("one", "other")] == [3, 3]
    now = time.monotonic()
    monkeypatch.setattr(live.time, "monotonic", lambda: now + live._IDLE_S + 1)
    kept.put(("one", 1), stream(1))
    assert list(kept._held) == [("one", 1)]
    assert kept._ledger("other").there()


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(("keep", "times"), [(None, 1), (256 << 20, 1), (1 << 34, 0)])
def test_memory_of_streams_that_went_is_given_back(keep, times, monkeypatch):
    """Once it is enough, and not again at once; but not where glibc is told to keep all that it has."""
    told, seconds = [], [1_000.0]
    monkeypatch.setattr(live, "give_back", told.append)
    monkeypatch.setattr(live, "_GIVE_BACK_BYTES", 50)
    monkeypatch.setattr(live.time, "monotonic", lambda: seconds[0])
    if keep is None:
        monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    else:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", str(keep))
    kept = LiveStreams(limit=25)

    def visit(place, nbytes):
        kept.take(("run", place))
        kept.put(("run", place), stream(place, nbytes))

    visit(0, 20)
    visit(0, 20)
    visit(1, 49)
    visit(0, 20)
    assert not told  # too little went
    visit(1, 60)
    assert not told  # who has put it still holds it
    visit(0, 20)
    assert told == [keep or 0] * times
    visit(1, 200)
    visit(0, 20)
    assert len(told) == times
    seconds[0] += 31
    visit(0, 20)
    assert len(told) == 2 * times
