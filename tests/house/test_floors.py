"""Imports go downward only, and fastwin never imports pyspark."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The rooms of fastwin by floor, the lowest first. A room may import the rooms on lower floors, and nothing else. A file at
# the top of the package is a room of its own; "" is the package itself, which hands names on.
FLOORS = [
    "callers errors",
    "machine times",
    "core",
    "columns",
    "aggregates functions hyperloglog",
    "triggers",
    "windows",
    "spec",
    "state",
    "operators timeline",
    "run",
    "testing store",
    "",
    "doctor serve",
    "__main__",
]
# The rooms of the glue, likewise; all of them stand above fastwin's.
GLUE_FLOORS = [
    "plan",
    "classarchive interpreter sockets",
    "state session",
    "stages",
    "watermarks",
    "export health progress rescale sinks sources",
    "arguments",
    "apply daemon doctor inspection prometheus",
    "",
    "apps",
]
# The rooms of core, likewise.
CORE = [
    "typedefs",
    "wide",
    "timemath",
    "memory",
    "keys rows",
    "timers",
    "accumulators",
    "bags sketches panes sessions windows",
]


def _places(floors: list[str], package: str, lowest: int = 0) -> dict[str, int]:
    """The floor of each room, by its full name."""
    numbered = enumerate(floors, lowest)
    return {f"{package}.{name}".rstrip("."): n for n, names in numbered for name in names.split() or [""]}


PLACES = _places(FLOORS, "fastwin") | _places(GLUE_FLOORS, "spark_glue", len(FLOORS))
CORE_PLACES = _places(CORE, "fastwin.core")


def room(module: str, depth: int = 2) -> str:
    """The room of a module: ``fastwin.run.stream`` is in ``fastwin.run``."""
    return ".".join(module.split(".")[:depth])


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name."""

    module: str
    line: int
    lazy: bool = False  # inside a function, or for type checkers only


def module_name(path: Path, root: Path = ROOT) -> str:
    """The dotted name of a source file: `fastwin/core/__init__.py` is `fastwin.core`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def python_imports(text: str, module: str, is_package: bool = False) -> list[Import]:
    """Every import statement of a .py file; `from x import y` gives x.y too, because y may be a module."""
    found = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(name.name, node.lineno, lazy) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*above, base] if base else above)
            found.append(Import(base, node.lineno, lazy))
            found.extend(Import(f"{base}.{name.name}", node.lineno, lazy) for name in node.names)
        within = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            visit(child, within or (_is_type_checking(node) and child in node.body))

    visit(ast.parse(text), False)
    return found


_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE)
_PLAIN = re.compile(r"^[ \t]*c?import[ \t]+([^\n#]+)", re.MULTILINE)


def cython_imports(text: str) -> list[Import]:
    """Every import and cimport of a .pyx or .pxd file."""
    found = []
    for match in _FROM.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        base = match[1]
        names = re.findall(r"(\w+)(?:\s+as\s+\w+)?", match[2])
        found.append(Import(base, line))
        found.extend(Import(f"{base}.{name}", line) for name in names)
    for match in _PLAIN.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        found.extend(Import(name.split()[0], line) for name in match[1].split(",") if name.strip())
    return found


def imports_of(path: Path, root: Path = ROOT) -> list[Import]:
    """Every import of a source file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return python_imports(text, module_name(path, root), path.name == "__init__.py")
    return cython_imports(text)


def complaints(module: str, imports: list[Import], known: set[str]) -> list[str]:
    """What is wrong with the imports of one module; ``known`` are the modules of fastwin and the glue that exist."""
    wrong = [
        f"{module}, line {item.line}: imports {item.module}; fastwin never imports pyspark or the glue"
        for item in imports
        if room(module, 1) == "fastwin" and item.module.split(".")[0] in {"pyspark", "spark_glue"}
    ]
    for depth, places in ((2, PLACES), (3, CORE_PLACES)):
        here = room(module, depth)
        if depth == 3 and (module.split(".")[:2] != ["fastwin", "core"] or module == "fastwin.core"):
            continue
        if here not in places:
            wrong.append(f"{module}: the room {here} has no floor: add it to the list in tests/house/test_floors.py")
            continue
        # `from fastwin.core import rows` reaches the room rows, not what fastwin.core hands on.
        deeper = {(item.line, item.module.rpartition(".")[0]) for item in imports if item.module in known}
        for item in sorted(imports, key=lambda item: (item.line, item.module)):
            there = room(item.module, depth)
            if (
                item.module not in known
                or (item.line, item.module) in deeper
                or there == here
                or (depth == 3 and there.count(".") < 2)
            ):
                continue
            if depth == 3 and not there.startswith("fastwin.core."):
                continue
            if there not in places or places[there] >= places[here]:
                wrong.append(
                    f"{module}, line {item.line}: imports {item.module}, which stands on the same floor or above"
                )
    return wrong


def sources(package: str) -> list[Path]:
    """The source files of a package."""
    return sorted(path for kind in ("*.py", "*.pyx", "*.pxd") for path in (ROOT / package).rglob(kind))


FASTWIN = sources("fastwin")
GLUE = sources("spark_glue")
KNOWN = {module_name(path) for path in FASTWIN + GLUE}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FASTWIN + GLUE, ids=_name)
def test_imports_go_downward(path: Path) -> None:
    wrong = complaints(module_name(path), imports_of(path), KNOWN)
    assert not wrong, "\n".join(wrong)


