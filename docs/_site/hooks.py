"""What MkDocs is given beside the pages in docs/: the reference and the figures, made anew by each build."""

import ast
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402
import performance  # noqa: E402
import reference  # noqa: E402

ROOT = HERE.parents[1]
CHECKED = {
    "fastwin": "fastwin/__init__.py",
    "spark_glue": "spark_glue/__init__.py",
    "fastwin.store": "fastwin/store/__init__.py",
    "fastwin.testing": "fastwin/testing.py",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Appends pages that the navigation does not name; gives llms.txt and everything.md its pages, in its order."""
    unnamed = {page.name for page in Path(config.docs_dir).glob("*.md")} - set(_paths(config.nav))
    next(tab["Run it"] for tab in config.nav or [] if "Run it" in tab).extend(sorted(unnamed))
    sections = {title: _paths(pages) for tab in config.nav or [] for title, pages in tab.items()}
    config.plugins["llmstxt"].config["sections"] = sections
    return config


def _paths(pages: Any) -> list[str]:
    """Returns the paths in a part of the navigation."""
    if isinstance(pages, str):
        return [pages]
    parts = pages.values() if isinstance(pages, dict) else pages
    return [path for part in parts for path in _paths(part)]


@event_priority(100)  # before the plugins, which look for the pages
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the generated pages and figures; raises PluginError for a public name that is on none of them."""
    for module, path in CHECKED.items():
        wrong = reference.missing(module, _public(ROOT / path))
        if wrong:
            raise PluginError(f"docs/_site/reference.py: not on a page, or not public, in {module}: {', '.join(wrong)}")
    for path, text in reference.pages().items():
        files.append(File.generated(config, path, content=text))
    for name, drawing in figures.figures().items():
        files.append(File.generated(config, name, content=drawing))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts what was measured into the pages that ask for it, and leaves out what is not true of the site."""
    return performance.filled(markdown)


def _public(path: Path) -> list[str]:
    """Returns what a module says is public."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names: Any = ast.literal_eval(node.value)
            return list(names)
    raise PluginError(f"{path} has no __all__")
