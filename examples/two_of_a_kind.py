"""A window that fires when two elements of the same type come within five seconds, such as two alarms of a machine."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
FIVE_SECONDS = 5_000


class TwoOfAKind(fw.Trigger):
    last_of_type = fw.MapStateDescriptor("last-of-type")

    def on_element(self, element, timestamp, window, ctx):
        last_of_type = ctx.get_partitioned_state(self.last_of_type)
        last = last_of_type.get(element.type)
        if last is not None and abs(timestamp - last) <= FIVE_SECONDS:
            last_of_type.clear()
            return fw.TriggerResult.FIRE_AND_PURGE
        last_of_type.put(element.type, timestamp)
        return fw.TriggerResult.CONTINUE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.last_of_type).clear()


class Pair(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        newest = max(elements, key=lambda element: element.ts)
        yield newest.type, newest.ts


SPEC = (
    fw.key_by("machine")
    .event_time("ts")
    .window(fw.GlobalWindows.create())
    .trigger(TwoOfAKind())
    .process(Pair(), output="type string, at timestamp")
)


def alarms(*rows):
    machines, seconds, types = zip(*rows, strict=True)
    times = [NOON + timedelta(seconds=second) for second in seconds]
    return pa.table({"machine": machines, "ts": times, "type": types})


BATCHES = [
    alarms(("m1", 0, "heat"), ("m1", 3, "noise"), ("m2", 1, "heat")),
    alarms(("m1", 5, "heat"), ("m2", 9, "heat")),
    alarms(("m2", 13, "heat"), ("m1", 8, "noise")),
]
WATERMARK = "10 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
