"""Logs that ``fastwin pvuv --follow`` may not read."""

import errno
import os
from pathlib import Path

import pytest

from fastwin.errors import SpecError
from spark_glue.apps.pvuv import spool as spools
from spark_glue.apps.pvuv.spool import Spool


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("place", ["the log itself", "one of a folder"])
def test_a_log_that_may_not_be_read_is_told(tmp_path, monkeypatch, place):
    """Also when it is one that has come since; but not when it is an older one that was never followed."""
    log = tmp_path / "logs" / "access.log"
    log.parent.mkdir()
    append(log, "a\n")
    old = log.with_name("access.log.1")
    append(old, "b\n")
    refused, opened = {old}, spools.opened

    def denied(path):
        if path in refused:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path)

    def look(source: Path) -> int:
        return Spool(source, tmp_path / "out" / "lines", 3).look()

    monkeypatch.setattr(spools, "opened", denied)
    alone = place == "the log itself"
    source = log if alone else log.parent
    if alone:
        assert look(log) == 1
        refused.add(log)
        append(log, "c\n")
    with pytest.raises(SpecError, match=r"^ACCESS_LOG: .*/access\.log.* cannot be read: .*Permission denied"):
        look(source)
    refused.clear()
    assert look(source) == 1  # what could be read before was
