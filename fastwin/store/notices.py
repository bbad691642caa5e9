"""What a writer is told of panes that a store did not take, or has lost."""

import warnings
from collections.abc import Callable

from fastwin.callers import callers_level
from fastwin.store.keytext import MAX_KEY_BYTES
from fastwin.store.records import Meta, Written
from fastwin.store.spans import time_text
from fastwin.times import format_ms

__all__ = ["Notices"]


class Notices:
    """Warns of panes that were left out, and of text that was mended, once for each; and of each time that all are
    gone."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, shown: str, written: Written, meta: Callable[[], Meta | None]) -> None:
        """Warns of what is new. shown: the store's address. meta: asks what it says of itself."""
        if written.expired and "expired" not in self._told and (now := meta()) is not None:
            watermark = "" if now.watermark is None else f", {time_text(now.watermark)}"
            self._once(
                "expired",
                f"store: {shown} keeps panes for {format_ms(now.layout.retention_ms)} before its watermark{watermark}; "
                f"{written.expired} older ones were left out. All writers of a store have one watermark, that of the "
                f"first of them: where others lag behind it, choose a longer retention, or a store for each",
            )
        if written.refused:
            self._once(
                "refused",
                f"store: {shown} takes keys of at most {MAX_KEY_BYTES} bytes as text; {written.refused} panes of "
                f"others, longer or not in UTF-8, were left out, such as of {written.refused_key!r}...",
            )
        if written.replaced:
            self._once(
                "replaced",
                f"store: {shown} takes text in UTF-8; in {written.replaced} values U+FFFD stands for other bytes",
            )

    def _once(self, what: str, sentence: str) -> None:
        """Warns of a count of Written, unless it has been done."""
        if what not in self._told:
            self._told.add(what)
            warnings.warn(f"{sentence}; further ones are counted in Written.{what} alone", stacklevel=callers_level())

    @staticmethod
    def emptied(shown: str) -> None:
        """Warns that a store has no panes any more."""
        warnings.warn(
            f"store: {shown} has lost all panes since the last batch; those that the stream still writes come back, "
            f"earlier ones do not",
            stacklevel=callers_level(),
        )
