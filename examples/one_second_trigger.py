"""Early results every second of event time, and the final one at the window's end, which is purged then."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class OneSecondInterval(fw.Trigger):
    first_seen = fw.ValueStateDescriptor("first-seen")

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.first_seen)
        if not seen.value():
            now = max(ctx.get_current_watermark(), timestamp)
            ctx.register_event_time_timer(now + 1000 - now % 1000)
            ctx.register_event_time_timer(window.end)
            seen.update(True)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        if time == window.end:
            return fw.TriggerResult.FIRE_AND_PURGE
        if time + 1000 < window.end:
            ctx.register_event_time_timer(time + 1000)
        return fw.TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.first_seen).clear()


SPEC = (
    fw.key_by("sensor")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("4 seconds"))
    .trigger(OneSecondInterval())
    .allowed_lateness("1 second")  # the trigger's last timer is a millisecond after the end of the window
    .aggregate(n=fw.Count())
)


def readings(*rows):
    sensors, seconds = zip(*rows, strict=True)
    return pa.table({"sensor": sensors, "ts": [NOON + timedelta(seconds=second) for second in seconds]})


BATCHES = [
    readings(("a", 0.2), ("a", 0.7)),
    readings(("a", 1.5)),
    readings(("a", 2.3), ("b", 2.5)),
    readings(("a", 3.1)),
    readings(("b", 12)),
]
WATERMARK = "0 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
