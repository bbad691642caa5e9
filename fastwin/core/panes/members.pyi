import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.panetable import PaneTable

def link(panes: PaneTable, slots: NDArray[np.int32], members: NDArray[np.int32], before: NDArray[np.int32]) -> None: ...
def unlink(
    panes: PaneTable, slots: NDArray[np.int32], before: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def members_of(
    panes: PaneTable, keys: NDArray[np.int32], starts: NDArray[np.int64], before: NDArray[np.int32]
) -> NDArray[np.int32]: ...
