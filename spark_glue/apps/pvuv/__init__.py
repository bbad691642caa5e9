"""``fastwin pvuv``: page views and unique visitors of an access log, into a pane store that a page shows."""

import argparse
from pathlib import Path

from fastwin.machine.packages import check_extra

__all__ = ["command"]

_EPILOG = """\
examples:
  fastwin pvuv access.log.gz --window 24h --slide 3m --serve
  fastwin pvuv /var/log/nginx --follow --module path:2 --visitor ip --store redis://127.0.0.1:6379/0

ACCESS_LOG is a combined log of Apache or nginx, plain or gzipped, or a folder of them; "-" reads stdin. The common
format and Apache's vhost_combined are read as well. Lines that are none are counted, and kept in malformed.log: up to
10,000 of each micro-batch, and 64 MB in all. Lines dated before 1970, or more than a day ahead, are counted apart, and
in no window. A folder of more than 1,000 files takes several micro-batches, the oldest files first.

With --follow, the command goes on with the lines that come, until Ctrl-C or SIGTERM: over a rotation of the log, and
with new files in a folder. Started again with the same --out, it goes on where it was.

Requests for images, styles, scripts and fonts are parts of pages, and do not count; --all-requests counts them.

What a module is: --module path (the first segment of the path; path:2 the first two), --module host (the virtual host
of vhost_combined), or --module regex:PATTERN (its first group, or all of its match, in the path). Of a name of more
than 200 characters the first 200 count, with "..." behind them.
"""


def command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``pvuv`` to the command line."""
    parser = commands.add_parser(
        "pvuv",
        help="page views and unique visitors of an access log, on a page",
        description="Stream an access log through Spark into a pane store: page views and unique visitors per module.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", type=Path, metavar="ACCESS_LOG")
    parser.add_argument("--module", default="path", metavar="WHAT", help="path, path:N, host or regex:PATTERN")
    parser.add_argument(
        "--visitor", choices=("ip", "ip+agent"), default="ip+agent", help="who is a visitor (%(default)s)"
    )
    counting = parser.add_mutually_exclusive_group()
    counting.add_argument(
        "--all-requests",
        action="store_const",
        dest="count",
        const="requests",
        default="pages",
        help="count images, styles, scripts and fonts as well, which are left out otherwise",
    )
    counting.add_argument(
        "--pages-only",
        action="store_const",
        dest="count",
        const="views",
        help="leave out errors, other methods than GET, and downloads, too",
    )
    parser.add_argument("--follow", action="store_true", help="go on with what the log or the folder gets")
    parser.add_argument("--window", default="24h", metavar="TIME", help="size of the windows (%(default)s)")
    parser.add_argument("--slide", default="3m", metavar="TIME", help="their slide, and width of a pane (%(default)s)")
    parser.add_argument(
        "--watermark", default="10 minutes", metavar="TIME", help="how far lines may be out of order (%(default)s)"
    )
    parser.add_argument(
        "--store", metavar="URL", help="rocksdb:PATH or redis://...; else $FASTWIN_STORE, else in the folder of --out"
    )
    parser.add_argument(
        "--retention",
        metavar="TIME",
        help="how long panes are kept (as a --store has it, at first eight windows; in the folder of --out, for a log "
        "that is read once, ten years)",
    )
    parser.add_argument(
        "--batch", type=int, default=100_000, metavar="LINES", help="of a copy, with --follow or stdin (%(default)s)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("pvuv-output"),
        metavar="DIR",
        help="for what is kept besides; what an earlier run without --follow has left is deleted (%(default)s)",
    )
    parser.add_argument("--serve", action="store_true", help="show the page while the stream runs, and after it")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="of the page, with --serve (%(default)s)")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark master (%(default)s)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.serve:
        check_extra("pvuv", "serve")  # at once: the page is begun when Spark is there
    # Spark takes seconds to import, which other commands and --help shall not.
    from spark_glue.apps.pvuv.main import run

    return run(arguments)
