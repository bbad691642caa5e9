"""Where ``pvuv`` keeps what it makes: a folder, and a store; and the lines of the log, as Spark reads them."""

import argparse
import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.times import Duration, to_ms
from spark_glue.apps.console import check_apart, check_folder, fresh_folder, kept_folder
from spark_glue.apps.pvuv.spool import GZIP, Spool
from spark_glue.sinks.store import StoreSink

__all__ = ["STORE_VARIABLE", "Places", "lines_of", "opened_places", "without_password"]

STORE_VARIABLE = "FASTWIN_STORE"
_FOLLOWED = "options.json"
_WHOLE_LOG_MS = 10 * 365 * 86_400_000
_OPTIONS = ("log", "module", "visitor", "count", "window", "slide", "watermark")


@dataclass(frozen=True)
class Places:
    """The folder of ``--out``, absolute; the store's URL; and what writes panes there."""

    out: Path
    url: str
    sink: StoreSink


def opened_places(arguments: argparse.Namespace, spec: fw.WindowSpec, opened: ExitStack) -> Places:
    """Empties the folder, or goes on with it, and opens the store, which ``opened`` closes.

    A store that cannot be opened is told before a folder is emptied, unless it lies in the folder.
    """

    def sink_of(url: str, retention: Duration | None) -> StoreSink:
        sink = spark_glue.to_store(url, spec, retention=retention)
        opened.callback(sink.close)
        return sink

    _check_out(arguments)
    url = arguments.store or os.environ.get(STORE_VARIABLE)
    if url and not _lies_in(url, arguments.out):
        sink = sink_of(url, arguments.retention)
        return Places(_folder(arguments), url, sink)
    out = _folder(arguments)
    url = url or f"rocksdb:{out / 'store'}"
    return Places(out, url, sink_of(url, _retention_of_own(arguments)))


def _retention_of_own(arguments: argparse.Namespace) -> Duration | None:
    """Returns how long a store in the folder keeps panes: all of a log that is read once, if nothing else is asked for.

    Another store may have been there before, and has its own retention.
    """
    if arguments.retention is not None or arguments.follow:
        return arguments.retention
    return max(_WHOLE_LOG_MS, 8 * to_ms(arguments.window))


def _check_out(arguments: argparse.Namespace) -> None:
    """Raises SpecError for a folder that is another's, that the log is in, or that a run with --follow needs."""
    check_folder(arguments.out, "pvuv")
    if str(arguments.log) != "-":
        check_apart(arguments.out, arguments.log)
    if not arguments.follow and (arguments.out / _FOLLOWED).exists():
        raise SpecError(
            f"--out: {arguments.out} has what a run with --follow goes on with; add --follow, or name a new folder"
        )


def _lies_in(url: str, folder: Path) -> bool:
    """Tells whether a store is in a folder of this machine."""
    scheme, _, path = url.partition(":")
    return scheme.lower() == "rocksdb" and Path(path.removeprefix("//")).resolve().is_relative_to(folder.resolve())


def _folder(arguments: argparse.Namespace) -> Path:
    """Returns the folder of ``--out``: fresh, or to follow on where an earlier run was."""
    before = arguments.out / _FOLLOWED
    if not arguments.follow:
        return fresh_folder(arguments.out, "pvuv")
    out = (kept_folder if before.exists() else fresh_folder)(arguments.out, "pvuv")
    told = json.dumps({name: str(getattr(arguments, name)) for name in _OPTIONS})
    if before.exists() and before.read_text(encoding="utf-8") != told:
        raise SpecError(
            f"--out: {arguments.out} was begun with other options: {before.read_text(encoding='utf-8')}; name them "
            f"again, or another folder"
        )
    before.write_text(told, encoding="utf-8")
    return out


def lines_of(log: Path, out: Path, follow: bool, lines: int, say: Callable[[str], None]) -> tuple[Path, Spool | None]:
    """Returns the folder that Spark reads; and what fills it, and says lines, where a log is not there as a whole."""
    (out / "end").mkdir(exist_ok=True)
    if log.is_dir() and not follow:
        return log, None
    folder = out / "lines"
    if follow or str(log) == "-":
        return folder, Spool(log, folder, lines, say)
    folder.mkdir()
    # Spark reads folders, and tells a compressed file by its ending.
    with log.open("rb") as file:
        ending = "gz" if file.read(2) == GZIP else "log"
    (folder / f"log.{ending}").symlink_to(log.resolve())
    return folder, None


def without_password(url: str) -> str:
    """Returns a URL of a store as it may be shown."""
    if url.lower().startswith("rocksdb:"):
        return url
    scheme, at, rest = re.sub(r"([?&]\w*password)=[^&]*", r"\1=...", url).rpartition("@")
    return f"{scheme.split('//')[0]}//...@{rest}" if at else rest
