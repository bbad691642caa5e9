from collections.abc import Iterable
from typing import final

import pyarrow as pa

from fastwin.columns.row import RowType

__all__ = ["HandedRows"]

@final
class HandedRows:
    """The rows that user code was handed last."""

    def __init__(self, type: RowType, kinds: Iterable[pa.DataType]) -> None: ...
