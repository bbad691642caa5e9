"""The kernels, in Cython: numpy buffers in, numpy buffers out; no Arrow, no pandas, no Spark."""

import importlib
import platform
from pathlib import Path

from fastwin.errors import NotInstalledError

try:  # what every compiled module needs: where it is missing, all are
    importlib.import_module("fastwin.core._cyutility")
except ImportError as problem:
    _folder = Path(__file__).resolve().parents[2]
    if (_folder / "setup.py").exists():  # Python run in it takes these, and not what is installed
        _mend = (
            f"{_folder} is the folder of its sources. To use an installed fastwin, run Python from another folder. "
            f"To work on the sources, run in it: make compile"
        )
    else:
        _mend = "To install it anew: pip install --force-reinstall --no-cache-dir fastwin"
    raise NotInstalledError(
        f"fastwin: its compiled modules are not there, or not for Python {platform.python_version()} on this machine "
        f"({problem}). {_mend}"
    ) from problem
