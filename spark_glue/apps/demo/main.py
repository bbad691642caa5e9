"""Runs the demo: writes the stream, starts the queries, follows them, and tells what came out."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from fastwin.times import to_ms
from spark_glue.apps.console import check_apart, fresh_folder, start_spark
from spark_glue.apps.demo.chart import draw
from spark_glue.apps.demo.pace import measure, write_rows
from spark_glue.apps.demo.progress import HEADER, Tally, follow
from spark_glue.apps.demo.source import Source, flights, own_file, write_parts
from spark_glue.apps.demo.specs import specs_text
from spark_glue.apps.specfile import how_to_ask, specs_in
from spark_glue.state.savepoint import spark_path

__all__ = ["run"]

_Sink = Callable[[DataFrame, int], object]
_QUERIES = ("tumbling", "sliding", "sessions")
_SPECS = "specs.py"
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo with the parsed arguments of its command; returns the exit status."""
    if arguments.batches < 1:
        raise SpecError(f"--batches: must be at least 1, got {arguments.batches}")
    if arguments.pace < 0:
        raise SpecError(f"--pace: must be at least 0, got {arguments.pace}")
    if to_ms(arguments.watermark, argument="--watermark") < 0:
        raise SpecError(f"--watermark: must not be negative, got {arguments.watermark!r}")
    own = arguments.events is not None
    if own:
        check_apart(arguments.out, arguments.events)
    source = own_file(arguments.events, arguments.key, arguments.time) if own else flights()
    text = specs_text(source, arguments)
    found = specs_in(text)
    wanted, page, panes = {name: found[name] for name in _QUERIES}, found["shown"], found["page"]
    for spec in wanted.values():
        fw.plan(spec, source.table.schema)  # a wrong option shall show before Spark starts
    out = fresh_folder(arguments.out, "demo")
    (out / _SPECS).write_text(text, encoding="utf-8")
    print(f"fastwin demo: {source.table.num_rows:,} {source.name}, in order of arrival")
    for name, spec in wanted.items():
        print(f"  {name:<9} per {spec.keys[0]}: {spec.assigner}")
    print(f"  page      per {page.keys[0]}: {panes.assigner}, kept in a store")
    parts = write_parts(source.table, arguments.batches, out / "input")
    print(
        f"  as {parts} micro-batches, watermark {arguments.watermark} behind the newest event; starting Spark ...\n",
        flush=True,
    )

    spark = start_spark("fastwin demo", arguments.master, _SETTINGS, out / "spark.log")
    started = time.monotonic()
    try:
        rows = spark_path(out / "input")
        stream = spark.readStream.schema(spark.read.parquet(rows).schema).option("maxFilesPerTrigger", 1)
        stream = stream.parquet(rows)
        sinks: dict[str, _Sink] = {name: _sink(name, spec, out) for name, spec in wanted.items()}
        sinks["page"] = spark_glue.to_store(f"rocksdb:{out / 'store'}", page)
        _say(HEADER)
        tallies, ails = {}, []
        # One after another: two cores do not get more done by four queries, and the first figures are there sooner.
        for name, spec in (wanted | {"page": panes}).items():
            frame = spark_glue.apply(spec, stream, watermark=arguments.watermark)
            query = _start(name, frame, sinks[name], out)
            try:
                tallies[name] = follow(query, _say)
            except StreamingQueryException as problem:
                raise SpecError(_failure(name, query, out)) from problem
            ails += [f"{name}: {finding.what}" for finding in spark_glue.doctor(query)]
        seconds = time.monotonic() - started
        _report(arguments, source, wanted, tallies, seconds, out)
        _say("\nThe doctor says\n  " + ("\n  ".join(ails) or "nothing is wrong with any of the queries"))
        if arguments.pace:
            write_rows(arguments.pace, out / "rows")
            measure(spark, arguments.pace, out, _say)
    finally:
        spark.stop()
    _say_where(arguments, source, wanted, out)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _start(name: str, frame: DataFrame, sink: _Sink, out: Path) -> StreamingQuery:
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(out / "checkpoints" / name))
    return writer.trigger(availableNow=True).foreachBatch(sink).start()


def _failure(name: str, query: StreamingQuery, out: Path) -> str:
    """Returns what is to be said of a query that has failed."""
    found = spark_glue.doctor(query)
    said = f"{found['failed'].what}\n  Mend: {found['failed'].mend}" if "failed" in found else "the query ended"
    return f"demo: {name}: {said}\n  Spark's messages: {os.path.relpath(out / 'spark.log')}"


def _sink(name: str, spec: fw.WindowSpec, out: Path) -> _Sink:
    return spark_glue.route(
        main=_parquet(out / name),
        late=_parquet(out / "late") if spec.late_output else None,
        bad=_parquet(out / "bad") if spec.bad_row_policy == "divert" else None,
    )


def _parquet(folder: Path) -> _Sink:
    # One folder a batch, overwritten: a batch that is run again after a failure replaces what it wrote before.
    def write(frame: DataFrame, batch_id: int) -> None:
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder / f"batch={batch_id:05d}"))

    return write


