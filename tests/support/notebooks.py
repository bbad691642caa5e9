"""Runs a notebook as a reader would, in an empty folder, and holds it to the texts that it is kept with."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

__all__ = ["NOTEBOOKS", "run_notebook"]

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def run_notebook(name: str, folder: Path) -> None:
    """Runs a notebook; raises where a cell fails, or gives other texts than it is kept with. Pictures may differ."""
    kept = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    told = [_texts(cell) for cell in kept.cells]
    NotebookClient(kept, timeout=500, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    for number, (cell, before) in enumerate(zip(kept.cells, told, strict=True)):
        assert _texts(cell) == before, f"{name}, cell {number} gave {_texts(cell)}:\n{cell.source}"
        assert all("image/svg+xml" in out.get("data", {}) for out in cell.get("outputs", []) if "Timeline(" in str(out))


def _texts(cell: nbformat.NotebookNode) -> list[str]:
    """Returns what a cell has written (as one text, since a kernel cuts it by the clock), and what it has shown."""
    outputs = cell.get("outputs", [])
    written = "".join(out["text"] for out in outputs if out.get("name") == "stdout")
    return [written, *(out["data"]["text/plain"] for out in outputs if "data" in out)]
