"""Runs ``fastwin pvuv``: streams the log, keeps the panes, and says what it found."""

import argparse
import io
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.times import to_ms
from spark_glue.apps.console import ended_as_by_ctrl_c, start_spark
from spark_glue.apps.pvuv.malformed import Malformed
from spark_glue.apps.pvuv.options import check_log, checked
from spark_glue.apps.pvuv.page import Page
from spark_glue.apps.pvuv.places import lines_of, opened_places, without_password
from spark_glue.apps.pvuv.progress import Batches, Clock
from spark_glue.apps.pvuv.report import Run, report, what_counts
from spark_glue.apps.pvuv.requests import requests_of
from spark_glue.apps.pvuv.spool import Spool
from spark_glue.apps.specfile import specs_in
from spark_glue.stages.warming import warm_up

__all__ = ["run", "spec_of"]

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
# For a small log most of the time is Spark's start: it is shorter with one task for the panes, and without the Java
# compiler that makes code faster that runs for minutes.
_QUICK = {"spark.sql.shuffle.partitions": "1"}
_QUICK_JVM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"}
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
# A log that ends is one micro-batch, and two more close the panes: none without input comes between.
_ONCE = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
_SMALL_BYTES = 64 * 2**20
_KEY_GROUPS = 8
_LOOK_SECONDS = 1
_COPY_SECONDS = 10
"""How often what a log has got is put into a file for Spark, which remembers each one for good."""

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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # modules have any letters, and a terminal may not
    with ended_as_by_ctrl_c(), ExitStack() as shown:
        spec = spec_of(arguments.window, arguments.slide)
        events, delay_ms = checked(arguments, spec)
        check_log(arguments)
        with Clock() as clock, ExitStack() as opened:
            places = opened_places(arguments, spec, opened)
            malformed = Malformed(places.out / "malformed.log", clock.say)
            begun = Run(arguments, spec, events, delay_ms, places, clock, Batches(clock.say), malformed)
            clock.say(f"{arguments.log} to {without_password(places.url)}: {what_counts(events.count)}")
            page = shown.enter_context(Page(places.url, arguments.port)) if arguments.serve else None
            _stream(begun, page, stop or threading.Event(), opened)
        report(begun)
        return 0 if page is None else page.outcome(wait=not arguments.follow)


def _stream(run: Run, page: Page | None, stop: threading.Event, opened: ExitStack) -> None:
    """Streams the log to its end, or follows it until it is stopped; ``opened`` ends Spark."""
    arguments, out, clock = run.arguments, run.places.out, run.clock
    text = _SPECS.format(window=arguments.window, slide=arguments.slide)
    (out / "specs.py").write_text(text, encoding="utf-8")
    lines, spool = lines_of(arguments.log, out, arguments.follow, arguments.batch, clock.say)
    if spool is not None:
        found = spool.look() if arguments.follow else spool.take(sys.stdin.buffer)
        clock.say(f"{found:,} lines are there")
    clock.at("starting Spark, which is a Java program")
    spark = start_spark("fastwin pvuv", arguments.master, _settings(arguments), out / "spark.log")
    opened.callback(spark.stop)
    warm_up(spark)
    if page is not None:
        page.check()
    clock.at("the first micro-batch, for which Spark plans the query and starts Python workers")
    with _damage_told(arguments.log):
        query = _started(run, spark, lines, copies=spool is not None)
        try:
            if arguments.follow:
                assert spool is not None
                _follow(query, spool, run, stop)
            else:
                _to_the_end(query, run)
        finally:
            query.stop()
    for finding in spark_glue.doctor(query):
        # What closes the last panes may be ahead of the clock, and a log that is read once is read as fast as it goes:
        # that is no ailment.
        ahead = finding.name == "date in the future" and finding.evidence["newest_ms"] > (run.batches.newest_ms or 0)
        if not ahead and (arguments.follow or finding.name != "no trigger interval"):
            clock.say(f"the doctor: {finding.what}")


def _started(run: Run, spark: SparkSession, lines: Path, copies: bool) -> StreamingQuery:
    """Starts the query that computes panes and keeps them. copies: whether the lines are a spool's."""
    arguments, out = run.arguments, run.places.out
    requests = requests_of(spark, lines, out / "end", run.events, copies=copies)
    # The dates of the log have been judged, and what closes the last panes may be days ahead.
    frame = spark_glue.apply(
        run.spec.panes(), requests, watermark=arguments.watermark, key_groups=_KEY_GROUPS, max_future_skew=None
    )
    sinks = spark_glue.route(main=run.places.sink, bad=run.malformed)
    writer = frame.writeStream.queryName("pvuv").option("checkpointLocation", str(out / "checkpoint"))
    if arguments.follow:  # soon after lines were copied, and not all the time
        writer = writer.trigger(processingTime=f"{_LOOK_SECONDS} seconds")
    return writer.foreachBatch(sinks).start()


@contextmanager
def _damage_told(log: Path) -> Iterator[None]:
    """Lets what Spark says of a damaged gzip be an error of the log."""
    try:
        yield
    except StreamingQueryException as problem:
        if any(name in str(problem) for name in ("ZipException", "EOFException")):
            raise SpecError(f"ACCESS_LOG: {log} cannot be read: it is a damaged gzip") from None
        raise


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    log = arguments.log
    small = not arguments.follow and log.is_file() and log.stat().st_size < _SMALL_BYTES
    # Options of others stay: a JVM takes no second garbage collector.
    own = any("-XX:" in os.environ.get(name, "") for name in _JVM_VARIABLES)
    quick = _QUICK | ({} if own else _QUICK_JVM) if small else {}
    return _SETTINGS | quick | ({} if arguments.follow else _ONCE)


def _follow(query: StreamingQuery, spool: Spool, run: Run, stop: threading.Event) -> None:
    """Goes on with what the log gets, until Ctrl-C, or until it is stopped."""
    due = time.monotonic()
    with suppress(KeyboardInterrupt):
        while not stop.wait(_LOOK_SECONDS) and query.isActive:
            if time.monotonic() >= due:
                spool.look()
                due = time.monotonic() + _COPY_SECONDS
            begins = run.batches.count == 0
            run.batches.look(query)
            if begins and run.batches.count:
                run.clock.at("following the log, until Ctrl-C")
    spool.settle()  # first of all: a look may have been broken off
    try:
        spool.look()
    finally:
        spool.settle()
    _drain(query, run.batches)


def _to_the_end(query: StreamingQuery, run: Run) -> None:
    """Waits until all of the log is in, and closes all panes."""
    batches, end = run.batches, run.places.out / "end"
    _drain(query, batches)
    if batches.newest_ms is not None:
        run.clock.at("the last panes")
        # An event behind the end brings the watermark there, and another brings the micro-batch in which panes close
        # by it. Their own pane stays open, so they are counted nowhere.
        told = json.dumps({"ms": batches.newest_ms + to_ms(run.arguments.slide) + run.delay_ms})
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
