"""The files of the page: our own, and the charting library out of its installed package."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastwin.errors import NotInstalledError

__all__ = ["Asset", "asset", "names"]

_OWN = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "time.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "draw.js": "text/javascript; charset=utf-8",
}
_PLOTLY = "plotly.min.js"


@dataclass(frozen=True)
class Asset:
    """A file, its media type, the same compressed, and a tag that changes with it."""

    content: bytes
    compressed: bytes
    kind: str
    tag: str


def names() -> tuple[str, ...]:
    """Returns the names of all files."""
    return (*_OWN, _PLOTLY)


@cache
def asset(name: str) -> Asset:
    """Returns a file by its name. Raises KeyError for another name, NotInstalledError without plotly."""
    if name == _PLOTLY:
        try:
            content = (files("plotly") / "package_data" / _PLOTLY).read_bytes()
        except (ModuleNotFoundError, FileNotFoundError):
            raise NotInstalledError("serve: needs the package plotly: pip install 'fastwin[serve]'") from None
        kind = "text/javascript; charset=utf-8"
    else:
        kind = _OWN[name]
        content = (files("fastwin.serve") / "static" / name).read_bytes()
    return Asset(content, gzip.compress(content, 6, mtime=0), kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
