"""Logs that ``fastwin pvuv --follow`` finds under another name, or that were rotated between two of its looks."""

import os
import time

import pytest

from spark_glue.apps.pvuv.spool import Spool


@pytest.fixture
def log(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "access.log"


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def test_a_renamed_log_that_is_still_written(tmp_path, log):
    """Its writer keeps it open for a moment: a last line without an end is taken when nothing comes any more."""
    spool = Spool(log, tmp_path / "out" / "lines", 100)
    append(log, "a\n")
    assert spool.look() == 1
    append(log, "cut in")
    old = log.with_name("access.log.1")
    log.rename(old)
    append(log, "x\n")
    assert spool.look() == 1
    append(old, " two\nlast")
    assert [spool.look() for _ in range(3)] == [1, 1, 0]
    append(old, "and more\n")
    assert spool.look() == 1
    copies = sorted((tmp_path / "out" / "lines").iterdir())
    assert "".join(path.read_text() for path in copies) == "a\nx\ncut in two\nlast\nand more\n"


def at(path, text, second):
    """Writes a log that was changed last at a second."""
    path.write_text(text)
    os.utime(path, (second, second))


@pytest.mark.parametrize("stopped", [False, True], ids=["between two looks", "while the command is stopped"])
@pytest.mark.parametrize("names", [
    ("access.log.2", "access.log.1"), ("access-20240101.log", "access-20240102.log"),
    ("access.log-2024-01-01", "access.log-1704153600"),
], ids=str)  # fmt: skip
def test_a_log_that_was_begun_and_rotated_since_the_last_look(tmp_path, log, names, stopped):
    folder, begun = tmp_path / "out" / "lines", time.time()
    others = ("access.log.9", "access-other.log", "access2.log", "access.log.pos", "access-2.log")
    at(log.with_name("access.log.9"), "much older\n", begun - 10)
    at(log, "a\n", begun)
    spool = Spool(log, folder, 100)
    assert spool.look() == 1
    append(log, "b\n")
    log.rename(log.with_name(names[0]))
    at(log.with_name(names[1]), "c\n", begun + 60)
    for name in others[1:]:
        at(log.with_name(name), f"{name}\n", begun + 60)
    at(log, "d\n", begun + 70)
    spool = Spool(log, folder, 100) if stopped else spool
    assert [spool.look(), spool.look()] == [3, 0]
    assert "".join(path.read_text() for path in sorted(folder.iterdir())) == "a\nb\nc\nd\n"


def test_a_log_that_comes_after_a_first_look_at_nothing(tmp_path, log):
    assert Spool(log, tmp_path / "out" / "lines", 100).look() == 0
    at(log.with_name("access.log.1"), "a\n", time.time() + 60)
    at(log.with_name("access.log.2"), "older\n", time.time() - 60)
    assert Spool(log, tmp_path / "out" / "lines", 100).look() == 1


def test_a_link_to_the_log_is_no_log_that_was_renamed(tmp_path, log):
    append(log, "a\n")
    log.with_name("access.log.1704153600").symlink_to(log)
    spool = Spool(log, tmp_path / "out" / "lines", 100)
    assert spool.look() == 1
    append(log, "cut")
    assert [spool.look() for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(("name", "old"), [
    ("access.log", "access-20240101.log"), ("access.log", "access.1.log"), ("access_log", "access_log-20240101"),
    ("[a]*.log", "[a]*.log.1"),
])  # fmt: skip
def test_names_of_rotated_logs(tmp_path, name, old):
    """As logrotate gives them, with ``dateext`` and ``extension`` too; signs of patterns in a name are its own."""
    log = tmp_path / name
    folder = tmp_path / "out" / "lines"
    append(log, "a\n")
    append(log.with_name("access-other.log"), "a\nno\n")
    assert Spool(log, folder, 100).look() == 1
    append(log, "b\n")
    log.rename(log.with_name(old))
    append(log, "x\n")
    assert Spool(log, folder, 100).look() == 2
    assert "".join(path.read_text() for path in sorted(folder.iterdir())) == "a\nb\nx\n"
