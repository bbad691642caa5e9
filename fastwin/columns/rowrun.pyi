from collections.abc import Iterator
from typing import Any, overload

from numpy.typing import NDArray

from fastwin.columns.row import Row

__all__ = ["RowRun"]

class RowRun:
    """Elements of one window that came one after the other."""

    def to_list(self, name: str) -> list[Any]: ...
    def to_numpy(self, name: str) -> NDArray[Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...
    @overload
    def __getitem__(self, at: int, /) -> Row: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[Row]: ...
