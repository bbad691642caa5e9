"""``fastwin serve``: a JSON API and a page over a pane store."""

import argparse
from pathlib import Path

from fastwin.machine.ports import check_port

__all__ = ["command"]

_EPILOG = """\
examples:
  fastwin serve --store rocksdb:panes --title "Sales" --label sales="Sales"
  FASTWIN_STORE=redis://127.0.0.1:6379/0 fastwin serve --port 8080 --token-file token.txt

The page is at the printed address; docs/store.md describes the JSON API below /api. A store may be served while a
stream writes to it. Bound to another address than the loopback, the service asks for a token: a given one, or else one
that it makes and prints.

Others on this machine can read command lines. So give secrets in the environment or in files: the URL in FASTWIN_STORE,
or with password_file=PATH or password_env=NAME among its options; the token in FASTWIN_TOKEN or by --token-file.
"""


def command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``serve`` to the command line."""
    parser = commands.add_parser(
        "serve",
        help="show what a pane store holds, as JSON and on a page",
        description="Serve the windows of a pane store: a JSON API, and a page with figures, a chart and a table.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", metavar="URL", help="rocksdb:PATH or redis://HOST:PORT/DB; else $FASTWIN_STORE")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to bind (%(default)s)")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="port, 0 for a free one (%(default)s)")
    parser.add_argument(
        "--token-file", type=Path, metavar="PATH", help="what clients must send is in there; else in $FASTWIN_TOKEN"
    )
    parser.add_argument("--token", metavar="TEXT", help="the same, for all on this machine to see")
    parser.add_argument("--title", default="Page views and unique visitors", metavar="TEXT", help="of the page")
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=TEXT", help="what the page calls an aggregate; repeatable"
    )
    parser.add_argument(
        "--refresh", type=float, default=3.0, metavar="SECONDS", help="how often the page looks (%(default)s)"
    )
    parser.add_argument(
        "--connections",
        type=int,
        default=128,
        metavar="N",
        help="of one client's address, at most, in each worker (%(default)s)",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that answer, for many readers (%(default)s)"
    )
    parser.add_argument("--access-log", action="store_true", help="write a line for each request to stderr")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_port(arguments.port)
    # The web server's packages are an extra, and take time to import.
    from fastwin.serve.server import run

    return run(arguments)
