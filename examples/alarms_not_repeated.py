"""Alarms that are not repeated for ten minutes: state of a key with a time to live."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Alarm(fw.ProcessWindowFunction):
    """Tells of a hot minute, unless it has told of the same boiler in the ten minutes before."""

    told = fw.ValueStateDescriptor("told", ttl="10 minutes")  # of event time, from the last write

    def process(self, key, context, elements):
        (result,) = elements  # the aggregates' one result
        told = context.global_state().get_state(self.told)
        if result.average > 80 and told.value() is None:
            told.update(True)
            yield (result.average,)


SPEC = (
    fw.key_by("boiler")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 minute"))
    .aggregate(average=fw.Mean("celsius"), then=Alarm(), output="average double")
)


def readings(*rows):
    boilers, minutes, celsius = zip(*rows, strict=True)
    times = [NOON + timedelta(minutes=minute) for minute in minutes]
    return pa.table({"boiler": boilers, "ts": times, "celsius": celsius})


BATCHES = [
    readings(("a", 0, 90.0), ("b", 1, 70.0), ("b", 2, 84.0), ("b", 2, 86.0)),
    readings(("a", 5, 95.0), ("b", 9, 99.0)),
    readings(("a", 11, 91.0), ("b", 12, 60.0)),
]
WATERMARK = "30 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
