from typing import Any

from fastwin.columns.windowrows import WindowRows

__all__ = ["order_values"]

def order_values(elements: WindowRows, name: str) -> list[Any]: ...
