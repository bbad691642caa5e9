"""Builds the Cython kernels; everything else about the package is in pyproject.toml.

The environment chooses the build mode:
    FASTWIN_DEBUG=1            bounds, overflow and initialisation checks on
    FASTWIN_ASAN=1             the same, with AddressSanitizer
    FASTWIN_TSAN=1             ThreadSanitizer, without those checks
    FASTWIN_ABI3=1             for every Python from 3.11 on, by the stable ABI: one wheel, not one for each version
    FASTWIN_SKIP_EXTENSIONS=1  no kernels at all (for an editable install that compiles them in a step of its own)
    MAX_JOBS=2                 how many compilers run at once; else one for each processor that this process may use
    FASTWIN_REPOSITORY=URL     where the sources are published: the package's links lead there
"""

import os
import re
import runpy
import sys
import sysconfig
import threading
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
ASAN = os.environ.get("FASTWIN_ASAN") == "1"
TSAN = os.environ.get("FASTWIN_TSAN") == "1"
DEBUG = ASAN or os.environ.get("FASTWIN_DEBUG") == "1"
SKIP = os.environ.get("FASTWIN_SKIP_EXTENSIONS") == "1"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# A free-threaded Python has no stable ABI.
ABI3 = os.environ.get("FASTWIN_ABI3") == "1" and not FREE_THREADED
OLDEST = (3, 11)
REPOSITORY = os.environ.get("FASTWIN_REPOSITORY", "").rstrip("/")
MODE = "asan" if ASAN else "tsan" if TSAN else "debug" if DEBUG else "abi3" if ABI3 else "release"
_PROCESSORS = runpy.run_path(str(ROOT / "fastwin" / "machine" / "cgroups.py"))["processors"]
CORES = max(0, int(os.environ.get("MAX_JOBS") or 0)) or _PROCESSORS()
# What every module with memoryviews needs of Cython is compiled once, here, and not into each of them.
SHARED = "fastwin.core._cyutility"

SAFE = {
    "language_level": 3,
    "auto_pickle": False,
    "binding": True,
    "boundscheck": True,
    "cdivision": False,
    "embedsignature": True,
    "show_performance_hints": False,  # of code where checks are on because speed is not what matters
    "wraparound": True,
}
# Kernels index only what their validators have checked. The directives live here and not in the files: a `# cython:`
# comment would win over this table, and the checked build could not turn the checks on.
KERNELS = SAFE | {"boundscheck": False, "show_performance_hints": True, "wraparound": False}
CHECKED = SAFE | {
    "initializedcheck": True,
    "overflowcheck": True,
    "wraparound": False,  # a negative index in a kernel is a mistake, so the bounds check shall see it
    # no "nonecheck": Cython refuses it for `self.x += 1` without the GIL; arguments say `not None` instead
}


def check_platform() -> None:
    """Says at once, and not after minutes of compiling, where the kernels cannot be built."""
    if os.name == "nt":
        sys.exit(
            "fastwin: Windows is not supported: the kernels need GCC or Clang, with 128-bit integers. "
            "Use Linux, or Linux inside Windows (WSL)."
        )
    if sys.maxsize < 1 << 32 or sys.byteorder != "little":
        sys.exit(
            "fastwin: the kernels need a machine of 64 bits that keeps the lowest byte first, as x86-64 and AArch64."
        )


def compiler_flags(level: str) -> tuple[list[str], list[str]]:
    """Flags for compiler and linker; level: of optimisation. No -march: wheels run on every machine of a platform."""
    plain = "-fno-strict-aliasing"  # a cell of a row is an int64 to one and a double, or part of a struct, to another
    # Cython hands the difference of two pointers to an integer check.
    checked = [plain, "-O1", "-g", "-Wno-int-conversion"]
    if ASAN:
        return [*checked, "-fno-omit-frame-pointer", "-fsanitize=address"], ["-fsanitize=address"]
    if TSAN:
        return [plain, "-O1", "-g", "-fsanitize=thread"], ["-fsanitize=thread"]
    if DEBUG:
        return checked, []
    chosen = "-O" in os.environ.get("CFLAGS", "")  # whoever sets a level there shall have it
    return [plain, *([] if chosen else [level]), "-g0"], []


