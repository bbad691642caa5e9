import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.panetable import PaneTable

__all__ = ["OpenEnds"]

class OpenEnds:
    looked: int
    def __init__(self, panes: PaneTable, step: int) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def go_by(self, places: object) -> None: ...
    def count(self, first: NDArray[np.int64], last: NDArray[np.int64], since: int) -> int: ...
