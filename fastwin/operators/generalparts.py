"""From assigners and triggers as users write them to the nodes that the general operator runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastwin import assigners, combinators, sessionwindows, triggers
from fastwin.errors import SpecError
from fastwin.operators import assigning, combinatornodes, triggernodes
from fastwin.operators.base import Batch
from fastwin.operators.keeper import Keeper
from fastwin.operators.usercode import UserTriggerNode
from fastwin.windows import TimeWindow

__all__ = [
    "ask_merges",
    "assigner_node",
    "coalesced_order",
    "name_states",
    "reads_rows",
    "trigger_node",
    "waits_for_clock",
]

_MOST_TRIGGERS = 31


def trigger_node(trigger: triggers.Trigger) -> triggernodes.TriggerNode:
    """Returns the node of a trigger. Only built-in classes themselves have one at C level, not their subclasses."""
    make = _TRIGGERS.get(type(trigger), UserTriggerNode)
    return make(trigger)


def _several(node: Any) -> Any:
    def make(trigger: Any) -> Any:
        if len(trigger.triggers) > _MOST_TRIGGERS:
            raise SpecError(f"trigger: at most {_MOST_TRIGGERS} can be combined, got {len(trigger.triggers)}")
        return node([trigger_node(inner) for inner in trigger.triggers])

    return make


def _after_watermark(trigger: combinators.AfterWatermark) -> triggernodes.TriggerNode:
    early = trigger_node(trigger.early or triggers.NeverTrigger())
    late = trigger_node(trigger.late) if trigger.late is not None else triggernodes.EveryNode()
    return combinatornodes.AfterWatermarkNode([early, late])


def _timeout(trigger: combinators.ProcessingTimeoutTrigger) -> triggernodes.TriggerNode:
    return combinatornodes.TimeoutNode(
        [trigger_node(trigger.trigger)],
        trigger.timeout_ms,
        trigger.reset_timer_on_new_record,
        trigger.should_clear_on_timeout,
    )


_TRIGGERS: dict[type, Any] = {
    triggers.EventTimeTrigger: lambda trigger: triggernodes.EventTimeNode(),
    triggers.ProcessingTimeTrigger: lambda trigger: triggernodes.ProcessingTimeNode(),
    triggers.NeverTrigger: lambda trigger: triggernodes.NeverNode(),
    triggers.CountTrigger: lambda trigger: triggernodes.CountNode(trigger.n),
    triggers.ContinuousEventTimeTrigger: lambda trigger: triggernodes.ContinuousNode(trigger.interval_ms, True),
    triggers.ContinuousProcessingTimeTrigger: lambda trigger: triggernodes.ContinuousNode(trigger.interval_ms, False),
    combinators.PurgingTrigger: lambda trigger: combinatornodes.PurgingNode([trigger_node(trigger.trigger)]),
    combinators.ProcessingTimeoutTrigger: _timeout,
    combinators.AnyOf: _several(combinatornodes.AnyOfNode),
    combinators.AllOf: _several(combinatornodes.AllOfNode),
    combinators.AfterWatermark: _after_watermark,
}


def reads_rows(assigner: Any, trigger: triggers.Trigger) -> bool:
    """Tells whether an assigner or a trigger is handed elements: those without a node at C level are."""

    def asks(node: Any) -> bool:
        return isinstance(node, UserTriggerNode) or any(asks(inner) for inner in getattr(node, "inner", ()))

    return type(assigner) not in _ASSIGNERS or asks(trigger_node(trigger))


def check_assigner(assigner: Any) -> None:
    """Raises SpecError for an assigner whose elements have too many windows, before there are any."""
    windows = 0
    match assigner:
        case assigners.SlidingEventTimeWindows() | assigners.SlidingProcessingTimeWindows():
            windows = -(-assigner.size_ms // assigner.slide_ms)
        case assigners.CumulativeEventTimeWindows():
            windows = assigner.max_size_ms // assigner.step_ms
    if windows > assigning.MAX_WINDOWS and type(assigner) in _ASSIGNERS:
        raise assigning.too_many(assigner, windows)


def waits_for_clock(assigner: Any, trigger: triggers.Trigger) -> bool:
    """Tells whether windows or triggers may wait for the processing time, and so have to be told it at all times."""
    passes_with_clock = not assigner.is_event_time() and type(assigner) is not assigners.GlobalWindows
    return passes_with_clock or _trigger_waits(trigger)


def _trigger_waits(trigger: triggers.Trigger) -> bool:
    kind = type(trigger)
    match trigger:
        case combinators.AnyOf() | combinators.AllOf() if kind in _TRIGGERS:
            return any(map(_trigger_waits, trigger.triggers))
        case combinators.AfterWatermark() if kind in _TRIGGERS:
            return any(_trigger_waits(inner) for inner in (trigger.early, trigger.late) if inner is not None)
        case combinators.PurgingTrigger() if kind in _TRIGGERS:
            return _trigger_waits(trigger.trigger)
    return kind.on_processing_time is not triggers.Trigger.on_processing_time and not _continues(kind)


def _continues(kind: type[triggers.Trigger]) -> bool:
    """Whether a trigger's ``on_processing_time`` only answers CONTINUE, as those ported from Flink often do."""
    code = getattr(kind.on_processing_time, "__code__", None)
    return code is not None and "CONTINUE" in code.co_names and set(code.co_names) <= _PLAIN_NAMES


