"""An aggregate combined with a ProcessWindowFunction: one accumulator as state, and a function that sees the window."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Compared(fw.ProcessWindowFunction):
    """Compares an average with that of the key's window before, which is kept in the key's own state."""

    before = fw.ValueStateDescriptor("before")

    def process(self, key, context, elements):
        (result,) = elements  # the aggregates' one result
        before = context.global_state().get_state(self.before)
        known = before.value()
        before.update(result.average)
        if known is not None and result.average > known + 10:
            context.output("jumps", (key, known, result.average))
        yield result.average, result.n, None if known is None else result.average - known


SPEC = (
    fw.key_by("sensor")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 minute"))
    .side_output("jumps", "sensor string, was double, now double")
    .aggregate(
        average=fw.Mean("celsius"),
        n=fw.Count(),
        then=Compared(),
        output="average double, n bigint, change double",
    )
)


def readings(*rows):
    sensors, seconds, celsius = zip(*rows, strict=True)
    times = [NOON + timedelta(seconds=second) for second in seconds]
    return pa.table({"sensor": sensors, "ts": times, "celsius": celsius})


BATCHES = [
    readings(("a", 1, 20.0), ("a", 59, 22.0), ("b", 30, 10.0)),
    readings(("a", 65, 40.0), ("b", 70, 11.0), ("b", 80, 12.0)),
    readings(("a", 130, 41.0), ("b", 190, 13.0)),
]
WATERMARK = "5 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
