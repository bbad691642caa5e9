"""The kernels, in Cython: numpy buffers in, numpy buffers out; no Arrow, no pandas, no Spark."""

import importlib
import platform

from fastwin.errors import NotInstalledError

try:  # what every compiled module needs: where it is missing, all are
    importlib.import_module("fastwin.core._cyutility")
except ImportError as problem:
    raise NotInstalledError(
        f"fastwin: its compiled modules are not there, or not for Python {platform.python_version()} on this machine "
        f"({problem}). In the folder of its sources: make compile. "
        f"Else: pip install --force-reinstall --no-cache-dir fastwin"
    ) from problem
