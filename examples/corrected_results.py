"""Early results that later ones take the place of: a changelog, and `newest`, which keeps a table by it."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SPEC = (
    fw.key_by("shop")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 hour"))
    .trigger(fw.after_watermark(early=fw.CountTrigger.of(2), late=fw.CountTrigger.of(1)))
    .allowed_lateness("1 hour")
    .with_changelog()
    .aggregate(sales=fw.Count(), amount=fw.Sum("amount"))
)


def sales(*rows):
    shops, minutes, amounts = zip(*rows, strict=True)
    return pa.table({"shop": shops, "ts": [NOON + timedelta(minutes=at) for at in minutes], "amount": amounts})


BATCHES = [
    sales(("north", 5, 20), ("north", 20, 10), ("south", 30, 4)),
    sales(("north", 40, 30), ("south", 70, 1)),
]
WATERMARK = "0 seconds"


def newest(changes):
    """The table that changes make: by key and window, the newest result."""
    table = {}
    for row in changes.to_pylist():
        place = row["shop"], row["window_start"], row["window_end"]
        if row["change"] == "delete":
            del table[place]
        else:
            table[place] = row["sales"], row["amount"]
    return table


if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
