"""The command line: its help, and commands whose packages are missing."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

import fastwin as fw
from fastwin import __main__ as command_line
from fastwin.__main__ import main, make_parser

ROOT = Path(__file__).resolve().parents[1]


def _examples(text: str) -> list[list[str]]:
    """The lines below "examples:" of a help, without what stands behind them, as words behind ``fastwin``."""
    found = re.search(r"^examples:\n((?: .*\n)+)", text, re.MULTILINE)
    assert found, text
    lines = [re.split(r" {3,}", line.strip())[0] for line in found[1].splitlines()]
    words = [shlex.split(line) for line in lines]
    return [line[line.index("fastwin") + 1 :] for line in words]


# As pyproject.toml has them, whatever is installed here.
POINTS = [
    EntryPoint(name, value, command_line.COMMANDS)
    for name, value in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"][
        command_line.COMMANDS
    ].items()
]


@pytest.mark.parametrize("name", [None, "doctor", *(point.name for point in POINTS)])
def test_help_has_examples_that_can_be_run(
    name: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(command_line, "entry_points", lambda group: POINTS)
    with pytest.raises(SystemExit):
        main([*([name] if name else []), "--help"])
    examples = _examples(capsys.readouterr().out)
    assert len(examples) >= 2
    for words in examples:
        assert callable(make_parser(words[0]).parse_args(words).run)


def test_a_command_without_its_packages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise fw.NotInstalledError("spark_glue: needs the package pyspark: pip install 'fastwin[spark]'")

    monkeypatch.setattr(command_line, "entry_points", lambda group: [SimpleNamespace(name="demo", load=missing)])
    assert main([]) == 0
    assert re.search(r"demo +not here: spark_glue: needs", capsys.readouterr().out)
    assert main(["demo", "--help"]) == 1
    assert capsys.readouterr().err == "fastwin: spark_glue: needs the package pyspark: pip install 'fastwin[spark]'\n"


def test_only_the_command_that_is_asked_for_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    points = [SimpleNamespace(name=name, load=lambda name=name: loaded.append(name)) for name in ("demo", "serve")]
    monkeypatch.setattr(command_line, "entry_points", lambda group: points)
    make_parser("doctor")
    assert loaded == []


_LINES = """
import sys
from types import SimpleNamespace
from fastwin import __main__ as command_line

def lines(_):
    for number in range(int(sys.argv[1])):
        print(number, flush=len(sys.argv) > 2)

def command(commands):
    commands.add_parser("lines").set_defaults(run=lines)

command_line.entry_points = lambda group: [SimpleNamespace(name="lines", load=lambda: command)]
sys.exit(command_line.main(["lines"]))
"""


@pytest.mark.parametrize("arguments", [("1000000", "flush"), ("1000000",), ("10",)])
def test_a_reader_that_has_seen_enough_ends_it_without_a_traceback(arguments: tuple[str, ...]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", _LINES, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        if "flush" in arguments:
            assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fastwin {fw.__version__}\n"
