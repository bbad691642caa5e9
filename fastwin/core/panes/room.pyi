import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.panetable import PaneTable

__all__ = ["make_room"]

def make_room(panes: PaneTable, keys: int, starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None: ...
