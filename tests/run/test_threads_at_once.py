"""Threads that share a specification, its functions and a stream get what one thread gets. On a free-threaded Python they
run side by side; FASTWIN_STRESS=100 lets them do so for longer."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw

THREADS = 4
ROUNDS = int(os.environ.get("FASTWIN_STRESS", "1"))
KEYED = fw.key_by("k").event_time("t")
TUMBLING = KEYED.window(fw.TumblingEventTimeWindows.of(100))


class Total(fw.AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, element: fw.Row, accumulator: int) -> int:
        return accumulator + element.v

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class Longest(fw.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[tuple[int, str]]:
        yield len(elements), max(element["name"] for element in elements)


class Late(fw.Trigger):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> fw.TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> fw.TriggerResult:
        return fw.TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> fw.TriggerResult:
        return fw.TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


SPECS = {
    "tumbling": TUMBLING.aggregate(n=fw.Count(), s=fw.Sum("v"), apart=fw.HyperLogLog("name"), last=fw.Last("name")),
    "sliding": KEYED.window(fw.SlidingEventTimeWindows.of(300, 40)).aggregate(n=fw.Count(), hi=fw.Max("v")),
    "sessions": KEYED.window(fw.EventTimeSessionWindows.with_gap(7)).aggregate(n=fw.Count(), q=fw.Median("v")),
    "trigger": TUMBLING.trigger(fw.CountTrigger.of(3)).aggregate(n=fw.Count(), s=fw.Sum("v")),
    "python": TUMBLING.trigger(Late()).aggregate(Total(), output="s bigint"),
    "merging": KEYED.window(fw.EventTimeSessionWindows.with_gap(7)).aggregate(Total(), output="s bigint"),
    "rows": TUMBLING.process(Longest(), output="n bigint, name string"),
    "kept": TUMBLING.top(2, by="v"),
}


def _table(rows: int = 400) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "k": [f"k{one}" for one in random.integers(0, 9, rows)],
            "t": np.sort(random.integers(0, 3_000, rows)),
            "v": random.integers(-99, 99, rows),
            "name": [f"name {one}" for one in random.integers(0, 30, rows)],
        }
    )


TABLE = _table()


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def _together(work: Callable[[int], None]) -> None:
    """Runs work in several threads that begin at once; raises what one of them raised."""
    begin = threading.Barrier(THREADS)

    def run(number: int) -> None:
        begin.wait(60)
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", SPECS)
def test_one_specification_in_several_threads(name: str) -> None:
    """Tables, streams that are stopped and restored, and rows one by one."""
    spec = SPECS[name]
    wanted = _rows(spec.run(TABLE).main)

    def work(number: int) -> None:
        for _ in range(2 * ROUNDS):
            assert _rows(spec.run(TABLE, threads=1 + number % 2).main) == wanted
            stream, parts = spec.open(), []
            parts.append(stream.process(TABLE.slice(0, 200)).main)
            again = spec.open(schema=TABLE.schema)
            again.restore([stream.snapshot()])
            parts.append(again.process(TABLE.slice(200, 180)).main)
            parts += [again.push(row).main for row in TABLE.slice(380).to_pylist()]
            parts.append(again.advance_watermark(fw.MAX_TIMESTAMP).main)
            assert _rows(pa.concat_tables(parts)) == wanted

    _together(work)


@pytest.mark.parametrize("name", ["tumbling", "python", "rows"])
def test_one_stream_in_several_threads(name: str) -> None:
    """Each batch is taken whole, or refused; numbers may be read meanwhile."""
    spec = SPECS[name]
    wanted = _rows(spec.run(TABLE).main)
    for _ in range(ROUNDS):
        stream, refused = spec.open(), []

        def work(number: int, stream: fw.Stream = stream, refused: list[str] = refused) -> None:
            end = time.monotonic() + 120
            for start in range(100 * number, 100 * number + 100, 10):
                while True:
                    try:
                        stream.process(TABLE.slice(start, 10))
                        break
                    except fw.StateError as problem:
                        refused.append(str(problem))
                        assert time.monotonic() < end, refused[-1]
                        time.sleep(0)
                assert 0 <= stream.metrics.events <= len(TABLE)

        _together(work)
        assert stream.metrics.events == len(TABLE)
        assert all("another thread is inside process()" in text for text in refused)
        fired = stream.advance_watermark(fw.MAX_TIMESTAMP).main
        if name != "tumbling":  # of equal times, the last one depends on the order
            assert _rows(fired) == wanted
        assert fired.num_rows == len(wanted)


def test_rows_in_several_threads() -> None:
    """Rows that user code keeps are read by all threads while their batch goes."""
    kept: list[fw.Row] = []

    class Keep(fw.ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Any) -> Iterator[tuple[int]]:
            kept.extend(elements)
            yield (len(elements),)

    spec = TUMBLING.process(Keep(), output="n bigint")
    wanted = sorted(zip(TABLE["k"].to_pylist(), TABLE["name"].to_pylist(), strict=True))
    for _ in range(ROUNDS):
        kept.clear()
        spec.run(TABLE)

        def work(number: int) -> None:
            assert sorted((row.k, row["name"]) for row in kept) == wanted
            assert all(row.v == row[2] and hash(tuple(row)) for row in kept)

        _together(work)
