"""The runbook's table of log lines and the code say the same."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEVELS = {level: level for level in ("debug", "info", "warning", "error", "critical")}
LEVELS |= {"warn": "warning", "exception": "error", "log": "any"}
ONCE = "say_once"  # spark_glue.state.folders: a warning, once in a process
ACCESS = "fastwin/serve/watching.py"  # a line for each request: docs/store.md tells of it


def sentence(node: ast.expr) -> str:
    """What a call says, with three dots for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    else:
        assert isinstance(node, ast.Constant), ast.dump(node)
        text = node.value
    return re.sub(r"%[-.0-9]*[a-z]", "...", text)


def logger_of(path: Path, value: ast.expr) -> str | None:
    """The name of the logger that an expression gets; None if it gets none."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func) not in ("logging.getLogger", "getLogger"):
        return None
    (told,) = value.args
    if isinstance(told, ast.Constant):
        return told.value
    return dotted(path) if ast.unparse(told) == "__name__" else ast.unparse(told)


def loggers_of(path: Path, tree: ast.Module) -> dict[str, str]:
    """The names of a module's loggers, by what the module calls them."""
    return {
        ast.unparse(target): name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (name := logger_of(path, node.value))
        for target in node.targets
    }


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def said() -> set[tuple[str, str, str]]:
    """All lines that the code can write: logger, level, sentence."""
    found = set()
    for path in [path for folder in ("fastwin", "spark_glue") for path in (ROOT / folder).rglob("*.py")]:
        if path == ROOT / ACCESS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        loggers = loggers_of(path, tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if isinstance(node.func, ast.Name) and node.func.id == ONCE:
                found.add(("spark_glue.state.folders", "warning", sentence(node.args[0])))
            elif isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                owner = node.func.value
                name = loggers.get(ast.unparse(owner)) or logger_of(path, owner)
                if name is not None:
                    found.add((name, LEVELS[node.func.attr], sentence(node.args[0])))
    return {line for line in found if line[2] != "..."}  # that is what say_once has been told


def told() -> set[tuple[str, str, str]]:
    """What the runbook's table has."""
    page = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    section = page.split("\n## What the logs say\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line[:1] == "|"]
    named = [row for row in rows if row[0].startswith("`")]
    assert all(len(row) == 4 and row[3] for row in named), "a row without what is to be done"
    return {(row[0].strip("`"), row[1], row[2]) for row in named}


def test_the_runbook_has_each_line_of_the_code_and_no_other() -> None:
    lines, table = said(), told()
    assert not lines - table, f"docs/runbook.md lacks {sorted(lines - table)}"
    assert not table - lines, f"the code does not write {sorted(table - lines)}"


def test_no_module_writes_to_the_root_logger() -> None:
    for path in [path for folder in ("fastwin", "spark_glue") for path in (ROOT / folder).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(rf"\blogging\.({'|'.join(LEVELS)})\(", text), f"{path}: use the module's logger"