def _read(folder: Path) -> pa.Table:
    return ds.dataset(folder, format="parquet").to_table()


def _report(
    arguments: argparse.Namespace,
    source: Source,
    wanted: dict[str, fw.WindowSpec],
    tallies: dict[str, Tally],
    seconds: float,
    out: Path,
) -> None:
    tumbling, sliding, sessions = (_read(out / name) for name in wanted)
    chart = out / "chart.png"
    labels = f"last {arguments.window} every {arguments.slide}", f"windows of {arguments.hop}"
    draw(sliding, tumbling, source.key, source.noun, source.delay is not None, labels, chart)
    rows, tally = source.table.num_rows, tallies["tumbling"]
    counted = pc.sum(tumbling["n"]).as_py() or 0
    still_open = rows - counted - tally["late"] - tally["bad"]
    print("\nFindings")
    for line in [*_key_lines(source, tumbling, sliding), *_session_lines(source, sessions)]:
        print(f"  {line}")
    print("\nEvery row accounted for (tumbling)")
    print(
        f"  {rows:,} rows = {counted:,} in {tumbling.num_rows:,} results + {tally['late']:,} late "
        f"+ {tally['bad']:,} without a time + {still_open:,} in the {tally['open_windows_change']:,} windows still open"
    )
    print(
        "  late by query: "
        + ", ".join(f"{name} {tallies[name]['late'] + tallies[name]['dropped']:,}" for name in wanted)
    )
    print(
        f"\n{rows * len(tallies):,} events through {len(tallies)} queries in {seconds:.1f} s, Spark's start not counted"
    )


def _say_where(arguments: argparse.Namespace, source: Source, wanted: dict[str, fw.WindowSpec], out: Path) -> None:
    chart = out / "chart.png"
    print("\nWhere everything lies")
    for what, names in (
        ("results (Parquet)", list(wanted)),
        ("late and bad rows", ["late", "bad"]),
        ("chart", [chart.name]),
        ("specifications", [_SPECS]),
        ("Spark's messages", ["spark.log"]),
    ):
        print(f"  {what:<19}{', '.join(os.path.relpath(out / name) for name in names)}")
    print("\nWhat windows hold, and why one has fired or has not, is read from the state of a query:")
    known = source.table[source.key].drop_null()
    for command in how_to_ask(out / "checkpoints" / "tumbling", out / _SPECS, "tumbling", known[0] if known else "KEY"):
        print(f"  {command}")
    shown = "departures and aircraft" if source.delay is not None else source.noun
    print(f"\nTo see the {shown} of the last {arguments.window} on a page, start this and open the address it prints:")
    print(f"  {_how_to_serve(source, out)}")


def _how_to_serve(source: Source, out: Path) -> str:
    """Returns the command that shows the page."""
    words = [os.path.relpath(sys.executable), "-m", "fastwin", "serve"]
    words += ["--store", f"rocksdb:{os.path.relpath(out / 'store')}"]
    words += ["--title", source.name[0].upper() + source.name[1:], "--label", f"pv={source.noun.capitalize()}"]
    if source.session_key != source.key:
        words += ["--label", "uv=Aircraft"]
    return shlex.join(words)


def _key_lines(source: Source, tumbling: pa.Table, sliding: pa.Table) -> list[str]:
    lines = []
    totals = tumbling.group_by(source.key).aggregate([("n", "sum")]).sort_by([("n_sum", "descending")])
    for value in totals[source.key].to_pylist()[:5]:
        mine = tumbling.filter(_is(tumbling[source.key], value))
        day = sliding.filter(_is(sliding[source.key], value)).sort_by([("n", "descending")])
        busiest = mine.sort_by([("n", "descending")]).slice(0, 1).to_pylist()[0]
        text = f"{value!s:<10}{pc.sum(mine['n']).as_py():>9,} {source.noun}"
        if source.delay is not None:
            total = pc.sum(pc.multiply(mine["mean_delay"], mine["n"].cast(pa.float64()))).as_py()
            text += f", mean delay {total / pc.sum(mine['n']).as_py():5.1f} min"
        text += f", most in one window {busiest['n']} ({busiest['window_start']:%d %b %H:%M})"
        if day.num_rows:
            text += (
                f", most in a sliding window {day['n'][0].as_py():,} (until {day['window_end'][0].as_py():%d %b %H:%M})"
            )
        lines.append(text)
    return lines


def _is(column: pa.ChunkedArray, value: object) -> pa.ChunkedArray:
    return pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))


def _session_lines(source: Source, sessions: pa.Table) -> list[str]:
    known = sessions.filter(pc.is_valid(sessions[source.session_key]))
    if not known.num_rows:
        return ["no session has ended yet"]
    top = known.sort_by([("n", "descending")]).slice(0, 1).to_pylist()[0]
    mean = pc.mean(known["n"]).as_py()
    who, first, last = top[source.session_key], top["first"], top["last"]
    return [
        f"{sessions.num_rows:,} sessions of {source.session_key}, {mean:.2f} {source.noun} each on average; "
        f"the longest run: {who} with {top['n']} between {first:%d %b %H:%M} and {last:%d %b %H:%M}"
    ]