def extension(name: str, source: str) -> Extension:
    """One extension. Loops of kernels gain from -O3. The rest calls Python: -O2 compiles faster and runs as fast."""
    compile_args, link_args = compiler_flags("-O3" if is_kernel(name) else "-O2")
    macros = [("Py_LIMITED_API", f"0x{OLDEST[0]:02X}{OLDEST[1]:02X}0000")] if ABI3 else []
    return Extension(
        name,
        [source],
        define_macros=macros,
        py_limited_api=ABI3,
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )


def is_kernel(name: str) -> bool:
    """Whether a module works on buffers that are checked before it sees them."""
    return name.startswith("fastwin.core.") and name != SHARED


def extensions() -> list[Extension]:
    """One extension per .pyx below fastwin/, and the one that they share, whose source Cython writes when it builds."""
    sources = [path.relative_to(ROOT) for path in sorted(ROOT.glob("fastwin/**/*.pyx"))]
    found = [extension(".".join(source.with_suffix("").parts), source.as_posix()) for source in sources]
    return [extension(SHARED, SHARED.replace(".", "/") + ".c"), *found]


class BuildKernels(build_ext):
    """Translates all .pyx files at once, in parallel, into the build folder; then compiles as usual."""

    def run(self) -> None:
        from Cython.Build import cythonize

        kernels = [ext for ext in self.extensions if is_kernel(ext.name)]
        others = [ext for ext in self.extensions if ext not in kernels]
        self.progress = Progress(len(self.extensions))
        self.progress.say(f"Translating {len(self.extensions) - 1} modules to C")
        for group, directives in ((kernels, KERNELS), (others, SAFE)):
            translated = cythonize(
                group,
                build_dir=f"build/cython-{MODE}",
                compiler_directives=CHECKED if DEBUG else directives,
                force=bool(self.force),
                nthreads=CORES,
                quiet=True,
                shared_utility_qualified_name=SHARED,
            )
            by_name = {ext.name: ext for ext in translated}
            for ext in group:
                ext.sources = by_name[ext.name].sources
                ext.depends = by_name[ext.name].depends
        super().run()
        self.progress.end()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        self.progress.done(ext.name)


class Progress:
    """A line that says how far the compiler is: rewritten on a terminal, now and then a new one elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._lock = threading.Lock()  # modules are compiled side by side
        self._terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        print(
            f"\r{text:<70}" if self._terminal else text, end="" if self._terminal else "\n", file=sys.stderr, flush=True
        )

    def done(self, name: str) -> None:
        with self._lock:
            self._done += 1
            if self._terminal or self._done % 12 == 0 or self._done == self._total:
                self.say(f"Compiled {self._done} of {self._total} modules{f': {name}' if self._terminal else ''}")

    def end(self) -> None:
        if self._terminal:
            print(file=sys.stderr)


def description(readme: str, repository: str, version: str) -> str:
    """Returns the README for an index page, where links to files of the repository lead nowhere.

    They become links into the repository, at the tag of the version; where none is known, names of files.
    """

    def link(found: re.Match[str]) -> str:
        mark, text, path = found.groups()
        if repository:
            return f"{mark}[{text}]({repository}/{'raw' if mark else 'blob'}/v{version}/{path})"
        return text if text.strip("`") == path else f"{text} (`{path}`)"

    return re.sub(r"(!?)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)", link, readme)


def version() -> str:
    """Returns the version, which fastwin/__init__.py alone says."""
    text = (ROOT / "fastwin" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)[1]


def metadata() -> dict[str, object]:
    """Returns what pyproject.toml cannot say by itself."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {
        "Source": REPOSITORY,
        "Documentation": f"{REPOSITORY}/blob/v{version()}/docs/index.md",
        "Changelog": f"{REPOSITORY}/blob/v{version()}/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }
    return {
        "version": version(),
        "long_description": description(readme, REPOSITORY, version()),
        "long_description_content_type": "text/markdown",
        "project_urls": pages if REPOSITORY else {},
    }


if __name__ == "__main__":
    if not SKIP:
        check_platform()
    setup(
        ext_modules=[] if SKIP else extensions(),
        cmdclass={"build_ext": BuildKernels},
        options={
            "build_ext": {"parallel": CORES},
            "bdist_wheel": {"py_limited_api": f"cp{OLDEST[0]}{OLDEST[1]}"} if ABI3 else {},
        },
        **metadata(),
    )
