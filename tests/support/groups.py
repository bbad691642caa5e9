"""Control groups of Linux, made up."""

from pathlib import Path

import pytest

from fastwin.machine import cgroups

__all__ = ["groups"]

OWN = "4:cpu,cpuacct:/box\n3:memory:/box\n1:name=systemd:/box\n0::/pods/one\n"


def groups(folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], own: str = OWN) -> None:
    """Makes files the limits that this process is told. own: in which groups it is, as /proc tells."""
    mount, told = folder / "mount", folder / "own"
    for name, text in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(text)
    told.write_text(own)
    monkeypatch.setattr(cgroups, "_MOUNT", mount)
    monkeypatch.setattr(cgroups, "_OWN", told)
