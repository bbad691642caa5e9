"""Triggers as values: what they are called in fingerprints, what they equal, how they travel, and what derives from them."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from operator import sub
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.spec.describe import describe
from fastwin.triggers import AnyOf

# By trigger: in words, and as a fingerprint names it. State is taken back only by the same fingerprint.
TOLD: dict[str, tuple[fw.Trigger, str, str]] = {
    "event time": (fw.EventTimeTrigger(), "when the watermark passes the end", "EventTimeTrigger()"),
    "processing time": (
        fw.ProcessingTimeTrigger(),
        "when the processing time passes the end",
        "ProcessingTimeTrigger()",
    ),
    "never": (fw.NeverTrigger(), "never", "NeverTrigger()"),
    "count": (fw.CountTrigger.of(3), "every 3 elements", "CountTrigger(n=3)"),
    "continuous": (
        fw.ContinuousEventTimeTrigger.of("90 seconds"),
        "every 90 s of event time and at the end",
        "ContinuousEventTimeTrigger(interval_ms=90000)",
    ),
    "continuous by clock": (
        fw.ContinuousProcessingTimeTrigger.of(7),
        "every 7 ms of processing time",
        "ContinuousProcessingTimeTrigger(interval_ms=7)",
    ),
    "delta": (
        fw.DeltaTrigger.of(2.5, sub),
        "when an element differs by more than 2.5",
        "DeltaTrigger(threshold=2.5, delta=_operator.sub)",
    ),
    "purging": (
        fw.PurgingTrigger.of(fw.CountTrigger.of(2)),
        "every 2 elements, purging",
        "PurgingTrigger(trigger=CountTrigger(n=2))",
    ),
    "timeout": (
        fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(2), "1 minute"),
        "every 2 elements, or after 1 min of processing time",
        "ProcessingTimeoutTrigger(trigger=CountTrigger(n=2), timeout_ms=60000, reset_timer_on_new_record=False, "
        "should_clear_on_timeout=True)",
    ),
    "timeout, other options": (
        fw.ProcessingTimeoutTrigger.of(fw.EventTimeTrigger(), 5, True, should_clear_on_timeout=False),
        "when the watermark passes the end, or after 5 ms of processing time",
        "ProcessingTimeoutTrigger(trigger=EventTimeTrigger(), timeout_ms=5, reset_timer_on_new_record=True, "
        "should_clear_on_timeout=False)",
    ),
    "any of": (
        fw.any_of(fw.CountTrigger.of(2), fw.EventTimeTrigger()),
        "any of (every 2 elements; when the watermark passes the end)",
        "AnyOf(triggers=[CountTrigger(n=2), EventTimeTrigger()])",
    ),
    "all of": (
        fw.all_of(fw.CountTrigger.of(2), fw.PurgingTrigger.of(fw.EventTimeTrigger())),
        "all of (every 2 elements; when the watermark passes the end, purging)",
        "AllOf(triggers=[CountTrigger(n=2), PurgingTrigger(trigger=EventTimeTrigger())])",
    ),
    "after": (
        fw.after_watermark(),
        "when the watermark passes the end, late for every element",
        "AfterWatermark(early=None, late=None)",
    ),
    "after, early": (
        fw.after_watermark(early=fw.CountTrigger.of(2)),
        "when the watermark passes the end, early every 2 elements, late for every element",
        "AfterWatermark(early=CountTrigger(n=2), late=None)",
    ),
    "after, both": (
        fw.after_watermark(early=fw.ContinuousProcessingTimeTrigger.of("10 s"), late=fw.CountTrigger.of(4)),
        "when the watermark passes the end, early every 10 s of processing time, late every 4 elements",
        "AfterWatermark(early=ContinuousProcessingTimeTrigger(interval_ms=10000), late=CountTrigger(n=4))",
    ),
}
BASE = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))


class Doubling(fw.CountTrigger):
    """Derived from a built-in one, with a version and an attribute of its own."""

    version = 3

    def __init__(self, n: int) -> None:
        super().__init__(2 * n)
        self.half = n


@dataclass(frozen=True)
class Named(fw.CountTrigger):
    """A dataclass that is derived from a built-in one."""

    name: str = "x"


class Mine(fw.Trigger):
    def __init__(self, n: int) -> None:
        self.n = n

    def on_element(self, element, timestamp, window, ctx):
        return fw.TriggerResult.FIRE


@pytest.mark.parametrize("case", TOLD)
def test_a_trigger_is_told_as_ever(case: str) -> None:
    trigger, words, fingerprint = TOLD[case]
    assert (str(trigger), describe(trigger)) == (words, fingerprint)
    window = "key_by('k').event_time('ts').window(TumblingEventTimeWindows(size_ms=10, offset_ms=0))"
    spec = BASE.trigger(trigger).aggregate(n=fw.Count())
    assert str(spec) == f"{window}.trigger({fingerprint}).aggregate(n=Count(column=None))"


def test_a_derived_trigger_is_told_by_its_own_name() -> None:
    here = __name__
    assert describe(Doubling(2)) == f"{here}.Doubling(n=4, half=2, version=3)"
    assert describe(Named(2)) == f"{here}.Named(n=2, name='x')"
    assert describe(fw.any_of(Mine(1))) == f"AnyOf(triggers=[{here}.Mine(n=1)])"


@pytest.mark.parametrize("case", TOLD)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_trigger_travels(case: str, protocol: int) -> None:
    trigger = TOLD[case][0]
    for other in (
        pickle.loads(pickle.dumps(trigger, protocol)),
        cloudpickle.loads(cloudpickle.dumps(trigger)),
        copy.deepcopy(trigger),
        replace(trigger),  # type: ignore[type-var]
    ):
        assert other == trigger
        assert hash(other) == hash(trigger)
        assert repr(other) == repr(trigger)
        assert type(other) is type(trigger)


def test_derived_triggers_travel_with_what_they_hold() -> None:
    for trigger in (Doubling(2), Named(2, "y"), Mine(5)):
        other = pickle.loads(pickle.dumps(trigger))
        assert type(other) is type(trigger)
        assert vars(other) == vars(trigger)
        assert other.n == trigger.n


@pytest.mark.parametrize("case", TOLD)
def test_a_trigger_stays_as_it_is(case: str) -> None:
    trigger = TOLD[case][0]
    assert is_dataclass(trigger)
    for name in [field.name for field in fields(trigger)] + ["anything"]:
        with pytest.raises(AttributeError):
            setattr(trigger, name, 1)


def test_triggers_differ_by_class_and_fields() -> None:
    told = [trigger for trigger, _, _ in TOLD.values()]
    assert len(set(told)) == len(told)
    assert fw.CountTrigger(3) != fw.CountTrigger(4)
    assert fw.CountTrigger(4) != Doubling(2)
    assert AnyOf((fw.CountTrigger(1),)) == fw.any_of(fw.CountTrigger(n=1))


def test_a_derived_dataclass_checks_and_freezes_its_fields() -> None:
    named = Named(2, name="y")
    assert (named.n, named.name, replace(named, n=5).n) == (2, "y", 5)
    with pytest.raises(FrozenInstanceError):
        named.n = 3  # type: ignore[misc]
    with pytest.raises(fw.SpecError, match="n must be an int of at least 0, got -1"):
        Named(-1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fw.CountTrigger.of(-1), "CountTrigger: n must be an int of at least 0, got -1"),
        (lambda: fw.CountTrigger.of(True), "CountTrigger: n must be an int of at least 0, got True"),
        (lambda: fw.CountTrigger.of(2**63), "CountTrigger: n must be below 2\\*\\*63"),
        (lambda: Doubling.of("x"), "Doubling: n must be an int of at least 0, got 'xx'"),
        (lambda: fw.ContinuousEventTimeTrigger(0), "ContinuousEventTimeTrigger: interval must be at least 1 ms, got 0"),
        (
            lambda: fw.ContinuousEventTimeTrigger(2**63 - 1),
            f"ContinuousEventTimeTrigger: interval must be at most {2**53} ms, got {2**63 - 1} ms",
        ),
        (lambda: fw.ContinuousProcessingTimeTrigger(2**63), f"interval must be at most {2**53} ms, got {2**63} ms"),
        (lambda: fw.PurgingTrigger.of(3), "PurgingTrigger: trigger must be a trigger, got 3"),
        (lambda: fw.ProcessingTimeoutTrigger.of(3, 5), "ProcessingTimeoutTrigger: trigger must be a trigger, got 3"),
        (lambda: fw.ProcessingTimeoutTrigger(fw.EventTimeTrigger(), 0), "timeout must be at least 1 ms, got 0"),
        (lambda: fw.any_of(), "any_of: at least one trigger is needed, got none"),
        (lambda: fw.all_of(fw.EventTimeTrigger(), 3), "all_of: argument 2 must be a trigger, got 3"),
        (lambda: fw.after_watermark(late=3), "after_watermark: late must be a trigger, got 3"),
    ],
)
def test_what_makes_no_trigger(make: Any, says: str) -> None:
    with pytest.raises(fw.SpecError, match=says):
        make()


def test_the_longest_interval_goes_with_windows_before_1970() -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    spec = spec.trigger(fw.ContinuousEventTimeTrigger(2**53)).aggregate(n=fw.Count())
    assert spec.run(pa.table({"ts": [-(2**61), -1, 5]})).main["n"].to_pylist()[-3:] == [1, 1, 1]


def test_a_trigger_without_on_element_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Trigger needs on_element"):
        fw.Trigger().on_element(None, 0, None, None)
    with pytest.raises(NotImplementedError, match="NeverTrigger cannot merge"):
        fw.NeverTrigger().on_merge(None, None)


class Ctx:
    """A ctx that a test has made up: state by name, and timers."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.timers: set[tuple[str, int]] = set()
        self.watermark = self.clock = -100

    def get_current_watermark(self) -> int:
        return self.watermark

    def get_current_processing_time(self) -> int:
        return self.clock

    def register_event_time_timer(self, time: int) -> None:
        self.timers.add(("event", time))

    def delete_event_time_timer(self, time: int) -> None:
        self.timers.discard(("event", time))

    def register_processing_time_timer(self, time: int) -> None:
        self.timers.add(("clock", time))

    def delete_processing_time_timer(self, time: int) -> None:
        self.timers.discard(("clock", time))

    def get_partitioned_state(self, descriptor: Any) -> "Held":
        return Held(self.values, descriptor)


