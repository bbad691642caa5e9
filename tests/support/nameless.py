"""A spec with a lambda, whose state was stored before the code of lambdas was part of it."""

import fastwin as fw

SPEC = (
    fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_dynamic_gap(lambda e: e.v)).aggregate(s=fw.Sum("v"))
)  # fmt: skip
