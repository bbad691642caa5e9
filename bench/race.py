"""Races: contenders for the same work, run in turns, so that a noisy moment of the machine hits all of them alike.

pytest-benchmark runs all rounds of one test before the next test, which compares different moments. Here the first
test of a work runs all its contenders in turns and keeps the durations; each test then hands its own to
pytest-benchmark, whose clock (``recorded_clock``) plays them back.
"""

import contextlib
import gc
import importlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bench.scale import Scale

__all__ = [
    "OURS",
    "TWO",
    "Bar",
    "Contender",
    "Entry",
    "Lane",
    "Near",
    "Race",
    "Unavailable",
    "Work",
    "Works",
    "compete",
    "need",
    "recorded_clock",
]

OURS = "fastwin"
TWO = f"{OURS}, 2 threads"


@dataclass(frozen=True)
class Unavailable:
    """A contender that cannot run here, and what is missing for it."""

    reason: str


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    run: does it, and returns a result. setup: makes the arguments of ``run``, anew and outside the timing.
    answer: turns a result into something to compare with that of the others (``==``); None: it is not compared.
    notes: what to keep of a result beside the time. threads: how many it uses.
    units: how many units of work it does, if not those of the entry.
    clocked: ``run`` returns ``(seconds, result)``, having measured itself; answers are compared only where it has one.
    attempts: how often it runs at most, in the time that the scale has for Spark; None: as the scale says.
    twice: whether it runs twice each time, of which the second one counts; None: where ``attempts`` is None.
    warm_up: runs again and again before anything counts, for as long as the scale says.
    """

    run: Callable[..., Any]
    setup: Callable[[], tuple] = tuple
    answer: Callable[[Any], Any] | None = None
    notes: Callable[[Any], dict[str, Any]] | None = None
    threads: int = 1
    units: int | None = None
    clocked: bool = False
    attempts: int | None = None
    twice: bool | None = None
    warm_up: Callable[[], object] | None = None


class Near:
    """An answer of numbers, which equals another one where each differs by at most ``tolerance`` times its size."""

    def __init__(self, values: Any, tolerance: float) -> None:
        self._values, self._tolerance = np.asarray(values, dtype=np.float64), tolerance

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Near) or self._values.shape != other._values.shape:
            return False
        size = np.maximum(np.abs(self._values), np.abs(other._values))
        return bool(np.all(np.abs(self._values - other._values) <= self._tolerance * size))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Entry:
    """A work at a scale: what to call it, how many units it has, and who does it."""

    label: str
    units: int
    contenders: dict[str, Contender | Unavailable]


@dataclass(frozen=True)
class Bar:
    """What is to be reached: at least ``factor`` times the rate of each of ``peers``, or at most ``factor`` times
    their time for a unit."""

    kind: str
    factor: float
    peers: tuple[str, ...]

    @classmethod
    def at_least(cls, factor: float, *peers: str) -> "Bar":
        return cls("at least", factor, peers)

    @classmethod
    def at_most(cls, factor: float, *peers: str) -> "Bar":
        return cls("at most", factor, peers)


@dataclass(frozen=True)
class Work:
    """Something to be done by all contenders.

    name: short and lasting, for comparing commits. unit: what is counted. make: builds the entry at a scale.
    """

    name: str
    unit: str
    contenders: tuple[str, ...]
    bar: Bar | None
    make: Callable[..., Entry]


@dataclass
class Works:
    """The works of a file, gathered by the decorator ``add``."""

    found: list[Work] = field(default_factory=list)

    def add(self, name: str, unit: str, contenders: Sequence[str], bar: Bar | None = None) -> Callable:
        """Declares the decorated function, ``make(scale)`` or ``make(scale, resource)``, as a work."""

        def declare(make: Callable[..., Entry]) -> Callable[..., Entry]:
            self.found.append(Work(name, unit, (OURS, *contenders), bar, make))
            return make

        return declare

    @property
    def parametrize(self) -> pytest.MarkDecorator:
        """Marks a test to run for every work and contender: ``test(race, work, contender)``."""
        pairs = [(work, name) for work in self.found for name in work.contenders]
        return pytest.mark.parametrize(
            ("work", "contender"), [pytest.param(work, name, id=f"{work.name}-{name}") for work, name in pairs]
        )


def need(module: str) -> ModuleType | Unavailable:
    """Imports a peer's library; returns Unavailable without it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        return Unavailable(f"{module} cannot be imported: {problem}")


_ticks: Iterator[float] = iter(())


def recorded_clock() -> float:
    """The clock that pytest-benchmark gets: it plays back durations measured by a race."""
    return next(_ticks)


