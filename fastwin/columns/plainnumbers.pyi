from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["plain_floats", "plain_ints"]

def plain_ints(values: list[Any]) -> NDArray[np.int64] | None: ...
def plain_floats(values: list[Any]) -> NDArray[np.float64] | None: ...
