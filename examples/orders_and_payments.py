"""Two streams joined by key and window: orders, each with the payment of the same minute, if there is one."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ORDERS = fw.key_by("order").event_time("ts")
PAYMENTS = fw.key_by("for_order").event_time("paid_at")
SPEC = fw.window_join(ORDERS, PAYMENTS, fw.TumblingEventTimeWindows.of("1 minute"), how="left")


def moments(*seconds):
    return [NOON + timedelta(seconds=second) for second in seconds]


BATCHES = [
    (
        pa.table({"order": [1, 2], "ts": moments(5, 30), "amount": [20, 35]}),
        pa.table({"for_order": [1], "paid_at": moments(12), "by": ["card"]}),
    ),
    (
        pa.table({"order": [3], "ts": moments(80), "amount": [10]}),
        pa.table({"for_order": [2, 3], "paid_at": moments(70, 85), "by": ["cash", "card"]}),  # the first: next minute
    ),
]
WATERMARK = ("10 seconds", "10 seconds")

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
