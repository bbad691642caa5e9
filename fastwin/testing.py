"""For tests of windows: ``WindowHarness``, which takes one element at a time and shows everything that comes of it."""

from fastwin.run.harness import Emission, PendingTimer, WindowHarness

__all__ = ["Emission", "PendingTimer", "WindowHarness"]
