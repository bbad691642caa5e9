"""Runs ``fastwin pvuv``: streams the log, keeps the panes, and says what it found."""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.machine.ports import check_port
from fastwin.store import PaneStore, Written
from fastwin.times import to_ms
from spark_glue.apps.console import check_folder, ended_as_by_ctrl_c, fresh_folder, kept_folder, start_spark
from spark_glue.apps.pvuv.accesslog import first_lines, parse_lines
from spark_glue.apps.pvuv.malformed import Malformed
from spark_glue.apps.pvuv.modules import Counted, Events, module_of
from spark_glue.apps.pvuv.progress import Batches, Clock
from spark_glue.apps.pvuv.requests import requests_of
from spark_glue.apps.pvuv.spool import GZIP, Spool
from spark_glue.apps.specfile import how_to_ask, specs_in
from spark_glue.stages.warming import warm_up

__all__ = ["run", "spec_of"]

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
# For a small log most of the time is Spark's start: it is shorter with one task for the panes, and without the Java
# compiler that makes code faster that runs for minutes.
_QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m",
}
# A log that ends is one micro-batch, and two more close the panes: none without input comes between.
_ONCE = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
_SMALL_BYTES = 64 * 2**20
_KEY_GROUPS = 8
_STORE_VARIABLE = "FASTWIN_STORE"
_LOOKED_AT = 100
_LOOK_SECONDS = 1
_END_SECONDS = 5
_FOLLOWED = "options.json"
_OPTIONS = ("log", "module", "visitor", "count", "window", "slide", "watermark")


_SPECS = """\
\"\"\"What the query of this run computes. fastwin why and fastwin inspect read it: --spec specs.py:panes\"\"\"

import fastwin as fw

# Page views and unique visitors of each module. Malformed lines are bad rows.
shown = (
    fw.key_by("module")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of({window!r}, {slide!r}))
    .bad_rows("divert")
    .aggregate(pv=fw.Count(), uv=fw.HyperLogLog("visitor"))
)
panes = shown.panes()  # what the stream computes; the store puts windows together
"""


def spec_of(window: str, slide: str) -> fw.WindowSpec:
    """Returns the spec: page views and unique visitors per module. Malformed lines are its bad rows."""
    return specs_in(_SPECS.format(window=window, slide=slide))["shown"]


def run(arguments: argparse.Namespace, stop: threading.Event | None = None) -> int:
    """Runs the command with its parsed arguments; returns the exit status. stop: set to end ``--follow``."""
    with ended_as_by_ctrl_c(), ExitStack() as opened:
        return _run(arguments, stop or threading.Event(), opened)


