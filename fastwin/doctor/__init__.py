"""``fastwin doctor``: what of Java, Spark, packages, servers and memory is there, what for, and what mends the rest."""

import argparse

__all__ = ["command"]

_EPILOG = """\
examples:
  fastwin doctor                     what is there, what it is for, and the command for what is missing
  fastwin doctor --need spark        the exit status is 1 unless windows run on Spark here
  fastwin doctor --json              the same for programs

The exit status is 1 if something is there but cannot work, or if something is missing that --need names; else 0.
"""


def command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``doctor`` to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="say what is installed, what it is for, and how to get what is missing",
        description="Look at Python, compiled modules, Java, Spark, extras, servers and memory. Nothing is changed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--need", action="append", default=[], metavar="EXTRA", help="an extra that must be there; repeatable"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    # It starts programs and opens sockets, which the help shall not.
    from fastwin.doctor.report import run

    return run(arguments.need, arguments.json)