def test_glue_imports_nothing_in_a_circle() -> None:
    known = {module_name(path) for path in GLUE}
    edges = {
        module_name(path): {item.module for item in imports_of(path) if item.module in known and not item.lazy}
        - {module_name(path), "spark_glue"}
        for path in GLUE
    }
    edges.pop("spark_glue", None)  # re-exports, and stands above its modules
    left = dict(edges)
    while left:
        free = {module for module, needs in left.items() if not needs & left.keys()}
        assert free, f"these modules import each other in a circle: {', '.join(sorted(left))}"
        left = {module: needs for module, needs in left.items() if module not in free}


def test_glue_stays_off_the_top_floors() -> None:
    serve = PLACES["fastwin.serve"]
    wrong = [
        f"{_name(path)}, line {item.line}: imports {item.module}"
        for path in GLUE
        for item in imports_of(path)
        if room(item.module, 1) == "fastwin" and PLACES.get(room(item.module), 0) >= serve
    ]
    assert not wrong, "\n".join(wrong)


def test_import_of_fastwin_leaves_pyspark_alone() -> None:
    code = "import sys, fastwin; print([name for name in ('pyspark', 'pandas', 'spark_glue') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


# --- the rules themselves ---

_KNOWN = {
    "fastwin", "fastwin.errors", "fastwin.times", "fastwin.core", "fastwin.core.rows", "fastwin.core.rows.rowstore", "fastwin.core.keys",
    "fastwin.core.keys.keytable", "fastwin.core.panes", "fastwin.core.panes.panetable", "fastwin.core.sessions.scan", "fastwin.operators",
    "fastwin.operators.protocol", "fastwin.operators.session.operator", "fastwin.run.stream", "fastwin.run.results",
    "spark_glue", "spark_glue.plan.types", "spark_glue.stages.pack", "spark_glue.state.log", "spark_glue.apply",
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("fastwin.times", "from fastwin.errors import SpecError"),
        ("fastwin.times", "from .errors import SpecError"),
        ("fastwin.run.stream", "from fastwin.run.results import Result"),
        ("fastwin.run.stream", "from fastwin.core import rows"),
        ("fastwin.__main__", "from fastwin import Count"),
        (
            "spark_glue.stages.pack",
            "from fastwin.run.stream import run\nfrom spark_glue.state import log\nimport pyspark",
        ),
        ("fastwin", "from fastwin.run.stream import run\nfrom fastwin.run.results import Result"),
    ],
)
def test_downward_import_passes(module: str, text: str) -> None:
    assert complaints(module, python_imports(text, module, module == "fastwin"), _KNOWN) == []


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        ("fastwin.errors", "import fastwin.run.stream", "imports fastwin.run.stream"),
        ("fastwin.errors", "from . import times", "imports fastwin.times"),
        ("fastwin.errors", "from .core.rows.rowstore import RowStore", "imports fastwin.core.rows.rowstore"),
        ("fastwin.operators.protocol", "from fastwin.run.stream import run", "imports fastwin.run.stream"),
        (
            "fastwin.operators.protocol",
            "if fast:\n    from fastwin.run.stream import run",
            "imports fastwin.run.stream",
        ),
        ("fastwin.errors", "if TYPE_CHECKING:\n    from fastwin.run.stream import run", "imports fastwin.run.stream"),
        ("fastwin.errors", "def f():\n    from fastwin.run.stream import run", "imports fastwin.run.stream"),
        ("fastwin.run.stream", "from fastwin import Count", "imports fastwin, "),
        ("fastwin.run.stream", "if True:\n    import pyspark.sql", "never imports pyspark"),
        ("fastwin.errors", "def f():\n    from pyspark import sql", "never imports pyspark"),
        ("fastwin.newcomer", "", "has no floor"),
        ("fastwin.newcomer.part", "", "has no floor"),
        ("fastwin.core.newcomer.part", "", "has no floor"),
        ("spark_glue.newcomer", "", "has no floor"),
        ("spark_glue.plan.types", "from spark_glue.stages import pack", "imports spark_glue.stages.pack"),
        ("spark_glue.state.log", "from spark_glue.stages.pack import Packer", "imports spark_glue.stages.pack"),
    ],
)
def test_upward_import_is_named(module: str, text: str, says: str) -> None:
    assert any(says in line for line in complaints(module, python_imports(text, module), _KNOWN))


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("fastwin.core.panes.panetable", "from fastwin.core.rows.rowstore cimport RowStore  # rows", False),
        ("fastwin.core.panes.panetable", "from fastwin.core cimport (\n    rows,\n)\ncimport cython", False),
        ("fastwin.core.rows.rowstore", "from fastwin.core.panes.panetable cimport PaneTable", True),
        ("fastwin.core.keys.keytable", "from fastwin.core cimport (\n    rows,\n    panes as t,\n)", True),
        ("fastwin.core.keys.keytable", "    cimport fastwin.core.sessions.scan", True),
        ("fastwin.core.keys.keytable", "import numpy as np, fastwin.run.stream", True),
        ("fastwin.core.keys.keytable", "from pyspark import sql", True),
    ],
)
def test_cimports_count_as_imports(module: str, text: str, wrong: bool) -> None:
    assert bool(complaints(module, cython_imports(text), _KNOWN)) is wrong
