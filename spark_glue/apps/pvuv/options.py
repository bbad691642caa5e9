"""What ``pvuv`` is given: told what does not fit, before anything is emptied or started."""

import argparse

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.machine.ports import check_port
from fastwin.times import to_ms
from spark_glue.apps.pvuv.accesslog import first_lines, parse_lines
from spark_glue.apps.pvuv.modules import Events, module_of

__all__ = ["check_log", "checked"]

_LOOKED_AT = 100


def checked(arguments: argparse.Namespace, spec: fw.WindowSpec) -> tuple[Events, int]:
    """Returns what makes events, and the delay of the watermark, ms. Raises SpecError for options that do not fit."""
    delay_ms = to_ms(arguments.watermark, argument="--watermark")
    if delay_ms < 0:
        raise SpecError(f"--watermark: must not be negative, got {arguments.watermark!r}")
    if arguments.batch < 1:
        raise SpecError(f"--batch: must be at least 1, got {arguments.batch}")
    if arguments.follow and str(arguments.log) == "-":
        raise SpecError("--follow: needs a file or a folder, which is there again after a restart; stdin is not")
    if arguments.retention is not None:
        kept_ms, window_ms = to_ms(arguments.retention, argument="--retention"), to_ms(arguments.window)
        if kept_ms < window_ms:
            raise SpecError(f"--retention: must be at least a window, {arguments.window}, got {arguments.retention!r}")
    check_port(arguments.port)
    module_of(arguments.module)
    spec.panes()
    return Events(arguments.module, arguments.visitor, arguments.count), delay_ms


def check_log(arguments: argparse.Namespace) -> None:
    """Raises SpecError for what is no log: told before Spark starts."""
    log = arguments.log
    if str(log) == "-" or log.is_dir() or (arguments.follow and log.parent.is_dir() and not log.exists()):
        return
    if not log.is_file():
        raise SpecError(f"ACCESS_LOG: there is no file or folder {log}")
    lines = first_lines(log, _LOOKED_AT)
    if not parse_lines(lines).rows.num_rows and not (arguments.follow and not lines):
        raise SpecError(f"ACCESS_LOG: {log} has no line of an access log among its first {len(lines)}")
