from typing import Any, final

import pyarrow as pa

__all__ = ["Exact"]

@final
class Exact:
    """A value that Python has no object for, or none that is the same."""

    stored: int | pa.Array
    def __init__(self, shown: Any, stored: int | pa.Array) -> None: ...
    def shown_as(self, name: str) -> Any: ...