@dataclass
class Lane:
    """A contender in a race: its durations, or why there are none."""

    contender: Contender
    seconds: list[float] = field(default_factory=list)
    answer: Any = None
    notes: dict[str, Any] = field(default_factory=dict)
    problem: Exception | None = None

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """Keeps what is raised as the problem, and no durations: it shall not spoil the others; its test raises it."""
        try:
            yield
        except Exception as problem:
            self.problem = problem
            self.seconds.clear()

    def warm_up(self, seconds: float) -> None:
        """Runs what a contender has to get warm with, until so many seconds are over."""
        until = time.monotonic() + seconds
        with self._kept():
            while self.contender.warm_up is not None and time.monotonic() < until:
                self.contender.warm_up()

    def practise(self) -> None:
        """Runs once, not counted, and keeps the answer."""
        with self._kept():
            result = self.contender.run(*self.contender.setup())
            if self.contender.clocked:
                _, result = result
            if self.contender.answer is not None:
                self.answer = self.contender.answer(result)
            if self.contender.notes is not None:
                self.notes = self.contender.notes(result)

    def attempt(self) -> None:
        """Runs once and keeps how long it took, most contenders right after a run that does not count: so they find
        memory as they leave it themselves, and not as another contender did."""
        twice = self.contender.attempts is None if self.contender.twice is None else self.contender.twice
        with self._kept():
            if twice:
                self.contender.run(*self.contender.setup())
            arguments = self.contender.setup()
            gc.collect()
            start = time.perf_counter()
            result = self.contender.run(*arguments)
            seconds = time.perf_counter() - start
            if self.contender.clocked:
                seconds, result = result
                if self.contender.notes is not None:
                    self.notes = self.contender.notes(result)
            self.seconds.append(seconds)

    def wants_more(self, scale: Scale) -> bool:
        n, total = len(self.seconds), sum(self.seconds)
        if self.problem is not None:
            return False
        if self.contender.attempts is not None:
            return n == 0 or (n < self.contender.attempts and total < scale.spark_enough_s)
        if n < scale.attempts:
            return n < 2 or total < scale.patience_s
        return n < scale.at_most and total < scale.enough_s


class Race:
    """Runs works once each, and reports each contender to pytest-benchmark.

    selected: work name -> the contenders that the test run has chosen.
    """

    def __init__(self, scale: Scale, selected: dict[str, list[str]]) -> None:
        self.scale = scale
        self._selected = selected
        self._name: str | None = None
        self._entry: Entry | Exception | None = None
        self._lanes: dict[str, Lane] = {}

    def report(self, work: Work, name: str, benchmark: Any, *resources: Any) -> None:
        """Enters a contender's durations as rounds of a pytest-benchmark; runs the work if it has not run yet."""
        global _ticks
        if self._name != work.name:  # tests of a work follow each other; the data of the one before may go
            self._name, self._entry, self._lanes = work.name, None, {}
            try:
                self._entry = work.make(self.scale, *resources)
                chosen = self._selected[work.name]
                self._lanes = compete(self._entry, chosen, self.scale, practise_only=not benchmark.enabled)
            except Exception as problem:
                self._entry = problem
        entry = self._entry
        contender = entry.contenders[name] if isinstance(entry, Entry) else None
        problem = self._lanes[name].problem if name in self._lanes else entry if isinstance(entry, Exception) else None
        benchmark.skipped = contender is None or isinstance(contender, Unavailable) or problem is not None
        if problem is not None:
            raise problem
        assert isinstance(entry, Entry)
        if isinstance(contender, Unavailable):
            pytest.skip(contender.reason)
        lane = self._lanes[name]
        units = contender.units or entry.units
        benchmark.group = entry.label
        benchmark.extra_info.update(
            work=work.name, label=entry.label, contender=name, threads=contender.threads, unit=work.unit, units=units,
            scale=self.scale.name, bar=None if work.bar is None else vars(work.bar), notes=lane.notes,
            available=[one for one, found in entry.contenders.items() if not isinstance(found, Unavailable)],
        )  # fmt: skip
        _ticks = itertools.chain.from_iterable((0.0, seconds) for seconds in lane.seconds)
        benchmark.pedantic(_nothing, rounds=max(len(lane.seconds), 1))


def compete(entry: Entry, names: Sequence[str], scale: Scale, practise_only: bool = False) -> dict[str, Lane]:
    """Runs the named contenders of an entry in turns, after each has practised and the answers were compared.

    practise_only: nothing is timed. A contender that fails, or whose answer is not that of the first one, keeps its
    ``problem``; those that are unavailable have no lane.
    """
    lanes = {
        name: Lane(contender)
        for name, contender in entry.contenders.items()
        if name in names and not isinstance(contender, Unavailable)
    }
    for lane in lanes.values():
        if lane.contender.answer is not None or not lane.contender.clocked:
            lane.practise()
        if not practise_only and lane.problem is None:
            lane.warm_up(scale.spark_warm_s)
    answers = {name: lane.answer for name, lane in lanes.items() if lane.answer is not None}
    for name, answer in answers.items():
        first = next(iter(answers))
        if answer != answers[first]:
            lanes[name].problem = AssertionError(f"{entry.label}: {name} and {first} do not agree")
        lanes[name].answer = None
    while any(lane.wants_more(scale) for lane in lanes.values()) and not practise_only:
        for lane in lanes.values():
            if lane.wants_more(scale):
                lane.attempt()
    return lanes


def _nothing() -> None:
    """What pytest-benchmark believes to measure."""
