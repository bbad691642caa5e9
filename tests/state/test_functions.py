"""State of functions that are told by their code: not taken by other code, unless one says so."""

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.nameless import SPEC as NAMELESS

STORED = Path(__file__).parents[1] / "support/stored/nameless.txt"
BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
TABLE = pa.table({"k": ["a", "a"], "t": [1, 2], "v": [5, 9]})


def lines(text: str) -> Any:
    """Returns a function that has no name of its own, from a text."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(text, space)
    return space["f"]


LARGER = "f = lambda a, b: a if a.v >= b.v else b"
SMALLER = "f = lambda a, b: a if a.v <= b.v else b"


def state_of(spec: fw.WindowSpec) -> bytes:
    stream = spec.open()
    stream.process(TABLE)
    return stream.snapshot()


def restored(spec: fw.WindowSpec, chunks: list[bytes], migrate: Any = None, column: str = "v") -> list[Any]:
    stream = spec.open()
    stream.restore(chunks, migrate=migrate)
    return stream.advance_watermark(100).main[column].to_pylist()


def test_other_code_does_not_take_the_state() -> None:
    chunk = state_of(BASE.reduce(lines(LARGER)))
    with pytest.raises(
        fw.StateError, match=r"reduce has other code in __main__\.<lambda>; if it means the same, migrate="
    ):
        restored(BASE.reduce(lines(SMALLER)), [chunk])
    assert restored(BASE.reduce(lines("\n\n" + LARGER)), [chunk]) == [9]


@pytest.mark.parametrize("make", [
    lambda f: BASE.trigger(fw.DeltaTrigger.of(1, f)).aggregate(n=fw.Count()),
    lambda f: BASE.evictor(fw.DeltaEvictor.of(1, f)).aggregate(n=fw.Count()),
    lambda f: fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_dynamic_gap(f)).aggregate(n=fw.Count()),
])  # fmt: skip
def test_every_part_that_takes_a_function_tells_its_code(make: Any) -> None:
    one, other = (make(lines(text)) for text in (LARGER, SMALLER))
    assert one.fingerprint != other.fingerprint


def test_who_says_that_it_is_the_same_goes_on() -> None:
    chunk = state_of(BASE.reduce(lines(LARGER)))
    for now in (lines(SMALLER), fw.named("larger", lines(SMALLER))):
        assert restored(BASE.reduce(now), [chunk], "changed functions") == [9]
    other = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(20))
    with pytest.raises(fw.StateError, match="window was"):
        restored(other.reduce(lines(SMALLER)), [chunk], "changed functions")


def test_a_named_function_keeps_its_state() -> None:
    chunk = state_of(BASE.reduce(fw.named("larger", lines(LARGER))))
    assert restored(BASE.reduce(fw.named("larger", lines(SMALLER))), [chunk]) == [9]
    with pytest.raises(fw.StateError, match="reduce was"):
        restored(BASE.reduce(fw.named("larger v2", lines(LARGER))), [chunk])


def test_state_from_before_there_were_codes_is_taken_with_a_warning() -> None:
    chunks = [base64.b64decode(line) for line in STORED.read_text(encoding="ascii").split()]
    stream = NAMELESS.open()
    with pytest.warns(UserWarning, match=r"does not tell the code of the functions in .*nameless\.<lambda>#py"):
        stream.restore(chunks)
    chunk = stream.snapshot()
    assert sorted(stream.advance_watermark(100).main["s"].to_pylist()) == [3, 18]
    assert sorted(restored(NAMELESS, [chunk], column="s")) == [3, 18]  # and tells it from then on


def test_nonsense_is_refused() -> None:
    with pytest.raises(
        fw.SpecError,
        match=r"migrate: must be None, 'added aggregates', 'changed functions', .* or a set of these, got 'all'",
    ):
        restored(BASE.reduce(lines(LARGER)), [b""], "all")


def test_a_longer_lateness_takes_state_without_built_in_aggregates() -> None:
    larger = fw.named("larger", lines(LARGER))
    assert restored(BASE.allowed_lateness(5).reduce(larger), [state_of(BASE.reduce(larger))]) == [9]
