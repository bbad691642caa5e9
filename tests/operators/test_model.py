"""Aligned and session windows in lockstep with the naive model: many windows an element, and large batches."""

import random

import pytest

from tests.support import naive
from tests.support.cases import Case
from tests.support.lockstep import Lockstep, assert_empty, step
from tests.support.variants import variants


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("size, slide", [(96, 1), (97, 4), (1_000, 7), (12, 12)])
def test_many_windows_an_element(size: int, slide: int, coalesce: bool) -> None:
    dice = random.Random(size)
    case = Case(
        naive.Sliding(size, slide, -(slide // 2)), size // 3, coalesce, True, "raise", "two", "int64", 1, 0,
        tuple(
            ("batch", [(dice.randrange(4), t + dice.randint(-size, 5), dice.randint(-9, 9), None) for _ in range(20)])
            if t % 3 else ("watermark", t)
            for t in range(-15, 3 * size, max(1, size // 9))
        ),
        (), 1,
    )  # fmt: skip
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
    assert_empty(pair.stream)


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("lateness", variants([0, 400], 400))
@pytest.mark.parametrize(
    "windows",
    [
        naive.Tumbling(100, 7),
        naive.Sliding(100, 40),
        naive.Sliding(30, 70, -5),
        pytest.param(naive.Sliding(300, 27), marks=pytest.mark.long),
        naive.Cumulative(300, 20, 50),
        naive.Sessions(60),
    ],
    ids=str,
)
def test_large_batches(
    windows: naive.Sliding | naive.Cumulative | naive.Sessions, lateness: int, coalesce: bool
) -> None:
    """Beyond the blocks that kernels work in, with tables that grow, hundreds of keys and late elements throughout."""
    dice = random.Random(f"{windows} {lateness}")
    steps = []
    for i in range(4):
        times = [i * 600 + dice.randint(-1_800, 600) for _ in range(1_500)]
        batch = [(dice.randrange(700), time, dice.randint(-9, 9), dice.choice([None, 0.5])) for time in times]
        steps += [("batch", batch), ("watermark", i * 600 + 100)]
    case = Case(windows, lateness, coalesce, True, "raise", "many", "ms", 1, 0, tuple(steps), (), 2)
    pair, chunks = Lockstep(case.spec().open(), case.model(), case.key_count), []
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
        chunks.append(pair.stream.delta() if chunks else pair.stream.snapshot())
        if len(chunks) % 3 == 0:
            fresh = case.spec().open()
            fresh.restore(chunks)
            pair.restored(fresh)
    assert pair.model.late > 50
    assert_empty(pair.stream)
