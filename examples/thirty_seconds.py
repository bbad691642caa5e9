"""An assigner of your own: windows of thirty seconds."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class ThirtySeconds(fw.WindowAssigner):
    size_ms = 30_000

    def assign_windows(self, element, timestamp, context):
        start = timestamp - timestamp % self.size_ms
        return [fw.TimeWindow(start, start + self.size_ms)]


SPEC = (
    fw.key_by("sensor")
    .event_time("ts")
    .window(ThirtySeconds())
    .aggregate(n=fw.Count(), highest=fw.Max("celsius"))
)  # fmt: skip


def readings(*rows):
    sensors, seconds, celsius = zip(*rows, strict=True)
    times = [NOON + timedelta(seconds=second) for second in seconds]
    return pa.table({"sensor": sensors, "ts": times, "celsius": celsius})


BATCHES = [
    readings(("a", 1, 20.5), ("a", 29, 21.0), ("b", 12, 18.0)),
    readings(("a", 31, 22.5), ("b", 59, 17.0), ("b", 60, 16.5)),
    readings(("a", 95, 23.0)),
]
WATERMARK = "5 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
