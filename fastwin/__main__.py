"""The command line: ``python -m fastwin COMMAND``. Commands come from installed packages, through entry points."""

import argparse
import os
import select
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

from fastwin import __version__, doctor
from fastwin.errors import FastwinError, NotInstalledError

__all__ = ["COMMANDS", "main", "make_parser"]

COMMANDS = "fastwin.commands"
"""The entry-point group: each one is a function that takes argparse's subparsers and adds a parser to them, whose
default ``run`` takes the parsed arguments and returns an exit status."""

_EPILOG = """\
examples:
  fastwin doctor                              what is installed, and the command for what is missing
  fastwin demo                                three windows over a year of flights, on Spark
  fastwin pvuv access.log.gz --serve          page views and visitors of an access log, on a page
  fastwin serve --store rocksdb:panes         a page and a JSON API over a store
  fastwin why --checkpoint checkpoint --spec shops.py:spec --key north          why a window has fired or has not

Each command has more: fastwin COMMAND --help
"""


def make_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of the command line, with all commands.

    asked: only this command, if there is one of that name. Others may take seconds to import, or lack their packages.
    """
    parser = argparse.ArgumentParser(
        prog="fastwin",
        description="Event-time windows for Python and Spark.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fastwin {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    # The doctor is there whether or not fastwin is installed well.
    loaders: dict[str, Callable[[], Any]] = {point.name: point.load for point in entry_points(group=COMMANDS)}
    loaders["doctor"] = lambda: doctor.command
    for name in [asked] if asked in loaders else sorted(loaders):
        try:
            loaders[name]()(commands)
        except NotInstalledError as problem:
            if name == asked:
                raise
            commands.add_parser(name, help=f"not here: {problem}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status, 1 for an error that is explained on stderr."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        parser = make_parser(next((word for word in arguments if not word.startswith("-")), None))
        parsed = parser.parse_args(arguments)
        if not hasattr(parsed, "run"):
            parser.print_help()
            return 0
        status = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except FastwinError as problem:
        print(f"fastwin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fastwin: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        return 141


def _reader_is_gone() -> bool:
    """Tells whether who reads the output has seen enough, such as ``head``; then nothing more is written."""
    poll = select.poll()
    poll.register(sys.stdout, select.POLLOUT)
    gone = any(event & select.POLLERR for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone


if __name__ == "__main__":
    sys.exit(main())
