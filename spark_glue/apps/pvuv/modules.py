"""From requests to events: which module a request belongs to, and who made it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.errors import SpecError

__all__ = ["LONGEST", "OTHER", "Counted", "Events", "module_of"]

OTHER = "(other)"
LONGEST = 200
"""Characters of a module's name that count."""

_PART = r"(?i)\.(?:css|js|mjs|map|png|jpe?g|gif|svg|ico|webp|avif|bmp|woff2?|ttf|eot|otf)$"
"""Images, styles, scripts and fonts: parts of pages."""
_DOWNLOAD = r"(?i)\.(?:mp[34]|webm|pdf|zip|gz)$"


def module_of(text: str) -> tuple[str, Callable[[str | None], str]]:
    """Returns the column that ``--module`` reads, and the function from its value to a module.

    Raises SpecError for what is none of ``path``, ``path:N``, ``host`` and ``regex:PATTERN``.
    """
    kind, _, argument = text.partition(":")
    if kind == "path" and (not argument or re.fullmatch("[1-9]", argument)):
        count = int(argument or 1)
        return "path", lambda path: "/" + "/".join([part for part in (path or "").split("/") if part][:count])
    if text == "host":
        return "host", lambda host: host.lower() if host else OTHER
    if kind == "regex" and argument:
        try:
            pattern = re.compile(argument)
        except re.error as problem:
            raise SpecError(f"--module: {argument!r} is no regular expression: {problem}") from None

        def matched(path: str | None) -> str:
            found = pattern.search(path or "")
            if found is None:
                return OTHER
            return (found[1] if pattern.groups else found[0]) or OTHER

        return "path", matched
    raise SpecError(f"--module: must be path, path:N with N from 1 to 9, host or regex:PATTERN, got {text!r}")


Counted = Literal["requests", "pages", "views"]


@dataclass(frozen=True)
class Events:
    """Makes events of requests. module: of ``--module``. visitor: ``ip`` or ``ip+agent``.

    count: all ``requests``; ``pages``, all but those for images, styles, scripts and fonts; or ``views``, of these
    only GET without an error, and no downloads.
    """

    module: str
    visitor: str = "ip+agent"
    count: Counted = "pages"

    def of(self, rows: pa.Table) -> tuple[pa.Table, int]:
        """Returns module, ts and visitor for rows of ``accesslog``, and how many rows are not counted."""
        total = rows.num_rows
        if self.count != "requests":
            page = pc.invert(pc.match_substring_regex(rows["path"], _PART))
            if self.count == "views":
                page = pc.and_(page, pc.invert(pc.match_substring_regex(rows["path"], _DOWNLOAD)))
                page = pc.and_(page, pc.and_(pc.equal(rows["method"], "GET"), pc.less(rows["status"], 400)))
            rows = rows.filter(page)
        column, name = module_of(self.module)
        encoded = rows[column].combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        names = pa.array([_cut(name(value)) for value in encoded.dictionary.to_pylist()], pa.string())
        visitor = rows["ip"]
        if self.visitor == "ip+agent":
            visitor = pc.binary_join_element_wise(visitor, rows["agent"].fill_null(""), " ")
        events = pa.table({"module": names.take(encoded.indices), "ts": rows["ts"], "visitor": visitor})
        return events, total - rows.num_rows


def _cut(module: str) -> str:
    """Returns a name that a store takes, however long a request is."""
    return module if len(module) <= LONGEST else f"{module[:LONGEST]}..."