_PLAIN_NAMES = {"CONTINUE", "TriggerResult", "fastwin", "fw"}


def name_states(node: triggernodes.TriggerNode) -> None:
    """Gives each user-written trigger in a tree a name space of its own for its state."""
    found: list[UserTriggerNode] = []

    def visit(node: Any) -> None:
        if isinstance(node, UserTriggerNode):
            found.append(node)
        for inner in getattr(node, "inner", ()):
            visit(inner)

    visit(node)
    for i, user in enumerate(found):
        user.name_states(f"trigger{i}:")


def _sliding(keeper: Keeper, assigner: Any) -> assigning.AssignerNode:
    return assigning.SlidingNode(keeper, assigner, assigner.size_ms, assigner.slide_ms, assigner.offset_ms)


def _tumbling(keeper: Keeper, assigner: Any) -> assigning.AssignerNode:
    return assigning.SlidingNode(keeper, assigner, assigner.size_ms, assigner.size_ms, assigner.offset_ms)


def _cumulative(keeper: Keeper, assigner: Any) -> assigning.AssignerNode:
    return assigning.CumulativeNode(keeper, assigner, assigner.max_size_ms, assigner.step_ms, assigner.offset_ms)


def _session(keeper: Keeper, assigner: Any) -> assigning.AssignerNode:
    return assigning.SessionNode(keeper, assigner, assigner.gap_ms)


_ASSIGNERS: dict[type, Any] = {
    assigners.TumblingEventTimeWindows: _tumbling,
    assigners.TumblingProcessingTimeWindows: _tumbling,
    assigners.SlidingEventTimeWindows: _sliding,
    assigners.SlidingProcessingTimeWindows: _sliding,
    assigners.CumulativeEventTimeWindows: _cumulative,
    assigners.CumulativeProcessingTimeWindows: _cumulative,
    sessionwindows.EventTimeSessionWindows: _session,
    sessionwindows.ProcessingTimeSessionWindows: _session,
    assigners.GlobalWindows: assigning.GlobalNode,
}


def assigner_node(keeper: Keeper, assigner: assigners.WindowAssigner) -> assigning.AssignerNode:
    """Returns the node of an assigner. Subclasses of built-in ones are asked in Python."""
    return _ASSIGNERS.get(type(assigner), assigning.UserNode)(keeper, assigner)


def coalesced_order(batch: Batch, keeper: Keeper) -> np.ndarray | None:
    """Returns the order of elements that accepts most: those after the watermark, then from the latest back.

    None: as they came.
    """
    passed = batch.times <= keeper.watermark
    if not keeper.event_time or not passed.any():
        return None
    behind = np.flatnonzero(passed)
    return np.concatenate([np.flatnonzero(~passed), behind[np.argsort(-batch.times[behind], kind="stable")]])


def ask_merges(
    keeper: Keeper, assigner: Any, there: list[TimeWindow], new: TimeWindow, where: str
) -> list[tuple[list[TimeWindow], TimeWindow]]:
    """Returns what a user-written ``merge_windows`` merges: windows, each once, and what they become."""
    found: list[tuple[list[TimeWindow], TimeWindow]] = []

    def callback(merged: Any, result: TimeWindow) -> None:
        merged = list(dict.fromkeys(merged))
        unknown = [window for window in merged if window != new and window not in there]
        if unknown:
            raise SpecError(f"callback: {unknown[0]} is none of the windows to merge")
        if not isinstance(result, TimeWindow) or result.end <= result.start:
            raise SpecError(f"callback: the merged window must be a TimeWindow with end above start, got {result!r}")
        found.append((merged, result))

    try:
        assigner.merge_windows([*there, new], callback)
    except Exception as problem:
        name = f"{type(assigner.assigner).__qualname__}.merge_windows"
        raise keeper.blame_words(name, where, problem) from problem
    return found
