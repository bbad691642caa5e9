"""Timeline: what happened to some elements, in order, and a picture of it."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

from fastwin.errors import NotInstalledError, SpecError
from fastwin.timeline.recording import Arrived, Fired, Recording

__all__ = ["Timeline"]

_HINT = "pip install 'fastwin[plot]'"
_FORMATS = (".svg", ".png", ".pdf")


@dataclass(frozen=True, repr=False)
class Timeline(Recording):
    """What happened to some elements, and a picture of it: in a notebook by itself, in a file by ``save``.

    Time runs from left to right; what happened first is at the top. A dot is an element. A bar is a window that fired,
    with its result; the mark at its end tells when: on time, early, or again for a late element. The line is the
    watermark, and the area behind it is what it has passed. A late element is a cross in red.

    entries: what happened, in order: ``Arrived``, ``Moved`` and ``Fired`` of ``fastwin.timeline.recording``.
    ordered: whether the order of the elements is known. Otherwise they are in one line.
    key_names: of the key columns. axis: what the horizontal axis is. zone: of its times.

    The picture needs matplotlib: ``pip install 'fastwin[plot]'``.
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file: ``.svg``, ``.png`` or ``.pdf``, as the name ends.

        An SVG is dark where its reader's screen is. Raises SpecError for another ending,
        NotInstalledError without matplotlib.
        """
        name = os.fspath(path)
        if not name.lower().endswith(_FORMATS):
            raise SpecError(f"save: path must end in {', '.join(_FORMATS)}, got {name!r}")
        if not _can_draw():
            raise NotInstalledError(f"save: a timeline is drawn with matplotlib, which is not installed: {_HINT}")
        from fastwin.timeline import drawing

        with open(name, "wb") as file:
            file.write(drawing.rendered(self, name.lower().rpartition(".")[2]))

    def _repr_svg_(self) -> str | None:
        if not _can_draw() or not self.entries:
            return None
        from fastwin.timeline import drawing

        return drawing.rendered(self, "svg").decode()

    def __repr__(self) -> str:
        arrived = [entry for entry in self.entries if isinstance(entry, Arrived)]
        late = sum(entry.kind == "late" for entry in arrived)
        fired = sum(isinstance(entry, Fired) for entry in self.entries)
        how = 'save("timeline.svg") draws it' if _can_draw() else f"to draw it: {_HINT}"
        return f"Timeline({len(arrived)} elements, {late} of them late, {fired} firings; {how})"


def _can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None
