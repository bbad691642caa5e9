"""A name that is not there: the answer says what is."""

import copy
import dataclasses
import pickle
from abc import ABC, abstractmethod
from typing import Any

import cloudpickle
import pytest

import fastwin as fw


@pytest.mark.parametrize(("name", "meant"), [
    ("TumblingEventTimeWindow", "TumblingEventTimeWindows"),
    ("tumblingeventtimewindows", "TumblingEventTimeWindows"),
    ("Avg", "Mean"),
    ("Stddev", "StdDev"),
    ("HyperLoglog", "HyperLogLog"),
    ("keyby", "key_by"),
    ("SessionWindows", "EventTimeSessionWindows"),
])  # fmt: skip
def test_a_wrong_name_of_the_package(name: str, meant: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"module 'fastwin' has no attribute '{name}'; did you mean ({meant}\b|.* or {meant})"
    ):
        getattr(fw, name)


def test_a_name_unlike_any_is_just_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'fastwin' has no attribute 'xyzzy'$"):
        getattr(fw, "xyzzy")  # noqa: B009
    assert not hasattr(fw, "__path_of_nothing__")
    with pytest.raises(ImportError):
        from fastwin import Avg  # noqa: F401


@pytest.mark.parametrize(("kind", "name", "says"), [
    (fw.TumblingEventTimeWindows, "off", r"has no attribute 'off'; make one with TumblingEventTimeWindows\.of\(\.\.\.\)$"),
    (fw.SlidingEventTimeWindows, "every", r"has no attribute 'every'; make one with SlidingEventTimeWindows\.of\(\.\.\.\)"),
    (fw.EventTimeSessionWindows, "of", r"make one with EventTimeSessionWindows\.with_.*\(\.\.\.\) or EventTimeSessionWindows\.with_"),
    (fw.EventTimeSessionWindows, "withGap", r"EventTimeSessionWindows\.with_gap\(\.\.\.\); did you mean with_gap"),
    (fw.GlobalWindows, "of", r"make one with GlobalWindows\.create\(\.\.\.\)"),
    (fw.CountEvictor, "off", r"has no attribute 'off'; make one with CountEvictor\.of\(\.\.\.\)$"),
])  # fmt: skip
def test_a_wrong_factory(kind: Any, name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=says):
        getattr(kind, name)


def test_calling_the_class_with_text_says_which_method_takes_it() -> None:
    for make, maker in [
        (lambda: fw.TumblingEventTimeWindows("1 hour"), "TumblingEventTimeWindows.of"),
        (lambda: fw.EventTimeSessionWindows("1 hour"), "EventTimeSessionWindows.with_gap"),
    ]:
        with pytest.raises(
            fw.SpecError, match=rf"must be an int of milliseconds, got '1 hour'; {maker}\(\.\.\.\) takes text"
        ):
            make()


def test_assigners_of_ones_own_are_classes_like_others() -> None:
    class Base(ABC):
        @abstractmethod
        def start(self) -> int: ...

    class Mine(fw.WindowAssigner, Base):
        def start(self) -> int:
            return 0

        def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
            return [fw.TimeWindow(self.start(), 10)]

    again = pickle.loads(cloudpickle.dumps(Mine()))
    assert list(again.assign_windows(None, 0, None)) == [fw.TimeWindow(0, 10)]
    assert isinstance(again, fw.WindowAssigner)
    assert not hasattr(Mine, "of")
    with pytest.raises(AttributeError, match=r"^type object 'Mine' has no attribute 'of'$"):
        Mine.of  # noqa: B018


@pytest.mark.parametrize("kind", [fw.EventTimeTrigger, fw.ProcessingTimeTrigger, fw.NeverTrigger])
def test_triggers_without_arguments_are_made_as_in_flink(kind: Any) -> None:
    assert kind.create() == kind()
    assert type(type("Own", (kind,), {}).create()).__name__ == "Own"


@pytest.mark.parametrize(("name", "says"), [
    ("eventtime", "object has no attribute 'eventtime'; did you mean event_time"),
    ("allowedLateness", "did you mean allowed_lateness"),
    ("sideOutputLateData", "did you mean side_output_late_data"),
    ("xyzzy", "no attribute 'xyzzy'$"),
    ("_event_time", "no attribute '_event_time'$"),
])  # fmt: skip
def test_a_wrong_method_of_the_builder(name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=says):
        getattr(fw.key_by("k"), name)


def test_a_builder_is_copied_and_asked_as_before() -> None:
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    for same in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec)), dataclasses.replace(spec)):
        assert same == spec and same.fingerprint == spec.fingerprint
    assert not hasattr(spec, "xyzzy") and not hasattr(spec, "__array__") and getattr(spec, "nothing", None) is None


def test_a_property_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = fw.key_by("k")
    monkeypatch.setattr("fastwin.spec.builder.state_parts", lambda spec: spec.keys.nothing)
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'nothing'"):
        _ = spec.state_parts
