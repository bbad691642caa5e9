"""Runs ``fastwin pvuv``: reads the log, streams it, keeps the panes, and says what it found."""

import argparse
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.store import PaneStore, Written
from fastwin.times import to_ms
from spark_glue.apps.console import fresh_folder, stderr_to
from spark_glue.apps.demo.progress import HEADER, follow
from spark_glue.apps.pvuv.accesslog import parse_lines, read_lines
from spark_glue.apps.pvuv.modules import Events, module_of

__all__ = ["run", "spec_of"]

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
_SCHEMA = pa.schema({"module": pa.string(), "ts": pa.timestamp("us", tz="UTC"), "visitor": pa.string()})
_STORE_VARIABLE = "FASTWIN_STORE"
_FIRST_FILE_TIME = 1_600_000_000


def spec_of(window: str, slide: str) -> fw.WindowSpec:
    """Returns the spec: page views and unique visitors per module."""
    windows = fw.SlidingEventTimeWindows.of(window, slide)
    keyed = fw.key_by("module").event_time("ts").window(windows).bad_rows("drop")
    return keyed.aggregate(pv=fw.Count(), uv=fw.HyperLogLog("visitor"))


def run(arguments: argparse.Namespace) -> int:
    """Runs the command with its parsed arguments; returns the exit status."""
    spec = spec_of(arguments.window, arguments.slide)
    delay_ms = to_ms(arguments.watermark, argument="--watermark")
    if delay_ms < 0:
        raise SpecError(f"--watermark: must not be negative, got {arguments.watermark!r}")
    if arguments.batch < 1:
        raise SpecError(f"--batch: must be at least 1, got {arguments.batch}")
    module_of(arguments.module)
    spec.panes()
    if str(arguments.log) != "-" and not arguments.log.is_file():
        raise SpecError(f"ACCESS_LOG: there is no file {arguments.log}")
    out = fresh_folder(arguments.out, "pvuv")
    url = arguments.store or os.environ.get(_STORE_VARIABLE) or f"rocksdb:{out / 'store'}"
    started = time.monotonic()
    events, malformed = _read(arguments, out, to_ms(arguments.slide) + delay_ms)
    if not events:
        raise SpecError(f"ACCESS_LOG: {arguments.log} has no line of an access log, but {malformed:,} others")

    sink = spark_glue.to_store(url, spec, retention=arguments.retention)
    print(f"  to {_without_password(url)}; starting Spark ...\n", flush=True)
    with stderr_to(out / "spark.log"):
        spark = spark_glue.session("fastwin pvuv", arguments.master, _SETTINGS)
    page = None
    try:
        schema = spark.read.parquet(str(out / "input")).schema
        lines = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(out / "input"))
        frame = spark_glue.apply(spec.panes(), lines, watermark=arguments.watermark)
        writer = frame.writeStream.queryName("pvuv").option("checkpointLocation", str(out / "checkpoint"))
        total = _Sum(sink)
        query = writer.trigger(availableNow=True).foreachBatch(total).start()
        if arguments.serve:
            page = _serve(url, arguments.port)
        print(HEADER)
        late = follow(query, lambda line: print(line, flush=True))["dropped"]
    finally:
        spark.stop()
        sink.close()
        if page is not None and sys.exc_info()[0] is not None:
            page.terminate()
    _report(url, arguments, events, malformed, late, total.written, time.monotonic() - started, out)
    if page is not None:
        page.wait()
    return 0


class _Sum:
    """The sink, adding up what it has written."""

    def __init__(self, sink: spark_glue.StoreSink) -> None:
        self._sink = sink
        self.written = Written()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.written += self._sink(frame, batch_id)


def _read(arguments: argparse.Namespace, out: Path, beyond_ms: int) -> tuple[int, int]:
    """Writes the log as Parquet files, one a micro-batch; returns how many events and malformed lines it has."""
    (out / "input").mkdir()
    made = Events(arguments.module, arguments.visitor, arguments.pages_only)
    lines = events = malformed = parts = 0
    newest = None
    with (out / "malformed.log").open("w", encoding="utf-8") as others:
        for first, some in read_lines(arguments.log, arguments.batch):
            parsed = parse_lines(some, first)
            others.writelines(f"{number}: {line}\n" for number, line in parsed.malformed)
            table = made.of(parsed.rows)
            lines, events = lines + len(some), events + table.num_rows
            malformed += len(parsed.malformed)
            if table.num_rows:
                latest = pc.max(table["ts"])
                newest = latest if newest is None or latest.as_py() > newest.as_py() else newest
                _write(table, out, parts)
                parts += 1
            print(f"\r  {lines:,} lines read, {malformed:,} malformed", end="", flush=True)
    print()
    if newest is not None:
        # The end of the log closes all panes: an event behind it brings the watermark there, and its own pane stays
        # open, so it is counted nowhere.
        end = pa.array([newest.value + beyond_ms], pa.timestamp("ms", tz="UTC"))
        _write(
            pa.table({"module": pa.nulls(1, pa.string()), "ts": end, "visitor": pa.nulls(1, pa.string())}), out, parts
        )
    return events, malformed


def _write(table: pa.Table, out: Path, part: int) -> None:
    path = out / "input" / f"part-{part:06d}.parquet"
    pq.write_table(table.cast(_SCHEMA), path)
    os.utime(path, (_FIRST_FILE_TIME + part,) * 2)  # Spark takes the oldest first


def _serve(url: str, port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "fastwin", "serve", "--port", str(port)]
    return subprocess.Popen(command, env=os.environ | {_STORE_VARIABLE: url})  # all can read a command line


def _without_password(url: str) -> str:
    scheme, at, rest = url.rpartition("@")
    return f"{scheme.split('//')[0]}//...@{rest}" if at else url


def _report(
    url: str,
    arguments: argparse.Namespace,
    events: int,
    malformed: int,
    late: int,
    written: Written,
    seconds: float,
    out: Path,
) -> None:
    with PaneStore.open(url, read_only=True) as store:
        found = store.query().sort_by([("pv", "descending")])
        watermark = store.watermark
    assert watermark is not None
    until = datetime.fromtimestamp(watermark / 1_000, UTC)
    print(f"\nThe last {arguments.window} until {until:%Y-%m-%d %H:%M} UTC: {found.num_rows:,} modules")
    for row in found.slice(0, 10).to_pylist():
        print(f"  {row['module'][:48]:<50}{row['pv']:>9,} views{row['uv']:>9,} visitors")
    kept = f", {written.expired:,} of them older than retention" if written.expired else ""
    panes = f"{written.stored + written.expired:,} panes{kept}"
    print(f"\n{events:,} events, {late:,} too late, {malformed:,} malformed lines; {panes}; {seconds:.1f} s")
    if malformed:
        print(f"Malformed lines: {os.path.relpath(out / 'malformed.log')}")
    if not arguments.serve:
        print(f"The page:        fastwin serve --store {_without_password(url)}")
