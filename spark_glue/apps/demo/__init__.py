"""``fastwin demo``: three windows over one out-of-order stream, end to end on Spark."""

import argparse
from pathlib import Path

from fastwin.machine.packages import check_extra

__all__ = ["command"]

_EPILOG = """\
examples:
  fastwin demo
  fastwin demo --slide "5 minutes" --pace 0 --out my-demo
  fastwin demo --events trips.parquet --key station --time started_at

Without --events, the stream is the 336,776 departures from New York's airports in 2013: they arrive by scheduled
time, but their event time is the actual departure, so the stream is really out of order. Three windows run over it:
hourly departures and mean delay per airport, departures per airport over the last 24 hours every 15 minutes, and the
flying sessions of each aircraft. A fourth query keeps departures and distinct aircraft per airport in a store; the demo
ends with the command that shows them on a page. Before that, it measures what a warm query sustains on this machine.

With --events, --key and --time, the same windows count the rows of your own file, in the order of the file.
"""


def command(commands: argparse._SubParsersAction) -> None:
    """Adds the parser of ``demo`` to the command line."""
    parser = commands.add_parser(
        "demo",
        help="run three windows over a real stream on Spark, and draw the result",
        description="Run Flink-style windows over an out-of-order stream with Spark Structured Streaming.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=Path, metavar="FILE", help="your own events: a file of Parquet, CSV, or TSV")
    parser.add_argument("--key", metavar="COLUMN", help="with --events: the column whose values are windowed apart")
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        help="with --events: the column with the time of each event; integers are ms since 1970",
    )
    parser.add_argument("--hop", default="1 hour", metavar="TIME", help="size of the tumbling windows (%(default)s)")
    parser.add_argument(
        "--window", default="24 hours", metavar="TIME", help="size of the sliding windows (%(default)s)"
    )
    parser.add_argument("--slide", default="15 minutes", metavar="TIME", help="their slide (%(default)s)")
    parser.add_argument("--gap", default="6 hours", metavar="TIME", help="what ends a session (%(default)s)")
    parser.add_argument(
        "--watermark", default="1 hour", metavar="TIME", help="how far events may be out of order (%(default)s)"
    )
    parser.add_argument(
        "--batches", type=int, default=8, metavar="N", help="micro-batches to cut the stream into (%(default)s)"
    )
    parser.add_argument(
        "--pace",
        type=int,
        default=1_000_000,
        metavar="ROWS",
        help="at the end, measure micro-batches of so many generated rows, beside Spark's own windows "
        "(%(default)s; 0: leave it out)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        metavar="DIR",
        help="where results go; those of an earlier demo are deleted (%(default)s)",
    )
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark master (%(default)s)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_extra("demo", "demo")  # at once: the chart comes last
    # Spark takes seconds to import, which other commands and --help shall not.
    from spark_glue.apps.demo.main import run

    return run(arguments)
