"""Files stay short and say what they are for; tests lie beside what they test, and none imports another."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = (".py", ".pyi", ".pyx", ".pxd", ".js")
LINES_LIMIT = 400

# Folders of tests that are no room of the product.
APART = {"support", "golden", "house", "soak"}


def _files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in KINDS)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", _files("fastwin", "spark_glue", "tests", "bench", "examples"), ids=_name)
def test_files_stay_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES_LIMIT, f"{_name(path)} has {lines} lines, the limit is {LINES_LIMIT}: split it by concept"


def opening(path: Path) -> str:
    """What a file says of itself: its docstring, or the comment at the top of a .pxd file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    found = re.match(r"(?:# cython:[^\n]*\n)*(?:\"\"\"(.+?)\"\"\"|# ([^\n]+))", text, re.DOTALL)
    return (found[1] or found[2]) if found else ""


@pytest.mark.parametrize(
    "path", [p for p in _files("fastwin", "spark_glue") if p.suffix in (".py", ".pyx", ".pxd")], ids=_name
)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    assert opening(path).strip(), f"{_name(path)} does not say at its top what it is for"


def _rooms(package: str) -> set[str]:
    """The folders of a package that hold sources, by their paths in it."""
    base = ROOT / package
    return {path.parent.relative_to(base).as_posix() for path in base.rglob("*") if path.suffix in KINDS}


def test_tests_lie_beside_what_they_test() -> None:
    """A folder of tests has the path of a room of fastwin; below tests/spark, of the glue."""
    rooms = {Path(room) for room in _rooms("fastwin")} | {Path("spark", room) for room in _rooms("spark_glue")}
    folders = {path.parent.relative_to(ROOT / "tests") for path in _files("tests") if path.suffix == ".py"}
    strangers = sorted(str(folder) for folder in folders - rooms if folder.parts and folder.parts[0] not in APART)
    assert not strangers, f"tests/ has folders that are no room of the product: {', '.join(strangers)}"


_TEST = r"\b(?:test_\w+|conftest)\b"
_OTHER_TEST = re.compile(
    rf"\b(?:from|import)\s+(?:tests\.|\.)[\w.]*{_TEST}|\bfrom\s+(?:tests|\.)[\w.]*\s+import\b[^\n]*{_TEST}"
)


def imports_a_test(text: str) -> bool:
    """Whether a file, or a program that is a text in it, imports a test or a conftest."""
    return bool(_OTHER_TEST.search(text))


@pytest.mark.parametrize("path", [p for p in _files("tests", "bench") if p != Path(__file__)], ids=_name)
def test_no_test_imports_another(path: Path) -> None:
    assert not imports_a_test(path.read_text(encoding="utf-8")), (
        f"{_name(path)} imports another test: what both need goes to tests/support"
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from tests.run.test_stream import SPEC", True),
        ("from tests.test_times import x", True),
        ("APP = '''\nfrom tests.run.test_stream import SPEC\n'''", True),
        ("import tests.spark.conftest", True),
        ("from tests.spark import conftest", True),
        ("from tests.golden import replay, test_golden", True),
        ("from .test_stream import SPEC", True),
        ("from . import test_stream", True),
        ("from tests.support.cases import cases", False),
        ("from tests.golden import replay as replaying", False),
        ("def test_x():\n    pass", False),
    ],
)
def test_imports_of_tests_are_seen(text: str, wrong: bool) -> None:
    assert imports_a_test(text) is wrong


@pytest.mark.parametrize("path", [p for p in _files("fastwin") if p.suffix in (".pyx", ".pxd")], ids=_name)
def test_numbers_of_enums_are_written_out(path: Path) -> None:
    """Cython breaks down over an expression where it checks for overflow, as the debug and the ASan builds have it do."""
    blocks = re.findall(
        r"^c(?:p?)def enum[^\n]*:\n((?:(?: +[^\n]*)?\n)*)", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    values = [value.strip() for block in blocks for value in re.findall(r"= *([^#\n]*)", block)]
    assert all(re.fullmatch(r"-?\w+( \| \w+)*", value) for value in values), values
