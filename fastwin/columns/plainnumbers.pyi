from typing import Any

import numpy as np
from numpy.typing import NDArray

def plain_ints(values: list[Any]) -> NDArray[np.int64] | None: ...
def plain_floats(values: list[Any]) -> NDArray[np.float64] | None: ...
