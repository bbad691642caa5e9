"""What ``pvuv`` says at its beginning and end: what counts, what it found, and where the time went."""

import argparse
import os
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import fastwin as fw
from fastwin.store import PaneStore
from spark_glue.apps.pvuv.malformed import Malformed
from spark_glue.apps.pvuv.modules import Counted, Events
from spark_glue.apps.pvuv.places import Places, without_password
from spark_glue.apps.pvuv.progress import MISDATED, Batches, Clock
from spark_glue.apps.specfile import how_to_ask

__all__ = ["Run", "report", "what_counts"]

_MODULES = 10


def what_counts(counted: Counted) -> str:
    """Returns what a reader of the numbers must know of what they count."""
    if counted == "requests":
        return "all requests count"
    also = "; nor errors, other methods than GET, and downloads" if counted == "views" else ""
    return f"requests for images, styles, scripts and fonts do not count (--all-requests counts them){also}"


@dataclass(frozen=True)
class Run:
    """One run of the command: what it was given, where it writes, and what has come of it so far.

    delay_ms: how far the watermark is behind the newest event, ms.
    """

    arguments: argparse.Namespace
    spec: fw.WindowSpec
    events: Events
    delay_ms: int
    places: Places
    clock: Clock
    batches: Batches
    malformed: Malformed


def report(run: Run) -> None:
    """Says what a run that has ended found, and how to ask on."""
    asked = _report_last_window(run)
    _report_counts(run)
    if not run.arguments.serve:
        print(f"The page:        fastwin serve --store {shlex.quote(without_password(run.places.url))}")
    if asked is not None:
        out = run.places.out
        why, _ = how_to_ask(out / "checkpoint", out / "specs.py", "panes", asked)
        print(f"Why, of a pane:  {why}")


def _report_last_window(run: Run) -> str | None:
    """Says the modules with the most page views; returns the first one, None where a terminal cannot show it."""
    with PaneStore.open(run.places.url, read_only=True) as store:
        meta = store.meta()
        if meta is None or meta.watermark is None:
            return None
        found = store.query().sort_by([("pv", "descending")])
    until = datetime.fromtimestamp(meta.watermark / 1_000, UTC)
    print(f"\nThe last {run.arguments.window} until {until:%Y-%m-%d %H:%M} UTC: {found.num_rows:,} modules")
    first = found.slice(0, _MODULES).to_pylist()
    for row in first:
        print(f"  {_printable(row['module'])[:48]:<50}{row['pv']:>9,} views{row['uv']:>9,} visitors")
    asked = first[0]["module"] if first else None
    return asked if asked is not None and _is_shown_whole(asked) else None


def _is_shown_whole(text: str) -> bool:
    """Whether a reader can copy text from the terminal as it is."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return text.isprintable()


def _printable(text: str) -> str:
    """Returns text with U+FFFD for what a terminal may take for a command: anybody can ask a server for any path."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _report_counts(run: Run) -> None:
    """Says what became of all lines, where the time went, and where malformed lines are."""
    told, written = run.batches.total, run.places.sink.written
    skipped = f"{told['skipped']:,} requests not counted, " if run.arguments.count != "requests" else ""
    kept = f", {written.expired:,} of them older than retention" if written.expired else ""
    misdated = f"{told['misdated']:,} {MISDATED}, " if told["misdated"] else ""
    lines = f"{skipped}{told['late']:,} too late, {misdated}{told['malformed']:,} malformed lines"
    print(f"\n{told['events']:,} events, {lines}; {written.stored + written.expired:,} panes{kept}")
    print(_seconds(run.clock, run.batches))
    if told["malformed"]:
        left_out = run.malformed.left_out
        without = f", without {left_out:,} of them" if left_out else ""
        print(f"Malformed lines: {os.path.relpath(run.places.out / 'malformed.log')}{without}")


def _seconds(clock: Clock, batches: Batches) -> str:
    """Returns where the time went."""
    parts = [f"{seconds:.1f} s {what.split(',')[0]}" for what, seconds in clock.spent.items()]
    each = (batches.seconds - batches.first_seconds) / max(batches.count - 1, 1)
    more = f"; a further micro-batch took {each:.1f} s" if batches.count > 1 else ""
    return f"{sum(clock.spent.values()):.1f} s: {', '.join(parts)}{more}"
