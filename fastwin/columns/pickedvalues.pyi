from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["frozen", "has_numbers"]

def has_numbers(kind: pa.DataType) -> bool: ...
def frozen(values: list[Any], kind: pa.DataType) -> NDArray[Any]: ...
