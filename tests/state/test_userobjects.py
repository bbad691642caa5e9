"""Objects of user code to bytes and back: their classes are those that the code means."""

import dataclasses
import datetime
import enum
import functools
import os
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import fastwin as fw
from fastwin.state.lookover import NUMBERS, OBJECTS, SETS, kind_of
from fastwin.state.userobjects import Classes, dumps, loads

ROOT = Path(__file__).resolve().parents[2]


class Holding:
    def __init__(self, held):
        self.held = held


class Slotted:
    __slots__ = ("kind",)

    def __init__(self, kind):
        self.kind = kind


def part(n: int = 0):
    """Returns a function object with classes that cannot be imported."""

    @dataclasses.dataclass
    class Inner:
        n: int

    class Color(enum.Enum):
        RED = 1

    class Agg(fw.AggregateFunction):
        def create_accumulator(self):
            return [Inner(n), Color.RED]

    return Agg()


def test_classes_of_functions_are_written_by_name():
    function = part()
    value = function.create_accumulator()
    data = dumps(value, Classes([function]))
    assert loads(data, Classes([function])) == value
    other = part()  # the same code, run again: a class of its own, as in another process
    restored = loads(data, Classes([other]))
    assert restored == other.create_accumulator()
    assert restored != value


def test_classes_that_share_a_name_are_written_by_value():
    one, two = part(1), part(2)
    value = [one.create_accumulator()[0], two.create_accumulator()[0]]
    assert [item.n for item in loads(dumps(value, Classes([one, two])), Classes([one, two]))] == [1, 2]


def test_classes_are_found_in_fields_of_objects_without_a_dict():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Holding:
        held: object

    for outer in (Holding, fw.PurgingTrigger, lambda held: fw.any_of(fw.PurgingTrigger(held))):

        class Inner(fw.NeverTrigger):
            pass

        holder = outer(Inner())
        assert not hasattr(holder, "__dict__") or outer is not Holding
        assert Inner in Classes([holder]).names
        assert isinstance(loads(dumps(Inner(), Classes([holder])), Classes([holder])), Inner)


def test_a_class_that_is_gone_is_named():
    function = part()
    data = dumps(function.create_accumulator(), Classes([function]))
    with pytest.raises(
        fw.StateError, match=r"objects of the class .*part.<locals>.(Inner|Color), which the spec's code"
    ):
        loads(data, Classes([]))


def test_damaged_bytes_are_refused():
    with pytest.raises(fw.StateError, match="Python objects cannot be read"):
        loads(b"\x80\x05nonsense", Classes([]))


def test_importable_classes_are_left_to_pickle():
    class Agg(fw.AggregateFunction):
        def create_accumulator(self):
            return fw.TimeWindow(0, 1), Path("x")

    names = {name for _, name in Classes([Agg()]).by_name}
    assert names == {"test_importable_classes_are_left_to_pickle.<locals>.Agg"}


SCRIPT = """
import dataclasses, pathlib, sys
import pyarrow as pa
import fastwin as fw

@dataclasses.dataclass
class Seen:
    n: int

class Agg(fw.AggregateFunction):
    def create_accumulator(self):
        return Seen(0)
    def add(self, value, accumulator):
        assert accumulator == Seen(accumulator.n)
        return Seen(accumulator.n + 1)
    def get_result(self, accumulator):
        return accumulator.n

file = pathlib.Path(sys.argv[1])
spec = fw.key_by("k").count_window(3).aggregate(Agg(), output="n int")
table = pa.table({"k": [1]})
stream = spec.open(schema=table.schema)
if file.exists():
    stream.restore(file.read_bytes())
print(stream.process(table).main["n"].to_pylist())
file.write_bytes(stream.snapshot())
"""


def test_a_script_finds_its_own_classes_when_it_runs_again(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    printed = []
    for _ in range(3):
        command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "state")]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.strip())
    assert printed == ["[]", "[]", "[3]"]


class Private:
    __slots__ = ("__seen",)

    def __init__(self, seen: object) -> None:
        self.__seen = seen


class Reducing:
    """Says itself what is kept of it."""

    def __init__(self, seen: object) -> None:
        self._held = {"seen": seen}

    def __reduce__(self):
        return Reducing, (self._held["seen"],)


class Filled(deque):
    pass


WORDS = {"a", "b", "c"}


@pytest.mark.parametrize(
    "value",
    [
        WORDS,
        [{"k": frozenset(WORDS)}],
        deque([WORDS]),
        Filled([WORDS]),
        Private(WORDS),
        Reducing(WORDS),
        functools.partial(print, WORDS),
        np.array([WORDS, None], dtype=object),
        OrderedDict(k=WORDS),
        defaultdict(list, k=[WORDS]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sets_are_found_wherever_they_are(value):
    assert kind_of(value) == SETS


@pytest.mark.parametrize(
    "value",
    [
        "a",
        deque([1, "a"]),
        Counter("abc"),
        Private(1),
        Decimal(1),
        np.float64(1),
        np.arange(3),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        enum.Enum("Color", ["RED"]).RED,
        fw.TimeWindow(0, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_sets_does_not_pay_for_them(value):
    assert kind_of(value) != SETS


@pytest.mark.parametrize("held", [[], {}])
def test_what_is_held_twice_is_one_when_it_is_back(held):
    value = [held, held]
    assert kind_of(value) == OBJECTS
    one, other = loads(dumps(value, Classes([])), Classes([]))
    assert one is other
    assert kind_of([type(held)(), type(held)()]) == NUMBERS


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: functools.partial(print, kind),
        lambda kind: functools.partial(print, kind=kind),
        lambda kind: defaultdict(kind),
        lambda kind: Slotted(kind),
    ],
    ids=["argument", "keyword", "default factory", "slot"],
)
def test_classes_are_found_wherever_a_spec_has_them(make):
    class Total:
        pass

    assert Total in Classes([Holding(make(Total))]).names
