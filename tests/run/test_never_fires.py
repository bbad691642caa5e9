"""Windows that would keep all that comes and fire nothing are warned of, where they are run."""

import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest

import fastwin as fw

TABLE = pa.table({"key": [1, 1, 2], "ts": [0, 1, 2]})
KEYED = fw.key_by("key").event_time("ts")
WAYS: dict[str, Callable[[fw.WindowSpec], object]] = {
    "run": lambda spec: spec.run(TABLE),
    "on two threads": lambda spec: spec.run(TABLE, threads=2),
    "open": lambda spec: spec.open(),
}
FIRE: dict[str, fw.WindowSpec] = {
    "a trigger": KEYED.window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(2)),
    "never, as is said": KEYED.window(fw.GlobalWindows.create()).trigger(fw.NeverTrigger()),
    "a count": KEYED.count_window(2),
    "windows with an end": KEYED.window(fw.TumblingEventTimeWindows.of(10)),
}


class Whole(fw.WindowAssigner):
    """One window for all, written in Python, with the trigger of global windows."""

    def assign_windows(self, element, timestamp, context):
        return [fw.TimeWindow(0, 1 << 40)]

    def get_default_trigger(self):
        return fw.NeverTrigger()

    def is_event_time(self):
        return True


@pytest.mark.parametrize("assigner", [fw.GlobalWindows.create(), Whole()], ids=["global", "of one's own"])
@pytest.mark.parametrize("way", WAYS)
def test_windows_without_a_trigger_that_fires_are_warned_of(way: str, assigner: fw.WindowAssigner) -> None:
    spec = KEYED.window(assigner).aggregate(n=fw.Count())
    with pytest.warns(UserWarning, match=r"window: .* never fires by itself, .*CountTrigger\.of\(100\)") as found:
        WAYS[way](spec)
    assert [one.filename for one in found] == [__file__]


@pytest.mark.parametrize("which", FIRE)
@pytest.mark.parametrize("way", WAYS)
def test_others_are_not(way: str, which: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WAYS[way](FIRE[which].aggregate(n=fw.Count()))
