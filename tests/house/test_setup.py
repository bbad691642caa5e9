"""setup.py says at once where the kernels cannot be built."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _setup():
    found = importlib.util.spec_from_file_location("fastwin_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_windows_is_refused_before_anything_is_compiled(monkeypatch):
    module = _setup()
    monkeypatch.setattr(module, "os", SimpleNamespace(name="nt"))
    with pytest.raises(SystemExit, match=r"Windows is not supported: .* \(WSL\)"):
        module.check_platform()


@pytest.mark.parametrize(
    "system", [{"maxsize": 2**31 - 1, "byteorder": "little"}, {"maxsize": 2**63 - 1, "byteorder": "big"}]
)
def test_machines_that_kernels_do_not_fit_are_refused(monkeypatch, system):
    module = _setup()
    monkeypatch.setattr(module, "sys", SimpleNamespace(exit=sys.exit, **system))
    with pytest.raises(SystemExit, match="64 bits that keeps the lowest byte first"):
        module.check_platform()


def test_other_systems_pass():
    _setup().check_platform()


README = "See [the docs](docs/index.md), [LICENSE](LICENSE), ![a chart](bench/chart.png), [Arrow](https://x.example/), [up](#top)."


def test_links_of_the_readme_lead_into_the_repository():
    assert _setup().description(README, "https://host.example/fastwin", "1.2.3") == (
        "See [the docs](https://host.example/fastwin/blob/v1.2.3/docs/index.md), "
        "[LICENSE](https://host.example/fastwin/blob/v1.2.3/LICENSE), "
        "![a chart](https://host.example/fastwin/raw/v1.2.3/bench/chart.png), [Arrow](https://x.example/), [up](#top)."
    )


def test_without_a_known_repository_links_become_names_of_files():
    assert _setup().description(README, "", "1.2.3") == (
        "See the docs (`docs/index.md`), LICENSE, a chart (`bench/chart.png`), [Arrow](https://x.example/), [up](#top)."
    )


def test_the_version_stands_in_one_place(monkeypatch):
    import fastwin

    module = _setup()
    assert module.version() == fastwin.__version__
    assert "version =" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.")[0]


def test_links_of_the_package_need_a_known_repository(monkeypatch):
    monkeypatch.setenv("FASTWIN_REPOSITORY", "https://host.example/fastwin/")
    urls = _setup().metadata()["project_urls"]
    assert urls["Source"] == "https://host.example/fastwin" and urls["Changelog"].endswith("/CHANGELOG.md")
    monkeypatch.delenv("FASTWIN_REPOSITORY")
    assert _setup().metadata()["project_urls"] == {}


def test_progress_says_how_far_the_compiler_is(capsys):
    progress = _setup().Progress(24)
    for _ in range(24):
        progress.done("fastwin.core.keys")
    assert capsys.readouterr().err.splitlines() == ["Compiled 12 of 24 modules", "Compiled 24 of 24 modules"]
