"""The 99th percentile and the median of response times, minute by minute, with a row for minutes without requests."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SPEC = (
    fw.key_by("service")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 minute"), fill="empty")
    .aggregate(
        requests=fw.Count(),
        failed=fw.Count(where="failed"),
        p99=fw.Quantile("ms", 0.99),
        median=fw.Median("ms"),  # shares the sketch of the other one
    )
)


def requests(service, minute, *ms):
    """Requests at some seconds of a minute. Those above 900 ms have failed."""
    times = [NOON + timedelta(minutes=minute, seconds=second) for second in range(len(ms))]
    return pa.table({"service": [service] * len(ms), "ts": times, "ms": ms, "failed": [one > 900 for one in ms]})


BATCHES = [
    requests("cart", 0, *range(10, 60)),
    requests("search", 0, 120, 80, 1000),
    requests("cart", 3, 20, 30, 940),  # nothing for two minutes
]
WATERMARK = "10 seconds"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
