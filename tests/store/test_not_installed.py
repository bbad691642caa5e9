"""A store whose package is missing says which, and the command for it."""

import sys

import pytest

import fastwin as fw
from fastwin.store import PaneStore
from tests.support.clicks import spec_of


@pytest.mark.parametrize(("url", "package", "extra"), [
    ("rocksdb:panes", "rocksdict", "store"),
    ("redis://127.0.0.1:1/0", "redis", "redis"),
])  # fmt: skip
def test_a_store_without_its_package(url, package, extra, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "fastwin.store.redisservers", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    kind = url.partition(":")[0]
    told = rf"^{kind}: needs the package {package}: pip install 'fastwin\[{extra}\]'$"
    with pytest.raises(fw.NotInstalledError, match=told):
        PaneStore.open(url, spec_of())
    assert not list(tmp_path.iterdir())
