"""setup.py says at once where the kernels cannot be built."""

import importlib.util
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


def test_other_systems_pass():
    _setup().check_platform()