class Held:
    def __init__(self, values: dict[str, Any], descriptor: Any) -> None:
        self.values, self.descriptor = values, descriptor

    def get(self) -> Any:
        return self.values.get(self.descriptor.name)

    value = get

    def update(self, value: Any) -> None:
        self.values[self.descriptor.name] = value

    def add(self, value: Any) -> None:
        name = self.descriptor.name
        self.values[name] = self.descriptor.reduce(self.values[name], value) if name in self.values else value

    def clear(self) -> None:
        self.values.pop(self.descriptor.name, None)


WINDOW = fw.TimeWindow(0, 100)


@pytest.mark.parametrize(
    ("trigger", "state"),
    [
        (fw.CountTrigger.of(9), {"count": 2}),
        (fw.ContinuousEventTimeTrigger.of(30), {"fire-time": 30}),
        (fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(9), 50), {"timeout": -50, "count": 2}),
        (fw.any_of(fw.CountTrigger.of(9), fw.CountTrigger.of(8)), {"0/count": 2, "1/count": 2}),
        (
            fw.all_of(fw.CountTrigger.of(2), fw.PurgingTrigger.of(fw.CountTrigger.of(1)), fw.NeverTrigger()),
            {"all-of": (1, 2, 0)},
        ),
        (fw.after_watermark(early=fw.any_of(fw.CountTrigger.of(9))), {"0/0/count": 2}),
    ],
    ids=lambda case: str(case)[:30],
)
def test_state_through_a_ctx_has_the_names_that_it_had(trigger: fw.Trigger, state: dict[str, Any]) -> None:
    ctx = Ctx()
    for time in (1, 2):
        assert trigger.on_element(None, time, WINDOW, ctx) is fw.TriggerResult.CONTINUE
    assert ctx.values == state
    trigger.clear(WINDOW, ctx)
    assert ctx.values == {}


def test_a_built_in_trigger_goes_by_the_window_that_it_is_handed() -> None:
    ctx = Ctx()
    assert fw.EventTimeTrigger().on_element(None, 1, fw.TimeWindow(0, 7), ctx) is fw.TriggerResult.CONTINUE
    assert ctx.timers == {("event", 6)}
    assert fw.EventTimeTrigger().on_event_time(6, fw.TimeWindow(0, 7), ctx) is fw.TriggerResult.FIRE
    assert fw.EventTimeTrigger().on_event_time(6, WINDOW, ctx) is fw.TriggerResult.CONTINUE
    ctx.watermark = 6
    assert fw.EventTimeTrigger().on_element(None, 1, fw.TimeWindow(0, 7), ctx) is fw.TriggerResult.FIRE
