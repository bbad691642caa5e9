"""Logs that grow: copied for Spark line by line, over rotations and restarts; and ``pvuv --follow`` over one."""

import errno
import gzip
import hashlib
import io
import json
import os
import socket
import threading
import time
import urllib.request
from types import SimpleNamespace

import pytest

import spark_glue
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from spark_glue.apps.pvuv import main as pvuv
from spark_glue.apps.pvuv import spool as spools
from spark_glue.apps.pvuv.spool import Spool
from tests.support.pvuv import arguments


class Spooled:
    """A spool that starts anew for each look, and what it has copied."""

    def __init__(self, source, folder):
        self._source, self._folder = source, folder

    def look(self) -> list[str]:
        before = set(self._folder.glob("*.log"))
        n = Spool(self._source, self._folder, 3).look()
        new = sorted(set(self._folder.glob("*.log")) - before)
        lines = [line for path in new for line in path.read_text().splitlines()]
        assert len(lines) == n and all(path.read_text().count("\n") <= 3 for path in new)
        return lines


@pytest.fixture
def log(tmp_path):
    return tmp_path / "logs" / "access.log"


@pytest.fixture
def spooled(tmp_path, log):
    log.parent.mkdir()
    return Spooled(log, tmp_path / "out" / "lines")


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def test_only_what_is_new_and_complete(log, spooled):
    assert spooled.look() == []  # not there yet
    append(log, "a")
    assert spooled.look() == []
    append(log, "\nb\nc\nd\npart")
    assert spooled.look() == ["a", "b", "c", "d"]
    assert spooled.look() == []
    append(log, "ly\n")
    assert spooled.look() == ["partly"]


