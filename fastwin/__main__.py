"""The command line: ``python -m fastwin COMMAND``. Commands come from installed packages, through entry points."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

from fastwin import __version__
from fastwin.errors import FastwinError

__all__ = ["main"]

COMMANDS = "fastwin.commands"
"""The entry-point group: each one is a function that takes argparse's subparsers and adds a parser to them, whose
default ``run`` takes the parsed arguments and returns an exit status."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status, 1 for an error that is explained on stderr."""
    parser = argparse.ArgumentParser(prog="fastwin", description="Event-time windows for Python and Spark.")
    parser.add_argument("--version", action="version", version=f"fastwin {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for point in sorted(entry_points(group=COMMANDS), key=lambda point: point.name):
        point.load()(commands)
    parsed = parser.parse_args(arguments)
    if not hasattr(parsed, "run"):
        parser.print_help()
        return 0
    try:
        return parsed.run(parsed)
    except FastwinError as problem:
        print(f"fastwin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fastwin: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
