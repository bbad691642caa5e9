"""The questions as specifications of fastwin, for this process and for Spark."""

from __future__ import annotations

import fastwin as fw
from bench.engines.queries import Query

__all__ = ["SCORE_BITS", "hottest", "sellers", "spec_of"]

SCORE_BITS = 32
"""q5 takes the largest of ``n * 2**32 - auction``: the most bids, and of as many the lowest auction."""


def spec_of(query: Query) -> fw.WindowSpec:
    """Returns the specification; of q5 the counts, of which ``hottest`` takes the largest."""
    tumbling = fw.TumblingEventTimeWindows.of(query.size_ms)
    if query.name == "tumbling":
        found = {"n": fw.Count(), "s": fw.Sum("price"), "lo": fw.Min("price"), "hi": fw.Max("price")}
        return fw.key_by("bidder").event_time("ts").window(tumbling).aggregate(**found)
    if query.name == "q12":
        return fw.key_by("bidder").event_time("ts").window(tumbling).aggregate(n=fw.Count())
    if query.name == "yahoo":
        return fw.key_by("campaign").event_time("ts").window(tumbling).aggregate(n=fw.Count())
    if query.name == "q11":
        sessions = fw.EventTimeSessionWindows.with_gap(query.size_ms)
        return fw.key_by("bidder").event_time("ts").window(sessions).aggregate(n=fw.Count())
    if query.name == "q5":
        sliding = fw.SlidingEventTimeWindows.of(query.size_ms, query.slide_ms)
        return fw.key_by("auction").event_time("ts").window(sliding).aggregate(n=fw.Count())
    highest = {"hi": fw.Max("price"), "auction": fw.ArgMax("auction", "price"), "bidder": fw.ArgMax("bidder", "price")}
    return fw.key_by().event_time("ts").window(tumbling).aggregate(**highest)


def sellers(query: Query) -> fw.JoinSpec:
    """Returns q8: registrations on the left, and auctions opened by the same bidder on the right."""
    input_ = fw.key_by("bidder").event_time("ts")
    return fw.window_join(input_, input_, fw.TumblingEventTimeWindows.of(query.size_ms))


def hottest(query: Query) -> fw.WindowSpec:
    """Returns what follows the counts of q5: the largest ``score`` of each window, by its last millisecond."""
    slide = fw.TumblingEventTimeWindows.of(query.slide_ms)
    return fw.key_by().event_time("window_time").window(slide).aggregate(score=fw.Max("score"))
