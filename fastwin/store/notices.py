"""What a writer is told of panes that a store did not take."""

import warnings

from fastwin.store.keytext import MAX_KEY_BYTES
from fastwin.store.records import Written

__all__ = ["Notices"]

_CALLER = 5  # behind tell, warn_of, _put and put


class Notices:
    """Warns of panes that were left out, once for each reason."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, shown: str, written: Written) -> None:
        """Warns of what is new. shown: the store's address."""
        if written.refused and "refused" not in self._told:
            self._told.add("refused")
            warnings.warn(
                f"store: {shown} takes keys of at most {MAX_KEY_BYTES} bytes as text; {written.refused} panes of "
                f"longer ones were left out, such as of {written.refused_key!r}...; further ones are counted in "
                f"Written.refused alone",
                stacklevel=_CALLER,
            )
