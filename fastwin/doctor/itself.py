"""fastwin itself: the interpreter, the compiled modules, and the packages it cannot do without."""

import importlib
import platform
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import fastwin
from fastwin.doctor.finding import Finding
from fastwin.machine.packages import fits, needs_of

__all__ = ["core_packages", "kernels", "python"]


def python() -> Finding:
    """Returns what the interpreter is, and whether it is one that fastwin is made for."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    text = f"{platform.python_version()} of {sys.executable}{'' if locked else ', free-threaded'}"
    try:
        limits = metadata("fastwin")["Requires-Python"] or ""
    except PackageNotFoundError:
        limits = ""
    if not fits(platform.python_version(), limits):
        return Finding("Python", "wrong", text, "runs fastwin", f"take a Python {limits}")
    return Finding("Python", "ok", text, "runs fastwin")


def kernels(folder: Path | None = None) -> Finding:
    """Returns whether all compiled modules are there, and can be loaded. folder: of the package."""
    folder = Path(fastwin.__file__).parent if folder is None else folder
    purpose = "all that is computed"
    built = {_module(path, folder): path for path in sorted(folder.rglob("*")) if _suffix(path)}
    sources = {_module(path, folder) for path in folder.rglob("*.pyx")}
    mend = "make compile" if sources else "pip install --force-reinstall --no-cache-dir fastwin"
    lost = sorted(sources - built.keys())
    if lost:
        return Finding("compiled modules", "wrong", f"{len(lost)} are not there, such as {lost[0]}", purpose, mend)
    for name in built:
        try:
            importlib.import_module(name)
        except ImportError as problem:
            return Finding("compiled modules", "wrong", f"{name} cannot be loaded: {problem}", purpose, mend)
    stable = sum(".abi3" in path.name for path in built.values())
    kind = (
        "for every Python from 3.11"
        if stable == len(built)
        else f"for Python {sys.version_info[0]}.{sys.version_info[1]}"
    )
    return Finding("compiled modules", "ok", f"{len(built)}, {kind}, in {folder}", purpose)


def _suffix(path: Path) -> str | None:
    return next((suffix for suffix in EXTENSION_SUFFIXES if path.name.endswith(suffix)), None)


def _module(path: Path, folder: Path) -> str:
    return ".".join([folder.name, *path.relative_to(folder).parts[:-1], path.name.partition(".")[0]])


def core_packages() -> Finding:
    """Returns whether the packages are there that fastwin cannot do without."""
    purpose = "tables in and out, state, time zones"
    needs = needs_of()
    if not needs:
        return Finding(
            "packages", "wrong", "fastwin is not installed, only imported", purpose, "pip install -e . in its folder"
        )
    faults = [need.fault for need in needs if need.fault]
    if faults:
        return Finding("packages", "wrong", f"needs {'; and '.join(faults)}", purpose, "pip install fastwin")
    return Finding("packages", "ok", ", ".join(f"{need.name} {need.installed}" for need in needs), purpose)
