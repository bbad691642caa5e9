"""The notebooks of the site run, and show what they are kept with. tests/spark has the one with Spark."""

import pytest

from tests.support.notebooks import NOTEBOOKS, run_notebook

WITH_SPARK = {"spark"}


@pytest.mark.parametrize("name", sorted({path.stem for path in NOTEBOOKS.glob("*.ipynb")} - WITH_SPARK))
def test_a_notebook_runs(name, tmp_path):
    run_notebook(name, tmp_path)


def test_a_notebook_that_shows_something_else_is_told(tmp_path, monkeypatch):
    text = (NOTEBOOKS / "first-windows.ipynb").read_text(encoding="utf-8")
    assert "2 windows at the end" in text
    (tmp_path / "wrong.ipynb").write_text(
        text.replace("2 windows at the end", "3 windows at the end"), encoding="utf-8"
    )
    monkeypatch.setattr("tests.support.notebooks.NOTEBOOKS", tmp_path)
    with pytest.raises(AssertionError, match="wrong, cell"):
        run_notebook("wrong", tmp_path)


def test_each_notebook_has_a_line_on_its_page():
    page = (NOTEBOOKS.parent / "notebooks.md").read_text(encoding="utf-8")
    assert all(f"(notebooks/{path.name})" in page for path in NOTEBOOKS.glob("*.ipynb"))
