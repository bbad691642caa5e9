"""Sliding windows: what an event costs in ``process``, and a fired (key, window) in ``advance_watermark``.

Windows slide by 3 minutes: 24 hours are 480 slices, one hour is 20.
"""

import itertools
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench import peers
from bench.events import EPOCH_MS, events
from bench.race import Bar, Contender, Entry, Unavailable, Works
from bench.scale import Scale
from fastwin.run.stream import open_plan

WORKS = Works()
SLIDE = 180_000
MANY, FEW = 480, 20
LAST = 20
"""Of the windows, how many polars is asked for."""


def _spec(slices: int) -> fw.WindowSpec:
    assigner = fw.SlidingEventTimeWindows.of(slices * SLIDE, SLIDE)
    return _aggregated(fw.key_by("key").event_time("ts").window(assigner))


def _aggregated(windowed: fw.WindowSpec) -> fw.WindowSpec:
    return windowed.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))


@WORKS.add("sliding-process", "event", ("20 slices", "tumbling 3 min"), Bar.at_most(1.5, "tumbling 3 min"))
def process(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys, span_ms=9 * SLIDE)
    tumbling = _aggregated(fw.key_by("key").event_time("ts").window(fw.TumblingEventTimeWindows.of(SLIDE)))

    def contender(spec: fw.WindowSpec) -> Contender:
        plan = fw.plan(spec, table.schema)

        def run(stream: fw.Stream) -> fw.Stream:
            stream.process(table)
            return stream

        return Contender(
            run,
            setup=lambda: (open_plan(plan),),
            answer=lambda stream: stream.metrics.state_rows,
            notes=lambda stream: {
                "state rows": stream.metrics.state_rows,
                "state bytes": stream.metrics.state_bytes,
                "snapshot bytes": len(stream.snapshot()),
            },
        )

    contenders = {
        "fastwin": contender(_spec(MANY)),
        "20 slices": contender(_spec(FEW)),
        "tumbling 3 min": contender(tumbling),
    }
    return Entry("sliding 24 h / 3 min (480 slices), process", len(table), contenders)


@WORKS.add("sliding-advance", "fired row", ("20 slices", "polars, anew"), Bar.at_most(1.3, "20 slices"))
def advance(scale: Scale) -> Entry:
    """A stream in its steady state: after a day, the watermark goes on for another day in steps of 3 minutes.

    Timed are its steps alone, each of which fires one window of all keys; what windows hold ready is built up and
    turned over in them. Beside it, polars computes the last 20 of the windows from their events; these are compared.
    Windows of 20 slices are others.
    """
    keys = scale.keys // 100
    table = events(20 * 2 * MANY * keys // 10, keys, span_ms=2 * MANY * SLIDE, first_ms=EPOCH_MS - EPOCH_MS % SLIDE)
    first = EPOCH_MS - EPOCH_MS % SLIDE
    times = table["ts"].cast("int64").to_numpy()
    cuts = np.searchsorted(times, first + SLIDE * np.arange(2 * MANY + 1)).tolist()
    batches = [table.slice(start, end - start) for start, end in itertools.pairwise(cuts)]
    last = [first + SLIDE * step for step in range(2 * MANY - LAST + 1, 2 * MANY + 1)]

    def contender(slices: int) -> Contender:
        spec = _spec(slices)

        def run() -> tuple[float, tuple]:
            stream, seconds, fired = spec.open(), 0.0, []
            for step, batch in enumerate(batches, 1):
                stream.process(batch)
                start = time.perf_counter()
                main = stream.advance_watermark(first + step * SLIDE - 1).main
                if step > MANY:
                    seconds += time.perf_counter() - start
                    fired.append(main)
            return seconds, (fired, stream)

        answer = _last if slices == MANY else None
        return Contender(run, answer=answer, clocked=True, notes=_notes, units=_fired_rows(batches, slices))

    contenders = {"fastwin": contender(MANY), "20 slices": contender(FEW)}
    for name, peer in peers.sliding(table, MANY * SLIDE, last).items():
        contenders[name] = peer if isinstance(peer, Unavailable) else replace(peer, units=LAST * keys)
    return Entry("sliding 24 h / 3 min (480 slices), a day of advance_watermark", MANY * keys, contenders)


def _fired_rows(batches: list[pa.Table], slices: int) -> int:
    """How many rows the counted steps fire: the keys in each window."""
    found, live = 0, Counter()
    keys = [set(batch["key"].to_pylist()) for batch in batches]
    for step in range(len(keys)):
        live.update(keys[step])
        if step >= slices:
            live -= Counter(keys[step - slices])
        found += len(live) if step >= MANY else 0
    return found


def _last(result: tuple) -> pa.Table:
    """The windows that polars is asked for."""
    fired, _ = result
    return peers.canonical(peers.WINDOW_COLUMNS)(pa.concat_tables(fired[-LAST:]))


def _notes(result: tuple) -> dict:
    fired, stream = result
    return {
        "fired": sum(main.num_rows for main in fired),
        "state rows": stream.metrics.state_rows,
        "state bytes": stream.metrics.state_bytes,
        "snapshot bytes": len(stream.snapshot()),
    }


@WORKS.parametrize
def test_sliding(race, work, contender):
    race(work, contender)
