"""Runs the Python blocks of a page as a reader would: one after the other, in an empty folder, word for word.

As a program: ``python -m tests.support.documents PAGE`` runs all of them in the current folder, and fails where a block
does not print what its comments say.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

__all__ = ["block_with", "promised", "python_blocks", "run_blocks"]

ROOT = Path(__file__).resolve().parents[2]

_SHOWS = re.compile(r"\bprint\(|\.show\(")


def python_blocks(page: Path) -> list[str]:
    """Returns the Python blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def block_with(page: Path, text: str) -> str:
    """Returns the Python block of a page that has a text in it, also one with a title, which does not run with the page."""
    blocks = re.findall(
        r"^```python(?: [^\n]*)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (found,) = [block for block in blocks if text in block]
    return found


def promised(block: str) -> list[str]:
    """Returns the lines that a block says it prints: comments behind a print, or right below it, alone on their lines."""
    found, after = [], False
    for line in block.splitlines():
        comment = re.match(r"\s*# ?(.*)$", line)
        if comment and after:
            found.append(comment[1])
            continue
        after = bool(_SHOWS.search(line))
        behind = re.search(r"\)  # (.*)$", line)
        if after and behind:
            found.append(behind[1])
    return found


def run_blocks(blocks: list[str], page: Path) -> None:
    """Runs blocks in one scope; raises AssertionError where one does not print what it says. ``...`` is anything."""
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, str(page), "exec"), scope)
        left = iter(out.getvalue().splitlines())
        for line in promised(block):
            pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("..."))))
            assert any(pattern.fullmatch(printed.rstrip()) for printed in left), (
                f"{page.name} says that this is printed:\n{line}\nbut the block prints:\n{out.getvalue()}"
            )


if __name__ == "__main__":
    page = Path(sys.argv[1])
    run_blocks(python_blocks(page), page)
