"""The command line of ``fastwin pvuv``, and a line that it reads."""

import argparse

from spark_glue.apps.pvuv import command

__all__ = ["GOOD", "arguments"]

GOOD = '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /blog/a?x=1 HTTP/1.1" 200 5 "-" "Agent/1"'


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers())
    return parser.parse_args(["pvuv", *given])
