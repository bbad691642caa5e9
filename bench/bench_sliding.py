"""Sliding windows: what an event costs in ``process``, and a fired (key, window) in ``advance_watermark``.

Windows slide by 3 minutes: 24 hours are 480 slices, one hour is 20.
"""

import fastwin as fw
from bench import peers
from bench.events import EPOCH_MS, events
from bench.race import Bar, Contender, Entry, Works
from bench.scale import Scale, amount

WORKS = Works()
SLIDE = 180_000
MANY, FEW = 480, 20


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
            setup=lambda: (plan.open(),),
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
    """27 hours of events; timed: the watermark goes on by one hour, in which 20 windows of all keys fire."""
    hour = 20 * SLIDE
    keys = scale.keys // 100
    table = events(scale.items, keys, span_ms=27 * hour)
    first = EPOCH_MS - EPOCH_MS % hour + 25 * hour
    ends = list(range(first + SLIDE, first + hour + 1, SLIDE))
    answer = peers.canonical(peers.WINDOW_COLUMNS)

    def contender(slices: int) -> Contender:
        # The state before the timed step is built once, and put back for every attempt.
        plan = fw.plan(_spec(slices), table.schema)
        stream = plan.open()
        stream.process(table)
        stream.advance_watermark(first - 1)
        saved, rows = stream.snapshot(), stream.metrics.state_rows
        del stream

        def restored() -> tuple[fw.Stream]:
            again = plan.open()
            again.restore([saved])
            return (again,)

        return Contender(
            lambda again: again.advance_watermark(ends[-1] - 1).main,
            setup=restored,
            answer=answer if slices == MANY else None,
            notes=lambda result: {"fired": result.num_rows, "state rows": rows, "snapshot bytes": len(saved)},
        )

    contenders = {"fastwin": contender(MANY), "20 slices": contender(FEW)} | peers.sliding(table, MANY * SLIDE, ends)
    fired = len(ends) * keys        # a key has some 40 events an hour, so none is missing
    return Entry(f"sliding 24 h / 3 min (480 slices), {amount(fired)} rows fired", fired, contenders)


@WORKS.parametrize
def test_sliding(race, work, contender):
    race(work, contender)
