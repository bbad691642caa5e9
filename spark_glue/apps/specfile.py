"""A command's specifications as a file of Python, which a reader can look at and ``fastwin why`` can be given."""

import os
import shlex
import sys
from pathlib import Path

import fastwin as fw

__all__ = ["how_to_ask", "specs_in"]


def specs_in(text: str) -> dict[str, fw.WindowSpec]:
    """Returns the specifications that a file with this text has, by their names there."""
    found: dict[str, object] = {}
    exec(compile(text, "specs.py", "exec"), found)
    return {name: value for name, value in found.items() if isinstance(value, fw.WindowSpec)}


def how_to_ask(checkpoint: Path, specs: Path, name: str, key: object) -> list[str]:
    """Returns the commands that ask for the state of a query, with an example of a key."""
    start = [os.path.relpath(sys.executable), "-m", "fastwin"]
    where = ["--checkpoint", os.path.relpath(checkpoint), "--spec", f"{os.path.relpath(specs)}:{name}"]
    # What begins with a dash would be an option.
    asked = [f"--key={key}"] if str(key).startswith("-") else ["--key", str(key)]
    return [shlex.join([*start, command, *where, *asked]) for command in ("why", "inspect")]
