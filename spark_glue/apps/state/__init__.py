"""``fastwin why``, ``inspect`` and ``rescale``: what a query's checkpoint says of its windows, and a new one of it."""

import argparse
from collections.abc import Callable

__all__ = ["inspect_command", "rescale_command", "why_command"]

_WHY_EPILOG = """\
examples:
  fastwin why --checkpoint checkpoint --spec shops.py:spec --key north
  fastwin why --checkpoint checkpoint --spec shops:spec --key north --key 7 --at "2026-01-31 12:30:00" --json
"""
_INSPECT_EPILOG = """\
examples:
  fastwin inspect --checkpoint checkpoint --spec shops.py:spec
  fastwin inspect --checkpoint checkpoint --spec shops.py:spec --key north
  fastwin inspect --checkpoint checkpoint --spec shops:spec --shares 0-7 --where "n > 100" --out open-windows
"""
_RESCALE_EPILOG = """\
examples:
  fastwin rescale --checkpoint checkpoint --to wider --spec shops.py:spec --partitions 16
  fastwin rescale --checkpoint checkpoint --to wider --spec shops:spec --partitions 16 --key-groups 128

Then start the query with the new folder as its checkpointLocation, and with the same number of key groups in apply.
"""


def why_command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``why`` to the command line."""
    parser = commands.add_parser(
        "why",
        help="say why the windows of a key have fired or have not, from a query's checkpoint",
        description="Say why the windows of a key have fired or have not. The query may run or have been stopped; its "
        "checkpoint is only read.",
        epilog=_WHY_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(parser)
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="VALUE",
        help="the key; of several columns, once for each, in their order",
    )
    _add_null(parser)
    parser.add_argument("--at", metavar="TIME", help="only windows at this time, such as '2026-01-31 12:30:00'")
    parser.add_argument("--json", action="store_true", help="print the report's data as JSON")
    parser.set_defaults(run=_later("why"))


def inspect_command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``inspect`` to the command line."""
    parser = commands.add_parser(
        "inspect",
        help="show the windows in a query's checkpoint: what they hold, and when they fire",
        description="Show the windows in a query's state. The query may run or have been stopped; its checkpoint is "
        "only read.",
        epilog=_INSPECT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(parser)
    parser.add_argument(
        "--key",
        action="append",
        metavar="VALUE",
        help="only the windows of this key, of which the share alone is read; of several columns, once for each, in "
        "their order",
    )
    _add_null(parser)
    parser.add_argument(
        "--shares",
        metavar="NUMBERS",
        help="only these shares, such as 0-7 or 0,3,5: a part of the keys each, one for each partition of the state; "
        "so a big state can be read in pieces",
    )
    parser.add_argument(
        "--where", metavar="SQL", help="only these windows: a condition on the columns, such as \"user = 'ann'\""
    )
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="how many are printed (%(default)s)")
    parser.add_argument("--out", metavar="DIR", help="write all of them there, as Parquet, and print none")
    parser.set_defaults(run=_later("inspect"))


def rescale_command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``rescale`` to the command line."""
    parser = commands.add_parser(
        "rescale",
        help="write a stopped query's checkpoint anew, for more or fewer shuffle partitions",
        description="Write the checkpoint of a stopped query anew, for another number of shuffle partitions and of key "
        "groups. The query goes on from it where it has stopped. The old checkpoint is only read.",
        epilog=_RESCALE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_place(parser)
    parser.add_argument("--to", required=True, metavar="DIR", help="the new checkpoint, which is not there yet")
    parser.add_argument("--partitions", required=True, type=int, metavar="N", help="how many shuffle partitions")
    parser.add_argument("--key-groups", type=int, metavar="N", help="how many key groups (as many as before)")
    parser.set_defaults(run=_later("rescale"))


def _add_common(parser: argparse.ArgumentParser) -> None:
    _add_place(parser)
    parser.add_argument(
        "--operator", type=int, default=0, metavar="N", help="which of several stateful operators (%(default)s)"
    )


def _add_null(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--null-key", action="append_const", dest="key", const=None, help="in place of --key where the key is null"
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="what the query had as checkpointLocation")
    parser.add_argument(
        "--spec",
        required=True,
        metavar="MODULE:NAME",
        help="where the query's specification is: a module, or a file's path, and its name there",
    )
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark master (%(default)s)")


def _later(name: str) -> Callable[[argparse.Namespace], int]:
    """Returns what runs a command. Spark takes seconds to import, which other commands and --help shall not."""

    def run(arguments: argparse.Namespace) -> int:
        from spark_glue.apps.state import main

        return main.COMMANDS[name](arguments)

    return run
