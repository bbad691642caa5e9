"""Evictors: which elements leave, before or after the function."""

from types import SimpleNamespace
from typing import Any

import pytest

import fastwin as fw


def elements(*values: int, times: list[int | None] | None = None) -> list[Any]:
    stamps = times or list(range(len(values)))
    return [SimpleNamespace(value=value, timestamp=time) for value, time in zip(values, stamps, strict=True)]


def evicted(evictor: fw.Evictor, found: list[Any]) -> tuple[list[int], list[int]]:
    """Returns the indices that leave before and after the function."""
    before = evictor.evict_before(found, len(found), None, None)
    after = evictor.evict_after(found, len(found), None, None)
    return list(before or ()), list(after or ())


@pytest.mark.parametrize(
    ("evictor", "leave"),
    [
        (fw.CountEvictor.of(2), [0, 1]),
        (fw.CountEvictor.of(4), []),
        (fw.CountEvictor.of(0), [0, 1, 2, 3]),
        (fw.TimeEvictor.of(2), [0, 1]),
        (fw.TimeEvictor.of(0), [0, 1, 2, 3]),
        (fw.DeltaEvictor.of(2, lambda a, b: abs(a - b)), [0, 1]),
    ],
)
def test_what_leaves_before(evictor: fw.Evictor, leave: list[int]) -> None:
    assert evicted(evictor, elements(5, 9, 3, 2)) == (leave, [])
    assert evicted(evictor, []) == ([], [])


def test_what_leaves_after() -> None:
    assert evicted(fw.CountEvictor.of(1, do_evict_after=True), elements(5, 9)) == ([], [0])


def test_an_evictor_of_ones_own_may_do_nothing() -> None:
    assert evicted(fw.Evictor(), elements(1, 2)) == ([], [])


def test_elements_without_timestamps_stay_unless_others_have_some() -> None:
    assert evicted(fw.TimeEvictor.of(1), elements(1, 2, times=[None, None])) == ([], [])
    with pytest.raises(ValueError, match="element 1 has no timestamp, others do"):
        fw.TimeEvictor.of(1).evict_before(elements(1, 2, times=[3, None]), 2, None, None)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fw.CountEvictor.of(-1), "CountEvictor: max_count must be an int of at least 0, got -1"),
        (lambda: fw.CountEvictor.of(True), "max_count must be an int of at least 0, got True"),
        (lambda: fw.CountEvictor.of(1, do_evict_after=1), "do_evict_after must be True or False, got 1"),
        (lambda: fw.TimeEvictor.of("-1 s"), "TimeEvictor: size must be at least 0 ms, got -1000"),
        (lambda: fw.DeltaEvictor.of("x", len), "DeltaEvictor: threshold must be a number, got 'x'"),
        (lambda: fw.DeltaEvictor.of(float("nan"), len), "threshold must be a number, got nan"),
        (lambda: fw.DeltaEvictor.of(1, 3), "delta must be a callable of two rows, got 3"),
    ],
)
def test_nonsense_names_argument_and_value(make: Any, says: str) -> None:
    with pytest.raises(fw.SpecError) as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("evictor", "text"),
    [
        (fw.CountEvictor.of(2), "keeping the last 2"),
        (fw.TimeEvictor.of("90 s"), "keeping the last 90 s"),
        (fw.DeltaEvictor.of(1.5, max), "keeping what differs from the last by less than 1.5"),
    ],
)
def test_evictors_in_words(evictor: fw.Evictor, text: str) -> None:
    assert str(evictor) == text
