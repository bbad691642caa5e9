"""The machine and the versions of libraries that a result was made with."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from bench.scale import PEER_THREADS

__all__ = ["about", "commit", "load", "versions"]

_LIBRARIES = (
    "numpy", "pyarrow", "polars", "duckdb", "datafusion", "chdb", "pandas", "sortedcontainers", "pyspark", "Cython",
)  # fmt: skip


def versions(*others: str) -> dict[str, str]:
    """Returns the versions of fastwin and of those libraries that are installed; others: names of some more."""
    import fastwin

    found = {"fastwin": fastwin.__version__}
    for name in dict.fromkeys((*_LIBRARIES, *others)):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def about() -> dict[str, Any]:
    """Returns what is worth knowing of this machine."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "peer_threads": PEER_THREADS,
        "load_at_start": load(),
        "python_version": platform.python_version(),
    }


def load() -> float | None:
    """Returns the mean of the machine's load in the last minute, or None where the system does not tell it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def commit() -> str | None:
    """Returns the commit that is checked out, or None outside of a repository, or without git."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def _cpu() -> str | None:
    told = Path("/proc/cpuinfo")
    for line in told.read_text(encoding="utf-8").splitlines() if told.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None
