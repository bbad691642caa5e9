from typing import final

@final
class TextStore:
    """Byte strings by id."""

    def __init__(self) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def _check(self) -> None: ...
