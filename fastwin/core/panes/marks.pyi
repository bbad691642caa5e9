import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.panetable import PaneTable

MARK_CELLS: int
MOST_GAP: int

def pass_windows(
    marks: PaneTable, keys: NDArray[np.int32], ends: NDArray[np.int64], gap: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