def _run(arguments: argparse.Namespace, stop: threading.Event, opened: ExitStack) -> int:
    spec = spec_of(arguments.window, arguments.slide)
    made, delay_ms = _checked(arguments, spec)
    _check_log(arguments)
    given = arguments.store or os.environ.get(_STORE_VARIABLE)
    _check_folder(arguments)
    sink = None
    if given and not _lies_in(given, arguments.out):  # one that cannot be opened shall show before a folder is emptied
        sink = spark_glue.to_store(given, spec, retention=arguments.retention)
        opened.callback(sink.close)
    out = _folder(arguments)
    (out / "specs.py").write_text(_SPECS.format(window=arguments.window, slide=arguments.slide), encoding="utf-8")
    url = given or f"rocksdb:{out / 'store'}"
    with Clock() as clock:
        clock.say(f"{arguments.log} to {_without_password(url)}: {_told(made.count)}")
        lines, spool = _lines(arguments.log, out, arguments.follow, arguments.batch)
        if spool is not None:
            found = spool.look() if arguments.follow else spool.take(sys.stdin.buffer)
            clock.say(f"{found:,} lines are there")
        clock.at("starting Spark, which is a Java program")
        if sink is None:
            sink = spark_glue.to_store(url, spec, retention=arguments.retention)
        page = spark = None
        batches, malformed = Batches(clock.say), Malformed(out / "malformed.log", clock.say)
        try:
            if arguments.serve:
                page = _serve(url, arguments.port)
            spark = start_spark("fastwin pvuv", arguments.master, _settings(arguments), out / "spark.log")
            warm_up(spark)
            if page is not None and page.poll() is not None:
                raise SpecError(f"--serve: the page has ended with status {page.poll()}: what it said stands above")
            clock.at("the first micro-batch, for which Spark plans the query and starts Python workers")
            requests = requests_of(spark, lines, out / "end", made, copies=spool is not None)
            frame = spark_glue.apply(spec.panes(), requests, watermark=arguments.watermark, key_groups=_KEY_GROUPS)
            sinks = spark_glue.route(main=sink, bad=malformed)
            writer = frame.writeStream.queryName("pvuv").option("checkpointLocation", str(out / "checkpoint"))
            if arguments.follow:  # no more often than somebody looks whether there is something new
                writer = writer.trigger(processingTime=f"{_LOOK_SECONDS} seconds")
            query = writer.foreachBatch(sinks).start()
            try:
                if arguments.follow:
                    assert spool is not None
                    _follow(query, spool, batches, clock, stop)
                else:
                    _to_the_end(query, batches, clock, out / "end", to_ms(arguments.slide) + delay_ms)
            finally:
                query.stop()
            for finding in spark_glue.doctor(query):
                clock.say(f"the doctor: {finding.what}")
        except StreamingQueryException as problem:
            if any(name in str(problem) for name in ("ZipException", "EOFException")):
                raise SpecError(f"ACCESS_LOG: {arguments.log} cannot be read: it is a damaged gzip") from None
            raise
        finally:
            if spark is not None:
                spark.stop()
            sink.close()
            if page is not None and sys.exc_info()[0] is not None:
                _end(page)
    _report(url, arguments, batches, sink.written, malformed.left_out, clock, out)
    return 0 if page is None else _end_of(page, url, arguments.follow)


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    log = arguments.log
    small = not arguments.follow and log.is_file() and log.stat().st_size < _SMALL_BYTES
    return _SETTINGS | (_QUICK if small else {}) | ({} if arguments.follow else _ONCE)


def _checked(arguments: argparse.Namespace, spec: fw.WindowSpec) -> tuple[Events, int]:
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


def _check_log(arguments: argparse.Namespace) -> None:
    """Raises SpecError for what is no log: told before Spark starts."""
    log = arguments.log
    if str(log) == "-" or log.is_dir() or (arguments.follow and log.parent.is_dir() and not log.exists()):
        return
    if not log.is_file():
        raise SpecError(f"ACCESS_LOG: there is no file or folder {log}")
    lines = first_lines(log, _LOOKED_AT)
    if not parse_lines(lines).rows.num_rows and not (arguments.follow and not lines):
        raise SpecError(f"ACCESS_LOG: {log} has no line of an access log among its first {len(lines)}")


def _check_folder(arguments: argparse.Namespace) -> None:
    """Raises SpecError for a folder that is another's, or that a run with --follow needs."""
    check_folder(arguments.out, "pvuv")
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


def _lines(log: Path, out: Path, follow: bool, lines: int) -> tuple[Path, Spool | None]:
    """Returns the folder that Spark reads; and what fills it, where a log is not there as a whole."""
    (out / "end").mkdir(exist_ok=True)
    if log.is_dir() and not follow:
        return log, None
    folder = out / "lines"
    if follow or str(log) == "-":
        return folder, Spool(log, folder, lines)
    folder.mkdir()
    # Spark reads folders, and tells a compressed file by its ending.
    with log.open("rb") as file:
        ending = "gz" if file.read(2) == GZIP else "log"
    (folder / f"log.{ending}").symlink_to(log.resolve())
    return folder, None


def _follow(query: StreamingQuery, spool: Spool, batches: Batches, clock: Clock, stop: threading.Event) -> None:
    """Goes on with what the log gets, until Ctrl-C, or until it is stopped."""
    with suppress(KeyboardInterrupt):
        while not stop.wait(_LOOK_SECONDS) and query.isActive:
            spool.look()
            begins = batches.count == 0
            batches.look(query)
            if begins and batches.count:
                clock.at("following the log, until Ctrl-C")
    _drain(query, batches)


