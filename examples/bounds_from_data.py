"""Windows whose bounds come from the data: each bid belongs to the auction that it names, from opening to closing."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Auction(fw.WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [fw.TimeWindow(element.opens_ms, element.closes_ms)]


SPEC = (
    fw.key_by("auction")
    .event_time("ts")
    .window(Auction())
    .side_output_late_data()
    .aggregate(bids=fw.Count(), price=fw.Max("price"))
)  # fmt: skip

HOURS = {"lamp": (0, 60), "desk": (30, 45)}  # opening and closing, seconds after noon


def bids(*rows):
    auctions, seconds, prices = zip(*rows, strict=True)
    noon_ms = int(NOON.timestamp()) * 1000
    return pa.table(
        {
            "auction": auctions,
            "ts": [NOON + timedelta(seconds=second) for second in seconds],
            "price": prices,
            "opens_ms": [noon_ms + HOURS[auction][0] * 1000 for auction in auctions],
            "closes_ms": [noon_ms + HOURS[auction][1] * 1000 for auction in auctions],
        }
    )


BATCHES = [
    bids(("lamp", 10, 5), ("desk", 31, 50), ("lamp", 20, 7)),
    bids(("desk", 44, 80), ("lamp", 50, 9), ("lamp", 58, 8)),
    bids(("lamp", 59, 12), ("desk", 43, 90)),  # the desk is sold by then: 90 is too late
]
WATERMARK = "2 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
