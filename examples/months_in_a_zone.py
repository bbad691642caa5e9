"""Months as the clock of Berlin has them."""

from datetime import UTC, datetime

import pyarrow as pa

import fastwin as fw

BERLIN = fw.CalendarEventTimeWindows.of("1 month", time_zone="Europe/Berlin")
SPEC = fw.key_by("shop").event_time("ts").window(BERLIN).aggregate(sales=fw.Count(), amount=fw.Sum("amount"))


def sales(*rows):
    shops, times, amounts = zip(*rows, strict=True)
    moments = [datetime.fromisoformat(time).replace(tzinfo=UTC) for time in times]
    return pa.table({"shop": shops, "ts": moments, "amount": amounts})


BATCHES = [
    sales(("north", "2024-03-02 09:00", 20), ("north", "2024-03-31 21:59", 5)),
    sales(("north", "2024-03-31 22:00", 7), ("south", "2024-04-30 12:00", 9)),  # 22:00 UTC: April has begun in Berlin
    sales(("north", "2024-05-01 10:00", 1)),
]
WATERMARK = "1 hour"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
