"""The code in README and docs/ runs from an empty folder and prints what it says. tests/spark has the pages with Spark."""

import ast
import builtins
import re
from pathlib import Path

import pytest

from tests.support.documents import ROOT, promised, python_blocks, run_blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_SPARK = {"README.md", "spark.md", "settings.md", "state.md", "changing.md", "store.md", "tutorial.md"}


def _name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in WITH_SPARK], ids=_name)
def test_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(python_blocks(page), page)


def test_the_readme_runs_up_to_spark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in python_blocks(PAGES[0]) if "spark_glue" not in block]
    assert len(blocks) >= 4
    run_blocks(blocks, PAGES[0])


def test_only_pages_with_spark_need_it():
    assert {page.name for page in PAGES if any("spark" in block for block in python_blocks(page))} <= WITH_SPARK


def test_pages_say_what_is_printed():
    said = {page.name: sum(len(promised(block)) for block in python_blocks(page)) for page in PAGES}
    assert said["README.md"] >= 4
    assert said["windows.md"] >= 7
    assert said["aggregates.md"] >= 1
    assert said["rows.md"] >= 4
    assert said["spark.md"] >= 15
    assert said["settings.md"] >= 2
    assert said["state.md"] >= 20
    assert said["changing.md"] >= 1
    assert said["store.md"] >= 1
    assert said["tutorial.md"] >= 10
    assert said["pictures.md"] >= 12
    assert said["coming-from.md"] >= 8
    assert said["recipes.md"] >= 20
    assert said["troubleshooting.md"] >= 6
    assert said["why.md"] >= 40
    assert said["choosing.md"] >= 3
    assert said["how-it-works.md"] >= 2


def test_the_map_names_files_that_are_there():
    """In docs/development.md: a path, or the end of one, below fastwin/, spark_glue/, tests/ or docs/."""
    page = ROOT / "docs" / "development.md"
    named = set(re.findall(r"`([\w/]+\.(?:py|pyx|pxd))`", page.read_text(encoding="utf-8")))
    assert len(named) > 30
    there = ["setup.py"] + [
        path.relative_to(ROOT).as_posix()
        for top in ("fastwin", "spark_glue", "tests", "docs")
        for path in (ROOT / top).rglob("*.p*")
    ]
    lost = {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in there)}
    assert not lost, f"the map names files that are not there: {', '.join(sorted(lost))}"


@pytest.mark.parametrize(
    ("block", "lines"),
    [
        ("print(x)  # 1", ["1"]),
        ("print(x)\n# 1\n# 2\ny = 3\n# no", ["1", "2"]),
        ("for x in y:\n    print(x)\n# 1", ["1"]),
        ("f.show()\n# +-+", ["+-+"]),
        ("x = f(1)  # no", []),
    ],
)
def test_what_a_block_promises(block, lines):
    assert promised(block) == lines


def test_a_promise_is_held(tmp_path):
    page = tmp_path / "page.md"
    run_blocks(["print('a 1 b')\nprint(2)\n# a ... b\n# 2"], page)
    with pytest.raises(AssertionError, match="says that this is printed"):
        run_blocks(["print(2)  # 3"], page)


def test_each_recipe_stands_for_itself(tmp_path, monkeypatch):
    """Behind the lines that the page begins with, and in an empty scope."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "recipes.md"
    first, *recipes = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(recipes) > 10
    for recipe in recipes:
        part = tmp_path / "recipe.md"
        part.write_text(f"{first}## {recipe}", encoding="utf-8")
        run_blocks(python_blocks(part), part)


def _bound(tree: ast.AST) -> set[str]:
    """Returns the names that code gives to something, anywhere in it."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


def test_a_recipe_that_is_not_run_stands_for_itself():
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    (first, *_), blocks = (
        python_blocks(ROOT / "docs" / "recipes.md"),
        re.findall(r"^```python t.*\n([^`]*)", page, re.M),
    )
    assert blocks
    for tree in map(ast.parse, blocks):
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert used <= _bound(tree) | _bound(ast.parse(first)) | set(dir(builtins))
