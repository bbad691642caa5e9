"""The two best sellers of each shop and hour, with all that is known of them."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SPEC = fw.key_by("shop").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).top(2, by="amount")


def sales(*rows):
    shops, minutes, sellers, amounts = zip(*rows, strict=True)
    times = [NOON + timedelta(minutes=at) for at in minutes]
    return pa.table({"shop": shops, "ts": times, "seller": sellers, "amount": amounts})


BATCHES = [
    sales(("north", 1, "ann", 20), ("north", 2, "bob", 50), ("south", 3, "cat", 35)),
    sales(("north", 50, "dan", 40), ("south", 70, "eve", 10)),
]
WATERMARK = "10 minutes"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
