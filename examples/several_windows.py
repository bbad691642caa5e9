"""A dashboard's minutes, five minutes and hours over one stream, from one state."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SPEC = (
    fw.key_by("page")
    .event_time("ts")
    .windows(
        minute=fw.TumblingEventTimeWindows.of("1 minute"),
        five=fw.SlidingEventTimeWindows.of("5 minutes", "1 minute"),
        hour=fw.TumblingEventTimeWindows.of("1 hour"),
    )
    .aggregate(views=fw.Count(), users=fw.CountDistinct("user"))
)


def views(*rows):
    pages, users, seconds = zip(*rows, strict=True)
    return pa.table({"page": pages, "user": users, "ts": [NOON + timedelta(seconds=second) for second in seconds]})


BATCHES = [
    views(("home", "ann", 5), ("home", "bob", 20)),
    views(("home", "ann", 70)),
]
WATERMARK = "10 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
