"""Window assignment: the start of the slice of each timestamp."""

from collections.abc import Callable

import numpy as np

from bench.events import EPOCH_MS
from bench.race import Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.core.panes.slices import assign_slices
from fastwin.operators.aligned.slicing import CumulativeSlicing

WORKS = Works()
MINUTE = 60_000
PEERS = ("numpy", "Python")


def _naive(times: list[int], size: int, slide: int, offset: int) -> list[int]:
    rest = size % slide
    starts = []
    for t in times:
        start = t - (t - offset) % slide
        starts.append(start + rest if rest and t >= start + rest else start)
    return starts


def _numpy(times: np.ndarray, size: int, slide: int, offset: int) -> np.ndarray:
    within = (times - offset) % slide
    rest = size % slide
    if rest:
        within = np.where(within >= rest, within - rest, within)
    return times - within


def _entry(label: str, times: np.ndarray, size: int, slide: int, offset: int = 0) -> Entry:
    listed = times.tolist()
    contenders = {
        "fastwin": Contender(lambda: assign_slices(times, size, slide, offset)[0], answer=np.ndarray.tolist),
        "numpy": Contender(lambda: _numpy(times, size, slide, offset), answer=np.ndarray.tolist),
        "Python": Contender(lambda: _naive(listed, size, slide, offset), answer=list),
    }
    return Entry(f"assign, {label}", len(times), contenders)


def _cumulative(label: str, times: np.ndarray, most: int, step: int) -> Entry:
    """Windows that grow by ``step`` up to ``most``: their slices are one step long."""
    slicing, listed = CumulativeSlicing(most, step, 0), times.tolist()
    contenders = {
        "fastwin": Contender(lambda: slicing.assign(times)[0], answer=np.ndarray.tolist),
        "numpy": Contender(lambda: times - times % step, answer=np.ndarray.tolist),
        "Python": Contender(lambda: [t - t % step for t in listed], answer=list),
    }
    return Entry(f"assign, {label}", len(times), contenders)


def _advancing(n: int) -> np.ndarray:
    """A million timestamps in two minutes, up to two seconds out of order."""
    disorder = np.random.default_rng(2).integers(0, 2_000, n)
    return EPOCH_MS + np.arange(n, dtype=np.int64) * 120_000 // 1_000_000 - disorder


def _random(n: int, low: int, high: int) -> np.ndarray:
    return np.random.default_rng(3).integers(low, high, n)


def _add(name: str, make: Callable[[Scale], Entry]) -> None:
    WORKS.add(name, "timestamp", PEERS)(make)


_add("assign-tumbling", lambda scale: _entry("tumbling 1 min", _advancing(scale.items), MINUTE, MINUTE))
_add(
    "assign-tumbling-random",
    lambda scale: _entry(
        "tumbling 1 min, times at random", _random(scale.items, EPOCH_MS, EPOCH_MS + 10**10), MINUTE, MINUTE
    ),
)
_add(
    "assign-sliding",
    lambda scale: _entry("sliding 24 h / 3 min", _advancing(scale.items), 1_440 * MINUTE, 3 * MINUTE),
)
_add(
    "assign-sliding-uneven",
    lambda scale: _entry(
        "sliding 10 min / 3 min (two slices a slide)", _advancing(scale.items), 10 * MINUTE, 3 * MINUTE
    ),
)
_add(
    "assign-cumulative",
    lambda scale: _cumulative("cumulative, 1 day by 1 min", _advancing(scale.items), 1_440 * MINUTE, MINUTE),
)
_add(
    "assign-offset",
    lambda scale: _entry(f"tumbling 1 h, offset 15 min, {amount(scale.items)} random times",
                         _random(scale.items, EPOCH_MS, EPOCH_MS + 10**10), 60 * MINUTE, 60 * MINUTE, 15 * MINUTE),
)  # fmt: skip
_add(
    "assign-negative",
    lambda scale: _entry("tumbling 1 min, times before 1970", _random(scale.items, -(10**12), 0), MINUTE, MINUTE),
)


@WORKS.parametrize
def test_assign(race, work, contender):
    race(work, contender)
