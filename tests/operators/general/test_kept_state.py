"""A state object is good for the call that it was handed out in; used later, it raises and writes nowhere."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

COUNT = fw.ValueStateDescriptor("count", 0)
KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "value": (fw.ValueStateDescriptor("x"), lambda state: state.update(1)),
    "value, read": (fw.ValueStateDescriptor("x"), lambda state: state.value()),
    "list": (fw.ListStateDescriptor("x"), lambda state: state.add(1)),
    "list, read": (fw.ListStateDescriptor("x"), lambda state: state.get()),
    "map": (fw.MapStateDescriptor("x"), lambda state: state.put(1, 1)),
    "map, read": (fw.MapStateDescriptor("x"), lambda state: state.contains(1)),
    "reducing": (fw.ReducingStateDescriptor("x", max), lambda state: state.add(1)),
    "reducing, read": (fw.ReducingStateDescriptor("x", max), lambda state: state.get()),
    "cleared": (fw.ValueStateDescriptor("x"), lambda state: state.clear()),
}
BASE = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))


class Keeping(fw.Trigger):
    """Keeps what it was handed at the first element, and uses that at the second one."""

    def __init__(self, descriptor: Any, use: Callable[[Any], Any], ask_again: bool) -> None:
        self.descriptor, self.use, self.ask_again = descriptor, use, ask_again
        self.kept: list[Any] = []

    def on_element(self, element, timestamp, window, ctx):
        if not self.kept:
            self.kept.append(ctx.get_partitioned_state(self.descriptor))
            self.use(self.kept[0])
            return fw.TriggerResult.CONTINUE
        if self.ask_again:
            self.use(ctx.get_partitioned_state(self.descriptor))
        self.use(self.kept[0])
        return fw.TriggerResult.CONTINUE


@pytest.mark.parametrize("ask_again", [False, True])
@pytest.mark.parametrize("case", KINDS)
def test_state_of_a_trigger_is_good_for_its_call(case: str, ask_again: bool) -> None:
    trigger = Keeping(*KINDS[case], ask_again)
    harness = WindowHarness(BASE.trigger(trigger).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": 1})
    with pytest.raises(fw.StateError, match="state 'x': the call that it was handed out in is over"):
        trigger.use(trigger.kept[0])
    with pytest.raises(fw.UserFunctionError, match="StateError: state 'x': the call that it was handed out in") as told:
        harness.push({"k": "b", "ts": 1})
    assert isinstance(told.value.__cause__, fw.StateError)


class KeepingCtx(fw.Trigger):
    kept: Any = None

    def on_element(self, element, timestamp, window, ctx):
        self.kept = ctx
        return fw.TriggerResult.CONTINUE


@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.register_event_time_timer(5),
        lambda ctx: ctx.delete_event_time_timer(9),
        lambda ctx: ctx.register_processing_time_timer(5),
        lambda ctx: ctx.delete_processing_time_timer(5),
        lambda ctx: ctx.get_partitioned_state(COUNT),
        lambda ctx: ctx.merge_partitioned_state(COUNT),
    ],
)
def test_a_ctx_means_nothing_between_calls(use: Callable[[Any], Any]) -> None:
    trigger = KeepingCtx()
    harness = WindowHarness(BASE.trigger(trigger).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": 1})
    before = harness.pending_timers()
    with pytest.raises(fw.StateError, match="ctx: the call that it was handed to is over"):
        use(trigger.kept)
    assert harness.pending_timers() == before
    assert trigger.kept.get_current_processing_time() == 0


class Nested(fw.Trigger):
    """Hands its ctx on to a built-in trigger."""

    def __init__(self, inner: Any) -> None:
        self.asked = fw.all_of(inner, fw.CountTrigger.of(9))

    def on_element(self, element, timestamp, window, ctx):
        return self.asked.on_element(element, timestamp, window, ctx)


class UsingFirst(fw.Trigger):
    """Uses the ctx of its first call in its second one."""

    def __init__(self, use: Callable[[Any], Any]) -> None:
        self.use, self.kept = use, []

    def on_element(self, element, timestamp, window, ctx):
        self.kept.append(ctx)
        if len(self.kept) == 2:
            self.use(self.kept[0])
        return fw.TriggerResult.CONTINUE


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.register_event_time_timer(5),
        lambda ctx: ctx.delete_event_time_timer(9),
        lambda ctx: ctx.register_processing_time_timer(5),
        lambda ctx: ctx.get_partitioned_state(COUNT).update(1),
    ],
)
def test_a_kept_ctx_is_not_that_of_another_key(use: Callable[[Any], Any], nested: bool) -> None:
    trigger: Any = UsingFirst(use)
    harness = WindowHarness(BASE.trigger(Nested(trigger) if nested else trigger).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": 1})
    with pytest.raises(fw.UserFunctionError, match="StateError: ctx: the call that it was handed to is over"):
        harness.push({"k": "b", "ts": 1})
    assert trigger.kept[0] is not trigger.kept[1]


@pytest.mark.parametrize("keeps", [False, True])
def test_a_ctx_that_is_kept_leaves_the_state_of_later_calls_alone(keeps: bool) -> None:
    trigger = UsingFirst(lambda ctx: None)
    counts = []

    def count(element, timestamp, window, ctx):
        trigger.kept.append(ctx)
        _count(ctx.get_partitioned_state(COUNT))
        counts.append((element.k, ctx.get_partitioned_state(COUNT).value()))
        return fw.TriggerResult.CONTINUE

    trigger.on_element = count  # type: ignore[method-assign]
    harness = WindowHarness(BASE.trigger(trigger).aggregate(n=fw.Count()))
    for key in "abab":
        harness.push({"k": key, "ts": 1})
        if not keeps:
            trigger.kept.clear()
    assert counts == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


class Process(fw.ProcessWindowFunction):
    """Keeps a part of its context at the first call, and uses it at later ones."""

    def __init__(self, keep: Callable[[Any], Any], use: Callable[[Any], Any]) -> None:
        self.keep, self.use = keep, use
        self.kept: Any = None

    def process(self, key, context, elements):
        self.keep(context)  # asks anew in each call
        if self.kept is None:
            self.kept = self.keep(context)
        self.use(self.kept)
        yield (len(list(elements)),)


def _count(state: Any) -> None:
    state.update(state.value() + 1)


@pytest.mark.parametrize(
    ("keep", "use", "says"),
    [
        (lambda c: c.window_state().get_state(COUNT), _count, "state 'count': the call that it was handed out in"),
        (lambda c: c.global_state().get_state(COUNT), _count, "state 'count': the call that it was handed out in"),
        (lambda c: c.window_state(), lambda s: _count(s.get_state(COUNT)), "state: the call that its context"),
        (lambda c: c.global_state(), lambda s: _count(s.get_state(COUNT)), "state: the call that its context"),
    ],
)
def test_state_of_a_function_is_good_for_its_call(keep: Any, use: Any, says: str) -> None:
    function = Process(keep, use)
    harness = WindowHarness(BASE.process(function, output="n bigint"))
    for key in "ab":
        harness.push({"k": key, "ts": 1})
    harness.push({"k": "a", "ts": 11})
    with pytest.raises(fw.UserFunctionError, match=f"key 'b'.*StateError: {re.escape(says)}"):
        harness.advance_watermark(9)
    with pytest.raises(fw.StateError, match=re.escape(says)):
        use(function.kept)
    assert all("count" not in str(held) or window.end == 10 for (_, window), held in harness.states().items())


def test_a_context_means_nothing_after_its_call() -> None:
    function = Process(lambda context: context, lambda context: context.output("t", (1,)))
    harness = WindowHarness(BASE.side_output("t", "n bigint").process(function, output="n bigint"))
    harness.push({"k": "a", "ts": 1})
    harness.advance_watermark(9)
    assert harness.side["t"] == [{"n": 1}]
    for use in (function.use, lambda context: context.window_state(), lambda context: context.global_state()):
        with pytest.raises(fw.StateError, match="context: the call that it was handed to is over"):
            use(function.kept)


@pytest.mark.parametrize(
    "use",
    [
        lambda context: context.output("t", (1,)),
        lambda context: context.window_state(),
        lambda context: context.global_state(),
    ],
)
def test_a_kept_context_is_not_that_of_another_key(use: Callable[[Any], Any]) -> None:
    function = Process(lambda context: context, use)
    harness = WindowHarness(BASE.side_output("t", "n bigint").process(function, output="n bigint"))
    for key in "ab":
        harness.push({"k": key, "ts": 1})
    with pytest.raises(fw.UserFunctionError, match=r"key 'b'.*StateError: context: the call that it was handed to is"):
        harness.advance_watermark(9)
    assert function.kept.window == (0, 10)


class Clearing(fw.ProcessWindowFunction):
    """Keeps the context of ``process``, and uses it in ``clear``."""

    def process(self, key, context, elements):
        self.kept = context
        return [(1,)]

    def clear(self, context):
        self.kept.output("t", (1,))


def test_a_context_means_nothing_in_clear() -> None:
    harness = WindowHarness(BASE.side_output("t", "n bigint").process(Clearing(), output="n bigint"))
    harness.push({"k": "a", "ts": 1})
    with pytest.raises(fw.UserFunctionError, match=r"Clearing.clear: .*StateError: context: the call that it was"):
        harness.advance_watermark(9)


def test_state_that_is_asked_for_in_each_call_goes_on() -> None:
    function = Process(lambda context: None, lambda kept: None)
    function.keep = lambda context: _count(context.global_state().get_state(COUNT))  # type: ignore[method-assign]
    harness = WindowHarness(BASE.process(function, output="n bigint"))
    for end in (10, 20, 30):
        harness.push({"k": "a", "ts": end - 5})
        harness.advance_watermark(end)
    assert harness._operator.state.keys[0] == {"count": 6}
