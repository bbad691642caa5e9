"""What a wheel carries and what it does not. The sdist alone must be enough to build it."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastwin

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BUILD_INPUTS = [
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "mkdocs.yml",
    ".ci",
    ".conda",
    ".github",
    "bench",
    "docs",
    "examples",
    "fastwin",
    "spark_glue",
    "tests",
]
REPOSITORY = "https://host.example/fastwin"
INFO = f"fastwin-{fastwin.__version__}.dist-info/"
SOURCES = {
    path.relative_to(ROOT).as_posix() for package in ("fastwin", "spark_glue") for path in (ROOT / package).rglob("*")
}


def _having(*suffixes: str) -> set[str]:
    return {name for name in SOURCES if name.endswith(suffixes)}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of these sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in BUILD_INPUTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy2(ROOT / name, copy / name)
    return _built(copy, "--sdist")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel without kernels, built from the sdist alone and without a network."""
    path = _built(_unpacked(sdist, tmp_path_factory.mktemp("wheel")), "--wheel", FASTWIN_SKIP_EXTENSIONS="1")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def whole_wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The same with kernels."""
    with zipfile.ZipFile(_built(_unpacked(sdist, tmp_path_factory.mktemp("whole")), "--wheel")) as archive:
        yield archive


def _unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (sources,) = folder.iterdir()
    return sources


def _built(sources: Path, what: str, **variables: str) -> Path:
    """Builds it with what is installed here; returns the file."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FASTWIN_")} | variables
    clean["FASTWIN_REPOSITORY"] = REPOSITORY
    clean["CFLAGS"] = "-O0"  # what is in the wheel does not depend on it, the time does
    command = [sys.executable, "-m", "build", "--no-isolation", what, "--outdir", str(sources / "dist"), str(sources)]
    done = subprocess.run(command, cwd=sources, env=clean, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (sources / "dist").iterdir()
    return found


def test_sdist_has_all_sources(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert _having(".py", ".pyx", ".pxd", ".pyi", "py.typed") | {"LICENSE", "setup.py", "pyproject.toml"} <= names
    assert not [name for name in names if name.endswith((".c", ".so")) and not name.startswith("bench/")]


def _is_kept(path: Path) -> bool:
    """Returns whether the repository has a file: of results of measurements, those that their folder names."""
    listed = path.parent / ".gitignore"
    return not listed.exists() or path == listed or f"!{path.name}" in listed.read_text().splitlines()


@pytest.mark.parametrize("folder", ["tests", "bench", "docs", "examples", ".ci", ".conda", ".github"])
def test_sdist_has_what_is_not_code(sdist: Path, folder: str) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    missing = {path.relative_to(ROOT).as_posix() for path in found if _is_kept(path)} - names
    assert not missing, f"MANIFEST.in leaves out {', '.join(sorted(missing))}"


def test_wheel_has_modules_and_stubs(wheel: zipfile.ZipFile) -> None:
    assert {"fastwin/py.typed", "spark_glue/py.typed"} <= set(wheel.namelist())
    assert _having(".py", ".pyi", ".pxd", "py.typed", ".html", ".css", ".js", ".sh") <= set(wheel.namelist())
    assert wheel.getinfo("spark_glue/python.sh").external_attr >> 16 & 0o100  # Spark executes it


@pytest.mark.long
def test_wheel_has_kernels(whole_wheel: zipfile.ZipFile) -> None:
    names = set(whole_wheel.namelist())
    kernels = {name.partition(".")[0] for name in names if name.endswith(".so")}
    shared = "fastwin/core/_cyutility"  # what all of them need of Cython
    assert kernels == {shared, *(name.removesuffix(".pyx") for name in _having(".pyx"))}


@pytest.mark.long
def test_wheel_has_no_sources_of_kernels_and_no_strangers(whole_wheel: zipfile.ZipFile) -> None:
    names = whole_wheel.namelist()
    assert not [name for name in names if name.endswith((".c", ".pyx"))]
    tops = {name.split("/")[0] for name in names}
    assert tops == {"fastwin", "spark_glue", INFO.rstrip("/")}


def test_wheel_metadata(wheel: zipfile.ZipFile) -> None:
    metadata = wheel.read(INFO + "METADATA").decode()
    assert f"Version: {fastwin.__version__}\n" in metadata
    assert f"Project-URL: Source, {REPOSITORY}\n" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    for extra in ("spark", "redis", "serve", "dev"):
        assert f"Provides-Extra: {extra}\n" in metadata
    assert b"Apache License" in wheel.read(INFO + "licenses/LICENSE")
    commands = wheel.read(INFO + "entry_points.txt")
    assert b"fastwin = fastwin.__main__:main" in commands
    assert b"demo = spark_glue.apps.demo:command" in commands


def test_the_page_of_an_index_has_no_link_that_leads_nowhere(wheel: zipfile.ZipFile) -> None:
    page = wheel.read(INFO + "METADATA").decode().partition("\n\n")[2]
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    assert len(links) >= 10
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert f"{REPOSITORY}/raw/v{fastwin.__version__}/docs/diagrams/watermark.svg" in links


@pytest.mark.long
def test_wheel_imports_without_the_source_tree(whole_wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    whole_wheel.extractall(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import fastwin, fastwin.core.rows.rowstore as rows; print(fastwin.__file__, rows.__file__)",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert all(name.startswith(str(tmp_path)) for name in done.stdout.split())


def test_the_install_page_names_the_systems_of_the_configuration() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    linux = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]["linux"]
    images = {name for key, name in linux.items() if key.endswith("-image")}
    assert set(re.findall(r"`((?:many|musl)linux_\w+)`", page)) == images
    (glibc,) = {name.removeprefix("manylinux_").replace("_", ".") for name in images if name.startswith("many")}
    assert f"glibc {glibc} or newer" in page


@pytest.mark.long
def test_published_pxd_files_compile(whole_wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """A module of a user's own that cimports from the wheel, whichever ABI that has."""
    whole_wheel.extractall(tmp_path)
    (tmp_path / "mine.pyx").write_text(
        "# cython: language_level=3\n"
        "from fastwin.core.rows.rowstore cimport RowStore\n"
        "from fastwin.core.timemath cimport floor_to\n"
        "def down(time, step):\n"
        "    return floor_to(time, step, 0)\n"
        "def is_store(value):\n"
        "    return isinstance(value, RowStore)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "CFLAGS": "-O0"}
    for command in (
        ["-m", "Cython.Build.Cythonize", "--inplace", "--quiet", "mine.pyx"],
        ["-c", "import mine; assert mine.down(-1, 10) == -10 and not mine.is_store(1)"],
    ):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
