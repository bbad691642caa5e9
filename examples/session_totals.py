"""Sessions with an aggregate of your own: its accumulators merge when an event joins two sessions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Visit:
    pages: frozenset[str] = frozenset()
    clicks: int = 0


class Summary(fw.AggregateFunction):
    def create_accumulator(self):
        return Visit()

    def add(self, value, accumulator):
        return Visit(accumulator.pages | {value.page}, accumulator.clicks + 1)

    def get_result(self, accumulator):
        return sorted(accumulator.pages), accumulator.clicks

    def merge(self, a, b):
        return Visit(a.pages | b.pages, a.clicks + b.clicks)


SPEC = (
    fw.key_by("user")
    .event_time("ts")
    .window(fw.EventTimeSessionWindows.with_gap("10 seconds"))
    .aggregate(Summary(), output="pages array<string>, clicks bigint")
)


def clicks(*rows):
    users, seconds, pages = zip(*rows, strict=True)
    return pa.table({"user": users, "ts": [NOON + timedelta(seconds=second) for second in seconds], "page": pages})


BATCHES = [
    clicks(("ann", 0, "home"), ("ann", 15, "shop"), ("bob", 3, "home")),
    clicks(("ann", 8, "news"), ("ann", 22, "shop")),  # the first one joins ann's two sessions
    clicks(("bob", 50, "shop"), ("ann", 70, "home")),
]
WATERMARK = "10 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
