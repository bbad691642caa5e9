import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.panetable import PaneTable

def add_firsts(panes: PaneTable, keys: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.bool_]: ...
def add_apart(
    panes: PaneTable, keys: NDArray[np.int32], times: NDArray[np.int64], within: int
) -> NDArray[np.bool_]: ...
