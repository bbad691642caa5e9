"""The service without one of its packages says which, and the command for it."""

import subprocess
import sys

import pytest

from fastwin.errors import NotInstalledError
from fastwin.serve import assets
from tests.support.documents import ROOT


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "prometheus_client"])
def test_a_service_without_a_package(package):
    code = f"import sys; sys.modules[{package!r}] = None; import fastwin.serve.server"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"fastwin.errors.NotInstalledError: serve: needs the package {package}: pip install 'fastwin[serve]'"
    )


def test_a_page_without_plotly(monkeypatch):
    def files(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(assets, "files", files)
    assets.asset.cache_clear()
    with pytest.raises(NotInstalledError, match=r"^serve: needs the package plotly: pip install 'fastwin\[serve\]'$"):
        assets.asset("plotly.min.js")
