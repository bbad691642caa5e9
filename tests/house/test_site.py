"""The reference of the documentation site has all public names. `make docs` builds it."""

import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def _script(name):
    found = importlib.util.spec_from_file_location(f"fastwin_docs_{name}", DOCS / "_site" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


REFERENCE = _script("reference")


@pytest.mark.parametrize("module", ["fastwin", "spark_glue", "fastwin.store", "fastwin.testing"])
def test_the_reference_has_every_public_name(module):
    if module == "spark_glue":
        pytest.importorskip("pyspark")
    assert not REFERENCE.missing(module, importlib.import_module(module).__all__)


def test_a_name_that_is_missing_is_told():
    names = [one for _, _, modules in REFERENCE.PAGES.values() for one in modules.get("fastwin", [])]
    assert REFERENCE.missing("fastwin", [*names, "Forgotten"]) == ["Forgotten"]
    assert REFERENCE.missing("fastwin", names[1:]) == [names[0]]
