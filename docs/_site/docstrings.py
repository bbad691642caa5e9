"""Docstrings as Markdown: arguments become a list, doctests become code."""

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"^([a-z_*]\w*(?:, [a-z_*]\w*)*): ")

_SIGNATURE = re.compile(r"\A[\w.]+\(.*\)(?: -> .*)?$", re.MULTILINE)  # which Cython puts in front


class Markdown(griffe.Extension):
    """Gives each docstring the marks that Markdown wants."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Visits a package when all of it is loaded."""
        self._visit(pkg)

    def _visit(self, item: griffe.Object) -> None:
        if item.docstring:
            item.docstring.value = as_markdown(item.docstring.value)
        for member in item.members.values():
            if not member.is_alias:
                self._visit(member)  # type: ignore[arg-type]


def as_markdown(text: str) -> str:
    """Returns a docstring with its arguments as a list and its doctests fenced."""
    made: list[str] = []
    in_code = in_list = False
    for line in _SIGNATURE.sub("", text).strip().splitlines():
        starts = line.startswith(">>> ")
        if in_code and not line.strip():
            made.append("```")
            in_code = False
        elif starts and not in_code:
            made += ["", "```pycon"]
            in_code = True
        if in_code:
            made.append(line)
            continue
        argument = _ARGUMENT.match(line)
        if argument:
            if not in_list:
                made.append("")
            line = f"- `{argument[1]}`: {line[argument.end() :]}"
            in_list = True
        elif in_list and line.strip() and not line.startswith(" "):
            made.append("")
            in_list = False
        made.append(line)
    return "\n".join([*made, "```"] if in_code else made)
