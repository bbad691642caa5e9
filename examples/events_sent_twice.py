"""Events that a device sends again when nothing answers: each is handed out once, at once."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import fastwin as fw

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SPEC = fw.key_by("device", "number").event_time("ts").deduplicate(within="10 minutes")


def events(*rows):
    devices, numbers, seconds, values = zip(*rows, strict=True)
    times = [NOON + timedelta(seconds=second) for second in seconds]
    return pa.table({"device": devices, "number": numbers, "ts": times, "value": values})


BATCHES = [
    events(("a", 1, 0, 20.5), ("a", 2, 1, 20.7), ("a", 1, 3, 20.5)),
    events(("b", 1, 4, 18.0), ("a", 2, 8, 20.7), ("a", 1, 900, 30.0)),  # numbers begin anew after some time
]
WATERMARK = "1 minute"

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