def _to_the_end(query: StreamingQuery, batches: Batches, clock: Clock, end: Path, beyond_ms: int) -> None:
    """Waits until all of the log is in, and closes all panes."""
    _drain(query, batches)
    if batches.newest_ms is not None:
        clock.at("the last panes")
        # An event behind the end brings the watermark there, and another brings the micro-batch in which panes close
        # by it. Their own pane stays open, so they are counted nowhere.
        told = json.dumps({"ms": batches.newest_ms + beyond_ms})
        for number in (1, 2):
            made = end / f".end-{number}"  # hidden from Spark until it is whole, and has its time
            made.write_text(told, encoding="utf-8")
            os.utime(made, (number, number))
            made.rename(end / f"end-{number}.json")
        _drain(query, batches)


def _drain(query: StreamingQuery, batches: Batches) -> None:
    """Waits until all that is there has been processed, with a line for each micro-batch; raises what went wrong."""
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            query.processAllAvailable()
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
        batches.look(query)
    batches.look(query)
    if failed:
        raise failed[0]


def _told(counted: Counted) -> str:
    if counted == "requests":
        return "all requests count"
    also = "; nor errors, other methods than GET, and downloads" if counted == "views" else ""
    return f"requests for images, styles, scripts and fonts do not count (--all-requests counts them){also}"


def _serve(url: str, port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "fastwin", "serve", "--port", str(port)]
    return subprocess.Popen(command, env=os.environ | {_STORE_VARIABLE: url})  # all can read a command line


def _end_of(page: subprocess.Popen, url: str, following: bool = False) -> int:
    """Waits until the page ends, and says so if nobody has ended it; returns the exit status.

    following: it ends with the stream, which somebody has ended.
    """
    try:
        status = page.poll() if following else page.wait()
    finally:
        _end(page)
    if status in (None, 0, 130, -signal.SIGINT, -signal.SIGTERM):  # 130: Ctrl-C before it had begun
        return 0
    print(
        f"pvuv: the page has ended with status {status}; the panes are in the store. To show them: "
        f"fastwin serve --store {_without_password(url)}",
        file=sys.stderr,
    )
    return 1


def _end(page: subprocess.Popen) -> None:
    page.terminate()
    try:
        page.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        page.kill()


def _without_password(url: str) -> str:
    scheme, at, rest = url.rpartition("@")
    return f"{scheme.split('//')[0]}//...@{rest}" if at else url


def _report(
    url: str, arguments: argparse.Namespace, batches: Batches, written: Written, left_out: int, clock: Clock, out: Path
) -> None:
    """left_out: how many malformed lines are not in their file."""
    with PaneStore.open(url, read_only=True) as store:
        meta = store.meta()
        found: Any = None if meta is None or meta.watermark is None else store.query().sort_by([("pv", "descending")])
    if found is not None:
        until = datetime.fromtimestamp(meta.watermark / 1_000, UTC)  # type: ignore[union-attr, operator]
        print(f"\nThe last {arguments.window} until {until:%Y-%m-%d %H:%M} UTC: {found.num_rows:,} modules")
        for row in found.slice(0, 10).to_pylist():
            print(f"  {row['module'][:48]:<50}{row['pv']:>9,} views{row['uv']:>9,} visitors")
    told = batches.total
    skipped = f"{told['skipped']:,} requests not counted, " if arguments.count != "requests" else ""
    kept = f", {written.expired:,} of them older than retention" if written.expired else ""
    lines = f"{skipped}{told['late']:,} too late, {told['malformed']:,} malformed lines"
    print(f"\n{told['events']:,} events, {lines}; {written.stored + written.expired:,} panes{kept}")
    print(_seconds(clock, batches))
    if told["malformed"]:
        without = f", without {left_out:,} of them" if left_out else ""
        print(f"Malformed lines: {os.path.relpath(out / 'malformed.log')}{without}")
    if not arguments.serve:
        print(f"The page:        fastwin serve --store {_without_password(url)}")
    if found is not None and found.num_rows:
        why, _ = how_to_ask(out / "checkpoint", out / "specs.py", "panes", found["module"][0])
        print(f"Why, of a pane:  {why}")


def _seconds(clock: Clock, batches: Batches) -> str:
    """Returns where the time went."""
    parts = [f"{seconds:.1f} s {what.split(',')[0]}" for what, seconds in clock.spent.items()]
    each = (batches.seconds - batches.first_seconds) / max(batches.count - 1, 1)
    more = f"; a further micro-batch took {each:.1f} s" if batches.count > 1 else ""
    return f"{sum(clock.spent.values()):.1f} s: {', '.join(parts)}{more}"
