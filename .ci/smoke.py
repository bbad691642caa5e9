"""Whether an installed fastwin works, in some seconds: run it from outside the sources, with no extra.

python .ci/smoke.py
"""

import subprocess
import sys
from pathlib import Path

# Not the sources, in case this runs in their folder.
ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT, ROOT / ".ci")]

import pyarrow as pa  # noqa: E402

import fastwin as fw  # noqa: E402
from fastwin.doctor.itself import kernels  # noqa: E402

CLICKS = pa.table(
    {
        "user": [f"u{i * 7 % 13}" for i in range(2_000)],
        "ts": pa.array([5_399 * i for i in range(2_000)], pa.timestamp("ms", tz="UTC")),
        "ms": [i % 101 for i in range(2_000)],
    }
)
START = fw.key_by("user").event_time("ts")


class Total(fw.AggregateFunction):
    """A sum, in Python."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, element: fw.Row, accumulator: int) -> int:
        return accumulator + element["ms"]

    def get_result(self, accumulator: int) -> int:
        return accumulator


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Returns the rows of a table, in an order that does not depend on that of the table."""
    return sorted(tuple(row.values()) for row in table.to_pylist())


def check_windows() -> None:
    """Built-in aggregates, the same in Python, and the same as a stream that was stopped and restored."""
    hours = START.window(fw.TumblingEventTimeWindows.of("1 hour"))
    fast = rows(hours.aggregate(total=fw.Sum("ms")).run(CLICKS).main)
    assert len(fast) == 39
    assert sum(row[3] for row in fast) == sum(CLICKS["ms"].to_pylist())
    assert rows(hours.aggregate(Total(), output="total bigint").run(CLICKS).main) == fast
    assert rows(hours.aggregate(total=fw.Sum("ms")).run(CLICKS, threads=2).main) == fast

    spec = hours.aggregate(total=fw.Sum("ms"))
    stream = spec.open()
    stream.process(CLICKS.slice(0, 1_000))
    again = spec.open(schema=CLICKS.schema)
    again.restore([stream.snapshot()])
    again.process(CLICKS.slice(1_000, 990))
    again.push(CLICKS.slice(1_990).to_pylist())
    assert rows(again.advance_watermark(fw.MAX_TIMESTAMP).main) == fast


def check_others() -> None:
    """Sliding and session windows, sketches, and an error."""
    sliding = START.window(fw.SlidingEventTimeWindows.of("1 hour", "10 minutes"))
    assert sum(row[-1] for row in rows(sliding.aggregate(n=fw.Count()).run(CLICKS).main)) == 6 * len(CLICKS)
    sessions = START.window(fw.EventTimeSessionWindows.with_gap("2 minutes"))
    found = sessions.aggregate(n=fw.Count(), p99=fw.Quantile("ms", 0.99), apart=fw.HyperLogLog("ms")).run(CLICKS).main
    assert sum(found["n"].to_pylist()) == len(CLICKS)
    try:
        fw.TumblingEventTimeWindows.of("-1 hour")
    except fw.SpecError:
        return
    raise AssertionError("a window of -1 hour was taken")


def main() -> None:
    """Checks the installed package; ends with a traceback if anything is wrong."""
    told = kernels()
    assert told.status == "ok", told
    assert not Path(fw.__file__).is_relative_to(ROOT / "fastwin"), f"this is the source: {fw.__file__}"
    check_windows()
    check_others()
    subprocess.run([sys.executable, "-m", "fastwin", "doctor"], check=True, cwd=Path(sys.prefix))
    print(f"fastwin {fw.__version__} works: {told.found}")


if __name__ == "__main__":
    main()
