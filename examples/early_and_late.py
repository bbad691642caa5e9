"""Early and late results: one at each second sale of an hour, one at its end, and one for each late sale."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

SPEC = (
    fw.key_by("shop")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 hour"))
    .trigger(fw.after_watermark(early=fw.CountTrigger.of(2), late=fw.CountTrigger.of(1)))
    .allowed_lateness("30 minutes")
    .side_output_late_data()
    .with_pane_info()
    .aggregate(sales=fw.Count(), total=fw.Sum("price"))
)


def sales(*rows):
    shops, minutes, prices = zip(*rows, strict=True)
    times = [NOON + timedelta(minutes=minute) for minute in minutes]
    return pa.table({"shop": shops, "ts": times, "price": prices})


BATCHES = [
    sales(("north", 5, 10), ("north", 20, 20), ("south", 30, 5), ("north", 40, 30)),
    sales(("north", 65, 7)),
    sales(("south", 55, 6), ("north", 70, 8)),  # south's is late: its window fires again
    sales(("north", 125, 9)),
    sales(("south", 50, 4)),  # too late: the window has gone
]
WATERMARK = "0 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
