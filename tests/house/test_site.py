"""The reference of the documentation site has all public names. `make docs` builds it."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from tests.support.documents import run_blocks

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


EXAMPLES = REFERENCE.examples()
NAMES = [
    f"{module}.{name}"
    for _, _, modules in REFERENCE.PAGES.values()
    for module, names in modules.items()
    for name in names
]
SPARK_PAGES = "spark.md", "settings.md", "state.md", "changing.md", "store.md"
WITH_SPARK = {name for name in NAMES if name.startswith("spark_glue.")}


def _documented(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    return not isinstance(thing, int) and ">>>" in (thing.__doc__ or "")


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITH_SPARK))
def test_a_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (name in EXAMPLES) != _documented(name), (
        f"{name} needs one example: in its docstring, or in {REFERENCE.EXAMPLES.name}"
    )
    if name in EXAMPLES:
        run_blocks([EXAMPLES[""], EXAMPLES[name]], REFERENCE.EXAMPLES)


@pytest.mark.parametrize("name", sorted(WITH_SPARK))
def test_an_example_for_spark_is_a_part_of_a_page_that_runs(name):
    lines = {line.strip() for page in SPARK_PAGES for line in (DOCS / page).read_text(encoding="utf-8").splitlines()}
    lost = [line for line in EXAMPLES[name].splitlines() if line.strip() not in lines]
    assert not lost, f"not in {', '.join(SPARK_PAGES)}: {lost}"


def test_examples_are_for_public_names():
    assert set(EXAMPLES) - {""} <= set(NAMES)


def test_what_was_measured_has_its_place():
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    filled = _script("performance").filled(page)
    assert "<!-- measured" not in filled
    assert "In the sources of this page" in page
    assert "In the sources of this page" not in filled
    assert filled.count("x polars") > 5
    assert "Spark" in filled


@pytest.mark.parametrize("page", ["index.md", "pictures.md", "performance.md"])
def test_what_is_said_of_the_sources_is_not_on_the_site(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count("<!-- not on the site -->") == 1
    shown = _script("performance").filled(text)
    assert "In the sources of this page" not in shown
    assert len(shown) > len(text) - 200


def test_figures_are_made_by_their_pages():
    shown = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"\]\(([\w-]+\.svg)\)", page.read_text(encoding="utf-8"))
    }
    assert len(shown) > 18
    assert shown == set(_script("figures").figures())
