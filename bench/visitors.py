"""What pane stores are asked for: views and visitors of each module in the last 24 hours, anew every three minutes."""

import fastwin as fw

__all__ = ["DAY", "PANE", "SPEC"]

DAY, PANE = 86_400_000, 180_000
"""A window, and how far it slides, ms."""

SPEC = (
    fw.key_by("module")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of(DAY, PANE))
    .aggregate(pv=fw.Count(), uv=fw.HyperLogLog("user"))
)
