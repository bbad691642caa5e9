"""A clock of the machine that stands still until a test moves it."""

import time

import pytest

__all__ = ["Clock"]


class Clock:
    """The machine's clock, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
