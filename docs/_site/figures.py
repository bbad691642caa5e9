"""The figures of pages: each page makes its own, by the code that its readers see."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

__all__ = ["figures"]

DOCS = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def figures() -> dict[str, bytes]:
    """Runs the code of each page that saves a figure, in an empty folder; returns the figures by name."""
    made: dict[str, bytes] = {}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if '.svg")' in text:
            made |= _made_by(_BLOCK.findall(text), page)
    return made


def _made_by(blocks: list[str], page: Path) -> dict[str, bytes]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            scope: dict[str, object] = {"__name__": "__main__"}
            for block in blocks:
                exec(compile(block, str(page), "exec"), scope)
            return {path.name: path.read_bytes() for path in Path(folder).glob("*.svg")}
        finally:
            os.chdir(before)
