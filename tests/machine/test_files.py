"""Files that are there as a whole or not at all."""

import os

import pytest

from fastwin.machine.files import put_whole


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """And its name is, before anybody goes by it."""
    done: list[str] = []
    for name in ("fsync", "replace"):
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, call=call: done.append(name) or call(*args))
    path, part = tmp_path / "file", tmp_path / "part"
    for data in (b"one", b"two"):
        put_whole(path, data, part, 1_600_000_000)
        assert path.read_bytes() == data and path.stat().st_mtime == 1_600_000_000
    assert done == ["fsync", "replace", "fsync"] * 2
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def full(file):
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        put_whole(path, b"after", tmp_path / "part")
    assert path.read_bytes() == b"before"