@pytest.mark.parametrize("packed", [False, True])
def test_rotated(log, spooled, packed):
    """What was written before the rotation is read behind it, also of a log that was compressed meanwhile."""
    append(log.with_name("access.log.9"), "much older\n")
    append(log, "a\nb\n")
    assert spooled.look() == ["a", "b"]
    append(log, "c\nd\n")
    old = log.with_name("access.log.1")
    if packed:
        append(log, "last without an end")
        old.with_suffix(".1.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
    else:
        log.rename(old)
    append(log, "x\n")
    assert spooled.look() == ["c", "d", *["last without an end"] * packed, "x"]
    append(log, "y\n")
    assert spooled.look() == ["y"]


@pytest.mark.parametrize("head", ["", "#Fields: date time\n"])
def test_truncated(log, spooled, head):
    append(log, f"{head}a\nb\n")
    assert spooled.look() == [*head.splitlines(), "a", "b"]
    log.write_text(f"{head}x\n")
    assert spooled.look() == [*head.splitlines(), "x"]


def test_folder(tmp_path, log, spooled):
    folder = Spooled(log.parent, tmp_path / "out" / "lines")
    append(log, "a\n")
    (log.parent / "b.gz").write_bytes(gzip.compress(b"b\nb"))
    append(log.parent / ".hidden", "no\n")
    for number, name in enumerate((log.name, "b.gz")):
        os.utime(log.parent / name, (number, number))
    assert folder.look() == ["a", "b", "b"]
    append(log.parent / "new", "c\n")
    append(log, "d\n")
    assert sorted(folder.look()) == ["c", "d"]
    log.rename(log.parent / "access.log.1")
    assert folder.look() == []


def test_logs_with_the_same_first_line(tmp_path, log, spooled):
    """As two hosts write them that were asked in the same second: none is taken for the other."""
    folder = Spooled(log.parent, tmp_path / "out" / "lines")
    one, two = log.with_name("one"), log.with_name("two")
    append(one, "same\na\nb\n")
    append(two, "same\nc\n")
    assert sorted(folder.look()) == ["a", "b", "c", "same", "same"]
    append(two, "d\n")
    assert folder.look() == ["d"]
    append(one, "e\n")
    os.utime(one, (0, 0))
    assert folder.look() == ["e"]
    one.rename(log.with_name("one.1"))
    log.with_name("two.1.gz").write_bytes(gzip.compress(two.read_bytes()))
    append(one, "same\n")
    assert folder.look() == []  # as a copy that has just begun looks
    append(one, "f\n")
    assert folder.look() == ["same", "f"]
    two.unlink()
    append(two, "same\ng\nh\n")
    assert folder.look() == ["same", "g", "h"]


def test_positions_of_an_earlier_version(log, spooled, tmp_path):
    append(log, "a\nb\n")
    state = tmp_path / "out" / "positions.json"
    state.parent.mkdir()
    state.write_text(json.dumps({hashlib.sha256(b"a").hexdigest()[:16]: 2, "": 7}))
    assert spooled.look() == ["b"]
    assert [path.name[:8] for path in (tmp_path / "out" / "lines").iterdir()] == ["00000007"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": []}', "\0\0"])
def test_positions_that_cannot_be_read(log, spooled, tmp_path, text):
    append(log, "a\n")
    assert spooled.look() == ["a"]
    (tmp_path / "out" / "positions.json").write_text(text)
    with pytest.raises(SpecError, match=r"--out: .*out/positions.json is damaged"):
        spooled.look()


def test_copies_that_spark_has_read_may_go(log, spooled, tmp_path):
    append(log, "a\nb\n")
    assert spooled.look() == ["a", "b"]
    for path in (tmp_path / "out" / "lines").iterdir():
        path.unlink()
    assert spooled.look() == []
    (tmp_path / "out" / "positions.json").unlink()  # killed before it was written: names tell as well
    append(log, "c\n")
    assert spooled.look() == ["a", "b", "c"]
    (tmp_path / "out" / "positions.json").unlink()
    assert spooled.look() == []
    for path in (tmp_path / "out" / "lines").iterdir():
        path.unlink()
    assert spooled.look() == []


def test_ctrl_c_between_a_copy_and_its_position(tmp_path, log, spooled, monkeypatch):
    """Spark still reads the copy and deletes it: its lines do not come again."""
    append(log, "a\nb\n")
    folder, put_whole, begun = tmp_path / "out" / "lines", spools.put_whole, []

    def put(path, *given):
        begun.append(path.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        put_whole(path, *given)

    def drain(query, batches):
        for path in folder.iterdir():
            path.unlink()

    monkeypatch.setattr(spools, "put_whole", put)
    monkeypatch.setattr(pvuv, "_drain", drain)
    monkeypatch.setattr(pvuv, "_LOOK_SECONDS", 0)
    run = SimpleNamespace(batches=None)
    pvuv._follow(SimpleNamespace(isActive=True), Spool(log, folder, 3), run, threading.Event())
    assert begun[1] == "positions.json" and not list(folder.iterdir())
    append(log, "c\n")
    assert spooled.look() == ["c"]


def test_a_stream_that_ends(tmp_path):
    spool = Spool(tmp_path, tmp_path / "out" / "lines", 2)
    assert spool.take(io.BytesIO(b"a\nb\nc")) == 3
    names = sorted(path.name for path in (tmp_path / "out" / "lines").iterdir())
    assert names == ["00000000-stream-4.log", "00000001-stream-5.log"]


def test_a_damaged_gzip(tmp_path, log, spooled):
    whole = gzip.compress(b"a\n" + os.urandom(100_000))
    log.write_bytes(whole[:50_000])
    with pytest.raises(SpecError, match=r"access.log cannot be read"):
        spooled.look()


def test_a_rotated_log_while_it_is_compressed(tmp_path, log):
    """The lines in front of where it is cut off may come at once, the others when it is whole; each comes once."""
    said: list[str] = []
    folder = tmp_path / "out" / "lines"
    log.parent.mkdir()
    spool = Spool(log, folder, 100, said.append)
    append(log, "a\nb\n")
    assert spool.look() == 2
    append(log, "".join(f"{os.urandom(8).hex()}\n" for _ in range(2_000)))
    lines, packed = log.read_text().splitlines(), gzip.compress(log.read_bytes())
    old = log.with_name("access.log.1.gz")
    log.unlink()
    found = 2
    for size in (1, 15, len(packed) // 3, len(packed) // 2):
        old.write_bytes(packed[:size])
        found += spool.look()
    assert 2 <= found < 2_002 and said == []
    assert [spool.look() for _ in range(3)] == [0, 0, 0]  # nobody goes on with it
    (told,) = said
    assert told.startswith(f"{old}: the gzip is cut off or damaged: ")
    old.write_bytes(packed)
    assert found + spool.look() == 2_002
    assert [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()] == lines
    assert spool.look() == 0 and len(said) == 1


@pytest.mark.parametrize(
    "damaged",
    [
        lambda packed: packed[:-8],
        lambda packed: packed[:-8] + bytes(8),  # its checksum is another one
        lambda packed: packed[:10] + b"\xff" * 99,
    ],
)
def test_an_old_log_that_is_damaged_keeps_nothing_from_starting(log, spooled, damaged):
    append(log, "a\nb\n")
    assert spooled.look() == ["a", "b"]
    log.with_name("access.log.1.gz").write_bytes(damaged(gzip.compress(log.read_bytes())))
    log.write_text("x\n")
    assert spooled.look() == ["x"]


def test_a_log_that_is_renamed_while_others_are_looked_at(log, spooled, monkeypatch):
    append(log, "a\n")
    assert spooled.look() == ["a"]
    old, older = log.with_name("access.log.1"), log.with_name("access.log.2")
    log.rename(old)
    append(log, "b\n")
    begin = spools._begin

    def rotated(path):
        found = begin(path)
        if path == old and old.exists():
            old.rename(older)
        return found

    monkeypatch.setattr(spools, "_begin", rotated)
    assert spooled.look() == ["b"]
    assert spooled.look() == [] and older.exists()


def test_copies_that_cannot_be_written(tmp_path, log, spooled, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    append(log, "a\n")
    folder = tmp_path / "out" / "lines"
    spool = Spool(log, folder, 3)
    with monkeypatch.context() as patch:
        patch.setattr(spools, "put_whole", full)
        with pytest.raises(SpecError, match=r"^--out: .*/out/lines/.* cannot be written: .*No space left"):
            spool.look()
    folder.rmdir()
    with pytest.raises(SpecError, match=r"^--out: .*/out/lines/.* cannot be written: .*No such file"):
        spool.look()
    folder.mkdir()
    assert spool.look() == 1


# --- the command ---


def test_few_files_are_made_for_spark(monkeypatch):
    """It remembers each for good: so what comes is gathered for some seconds, and the rest is copied in the end."""
    seconds, copied = [0.0], []
    monkeypatch.setattr(pvuv, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(pvuv, "_drain", lambda *given: None)

    def wait(timeout):
        seconds[0] += timeout
        return seconds[0] > 60

    spool = SimpleNamespace(look=lambda: copied.append(seconds[0]), settle=lambda: None)
    run = SimpleNamespace(batches=SimpleNamespace(count=0, look=lambda query: None))
    pvuv._follow(SimpleNamespace(isActive=True), spool, run, SimpleNamespace(wait=wait))
    assert copied == [1, 11, 21, 31, 41, 51, 61]


def line(hour: int, minute: int, visitor: int) -> str:
    moment = f"17/May/2015:{hour:02d}:{minute:02d}:00 +0000"
    return f'10.0.0.{visitor} - - [{moment}] "GET /blog/a HTTP/1.1" 200 5 "-" "A"\n'


@pytest.mark.long
def test_follow_and_go_on(spark, tmp_path, monkeypatch, log):
    """A log that grows and is rotated while the command runs, and while it does not."""
    monkeypatch.setattr(spark_glue, "session", lambda *a: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    log.parent.mkdir()
    out = tmp_path / "out"
    given = [
        str(log),
        "--follow",
        "--out",
        str(out),
        "--watermark",
        "1 minute",
        "--slide",
        "1 minute",
        "--window",
        "1 hour",
    ]
    append(log, line(10, 0, 1) + "malformed\n")

    def runs(then, views: int, *more: str, seen=views_in_store) -> None:
        stop = threading.Event()
        failed: list[BaseException] = []

        def act() -> None:
            try:
                end = time.monotonic() + 200
                while not (out / "positions.json").exists():
                    assert time.monotonic() < end
                    time.sleep(0.05)
                then()
                while seen(out) != views:
                    assert time.monotonic() < end, seen(out)
                    time.sleep(0.3)
            except BaseException as problem:
                failed.append(problem)
            finally:
                stop.set()

        thread = threading.Thread(target=act)
        thread.start()
        assert pvuv.run(arguments(*given, *more), stop) == 0
        thread.join()
        assert not failed, failed

    def grow() -> None:
        append(log, line(10, 5, 1))
        log.rename(log.with_name("access.log.1"))
        append(log, line(10, 10, 2))

    runs(grow, 2)  # of the third, the pane is open still
    append(log, line(10, 20, 3))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The page shows what the stream writes, while it does; and ends with it.
    runs(lambda: append(log, line(10, 30, 1)), 4, "--serve", "--port", str(port), seen=lambda out: views_on_page(port))
    assert views_on_page(port) is None
    assert (out / "malformed.log").read_text() == "malformed\n"
    with pytest.raises(SpecError, match=r"--out: .* was begun with other options"):
        pvuv.run(arguments(*given, "--all-requests"))


def views_on_page(port: int) -> int | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/current", timeout=20) as answer:
            return sum(row["pv"] for row in json.load(answer)["rows"])
    except OSError:
        return None  # not there yet, or it has no windows yet


def views_in_store(out) -> int | None:
    try:
        with PaneStore.open(f"rocksdb:{out / 'store'}", read_only=True) as store:
            return sum(store.query()["pv"].to_pylist())
    except Exception:
        return None  # not there yet
