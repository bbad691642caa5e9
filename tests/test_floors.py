"""Imports go downward only, fastwin never imports pyspark, and files stay short."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The modules of fastwin by floor, the lowest first; a floor's steps likewise. A module may import lower floors and
# lower steps of its own floor, never its own step or anything above. "" is the package itself, which re-exports.
FLOORS: list[list[str]] = [
    ["_typedefs errors", "duration windows"],
    [
        "core.blocks core.bounds core.int128 core.memory core.radixsort core.texts core.timemath",
        "core.columns core.fused core.hashing core.keyorder core.rows core.timersort",
        "core.accumulator_set core.keys core.registers core.rowcodec core.slices core.timers",
        "core.redishll",
        "core.accumulators core.decimals core.hyperloglog core.numpyaccumulator core.panes core.picks core.sessions core.timerqueue "
        "core.variance core.windowtable",
        "core.combine core.sessionmerge core.sessionscan core.sessiontimers core.slider",
        "core",
    ],
    [
        "arrowbuffers ddl describe functions statecodec statespec",
        "evictors keycodec rowview state valuecolumns",
        "aggregates hyperloglog",
        "numpyaggregates",
        "keyedstate triggers",
        "assigners combinators",
        "sessionwindows",
    ],
    [
        "operators.refresh",
        "operators.base operators.lateness operators.objectfetch operators.slicing operators.userobjects",
        "operators.keeper operators.migration operators.placedresults operators.program",
        "operators.triggernodes",
        "operators.combinatornodes operators.usercode",
        "operators.assigning operators.contents",
        "operators.firing operators.generalparts",
        "operators.generalstate operators.placing",
        "operators.aligned operators.general operators.session",
        "operators.partial",
        "operators",
    ],
    ["batches panespec results speccheck", "spec", "planner"],
    [
        "local",
        "bounded",
        "parallel",
        "testing",
        "store.cells store.keytext store.spans",
        "store.layout",
        "store.records store.unions",
        "store.merging",
        "store.checks",
        "store.base",
        "store.redisscripts store.rocks",
        "store.redis",
        "store.opening",
        "store",
    ],
    [""],
    ["serve.assets serve.params", "serve.answers", "serve.app", "serve.server", "serve", "__main__"],
]
# (importing, imported): upward imports that are allowed inside a function, or for type checkers only. A fluent method
# that hands its object on to what is built upon it: spec.run(), spec.open(), spec.explain(), plan.open().
LAZY = {
    ("fastwin.spec", "fastwin.local"),
    ("fastwin.spec", "fastwin.parallel"),
    ("fastwin.spec", "fastwin.planner"),
    ("fastwin.planner", "fastwin.local"),
    ("fastwin.store.base", "fastwin.store.opening"),
}

LINES_LIMIT = 450


def _places() -> dict[str, tuple[int, int]]:
    places = {}
    for floor, steps in enumerate(FLOORS):
        for step, names in enumerate(steps):
            for name in names.split() or [""]:
                places["fastwin." + name if name else "fastwin"] = (floor, step)
    return places


PLACES = _places()


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
    """What is wrong with the imports of one module of fastwin; `known` are the modules that exist."""
    here = PLACES.get(module)
    if here is None:
        return [f"{module} has no floor: add it to FLOORS in tests/test_floors.py"]
    wrong = []
    targets = {item for item in imports if item.module in known}
    # `from fastwin.core import rows` reaches the module rows, not what fastwin.core re-exports.
    deeper = {(item.line, item.module.rpartition(".")[0]) for item in targets}
    for item in sorted(targets, key=lambda item: (item.line, item.module)):
        if item.module == module or (item.line, item.module) in deeper:
            continue
        if item.lazy and (module, item.module) in LAZY:
            continue
        if item.module not in PLACES or PLACES[item.module] >= here:
            wrong.append(f"{module}, line {item.line}: imports {item.module}, which stands on the same step or above")
    wrong += [
        f"{module}, line {item.line}: imports {item.module}; fastwin never imports pyspark or the glue"
        for item in imports
        if item.module.split(".")[0] in {"pyspark", "spark_glue"}
    ]
    return wrong


def sources(package: str) -> list[Path]:
    """The source files of a package."""
    return sorted(path for kind in ("*.py", "*.pyx", "*.pxd") for path in (ROOT / package).rglob(kind))


FASTWIN = sources("fastwin")
GLUE = sources("spark_glue")
KNOWN = {module_name(path) for path in FASTWIN}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FASTWIN, ids=_name)
def test_imports_go_downward(path: Path) -> None:
    wrong = complaints(module_name(path), imports_of(path), KNOWN)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [path for path in FASTWIN + GLUE if path.suffix != ".pxd"], ids=_name)
def test_files_stay_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES_LIMIT, f"{_name(path)} has {lines} lines, the limit is {LINES_LIMIT}: split it by concept"


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


def test_glue_stays_off_the_top_floor() -> None:
    top = len(FLOORS) - 1
    wrong = [
        f"{_name(path)}, line {item.line}: imports {item.module}"
        for path in GLUE
        for item in imports_of(path)
        if item.module in PLACES and PLACES[item.module][0] >= top
    ]
    assert not wrong, "\n".join(wrong)


def test_import_of_fastwin_leaves_pyspark_alone() -> None:
    code = "import sys, fastwin; print([name for name in ('pyspark', 'pandas', 'spark_glue') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


# --- the rules themselves ---

_KNOWN = {
    "fastwin", "fastwin.errors", "fastwin.windows", "fastwin.core", "fastwin.core.rows", "fastwin.core.keys",
    "fastwin.core.timers", "fastwin.operators.aligned", "fastwin.operators.session", "fastwin.spec", "fastwin.local",
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("fastwin.windows", "from fastwin.errors import SpecError"),
        ("fastwin.windows", "from .errors import SpecError"),
        ("fastwin.spec", "def run(self):\n    from fastwin import local"),
        ("fastwin.spec", "if TYPE_CHECKING:\n    from fastwin.local import Stream"),
        ("fastwin.__main__", "from fastwin import Count"),
        ("fastwin.spec", "from fastwin.core import rows"),
        ("fastwin", "from fastwin.local import run\nfrom fastwin.spec import key_by"),
    ],
)
def test_downward_import_passes(module: str, text: str) -> None:
    assert complaints(module, python_imports(text, module, module == "fastwin"), _KNOWN) == []


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        ("fastwin.errors", "import fastwin.spec", "imports fastwin.spec"),
        ("fastwin.errors", "from . import spec", "imports fastwin.spec"),
        ("fastwin.errors", "from .core.rows import RowStore", "imports fastwin.core.rows"),
        ("fastwin.spec", "from fastwin.local import run", "imports fastwin.local"),
        ("fastwin.spec", "if fast:\n    from fastwin.local import run", "imports fastwin.local"),
        ("fastwin.errors", "if TYPE_CHECKING:\n    from fastwin.local import run", "imports fastwin.local"),
        ("fastwin.errors", "def f():\n    from fastwin.local import run", "imports fastwin.local"),
        ("fastwin.operators.aligned", "from fastwin.operators.session import S", "imports fastwin.operators.session"),
        ("fastwin.local", "from fastwin import Count", "imports fastwin, "),
        ("fastwin.local", "if True:\n    import pyspark.sql", "never imports pyspark"),
        ("fastwin.errors", "def f():\n    from pyspark import sql", "never imports pyspark"),
        ("fastwin.newcomer", "", "add it to FLOORS"),
        ("fastwin.newcomer.part", "", "add it to FLOORS"),
    ],
)
def test_upward_import_is_named(module: str, text: str, says: str) -> None:
    assert any(says in line for line in complaints(module, python_imports(text, module), _KNOWN))


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("fastwin.core.keys", "from fastwin.core.rows cimport RowStore  # rows", False),
        ("fastwin.core.keys", "from fastwin.core cimport (\n    rows,\n)\ncimport cython", False),
        ("fastwin.core.rows", "from fastwin.core.keys cimport KeyTable", True),
        ("fastwin.core.keys", "from fastwin.core cimport (\n    rows,\n    timers as t,\n)", True),
        ("fastwin.core.keys", "    cimport fastwin.core.timers", True),
        ("fastwin.core.keys", "import numpy as np, fastwin.spec", True),
        ("fastwin.core.keys", "from pyspark import sql", True),
    ],
)
def test_cimports_count_as_imports(module: str, text: str, wrong: bool) -> None:
    assert bool(complaints(module, cython_imports(text), _KNOWN)) is wrong
