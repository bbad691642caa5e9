"""The Java that Spark would run, and the sentence where it does not do."""

from pathlib import Path

import pytest

from fastwin.machine import java
from fastwin.machine.java import find_java, java_command, java_fault


def _java(folder: Path, says: str) -> Path:
    """A program that tells its version as Java does."""
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return folder


def _tells(text: str) -> str:
    return f"echo '{text}' >&2"


@pytest.mark.parametrize(("text", "major"), [
    ('openjdk version "17.0.15" 2025-04-15', 17),
    ('java version "1.8.0_402"', 8),
    ('openjdk version "21" 2023-09-19', 21),
    ("what is this", None),
])  # fmt: skip
def test_the_version_is_read(tmp_path: Path, text: str, major: int | None) -> None:
    folder = _java(tmp_path / "bin", _tells(text))
    found = find_java({"PATH": str(folder)})
    assert found is not None and found.major == major and found.path == str(folder / "java")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    _java(tmp_path / "home" / "bin", _tells('openjdk version "21.0.2"'))
    path = _java(tmp_path / "bin", _tells('openjdk version "11.0.2"'))
    assert java_fault({"PATH": str(path), "JAVA_HOME": str(tmp_path / "home")}) is None
    assert java_fault({"PATH": str(path), "JAVA_HOME": str(tmp_path / "nothing")}) == (
        f"JAVA_HOME is {tmp_path}/nothing, and there is no bin/java in it: unset JAVA_HOME, or name another folder"
    )


def test_each_fault_has_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "java_command", lambda too_old=False: "get the old one" if too_old else "get one")
    empty = tmp_path / "empty"
    assert java_fault({"PATH": str(empty)}) == "Spark needs Java 17 or newer, and there is no java on PATH: get one"
    old = _java(tmp_path / "old", _tells('openjdk version "11.0.2"'))
    assert java_fault({"PATH": str(old)}) == (
        f"Spark needs Java 17 or newer, and {old}/java is 11.0.2: get the old one"
    )
    broken = _java(tmp_path / "broken", "exit 1")
    assert java_fault({"PATH": str(broken)}) == f"{broken}/java does not run (java -version): get one"


@pytest.mark.parametrize(("tool", "command"), [
    ("apt-get", "apt-get install default-jre-headless"),
    ("brew", "brew install openjdk@17"),
    ("nothing", "install a Java runtime, 17 or newer"),
])  # fmt: skip
def test_the_command_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch, tool: str, command: str) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name, path=None: f"/bin/{name}" if name == tool else None)
    assert java_command() == command
