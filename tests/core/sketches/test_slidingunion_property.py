"""Unions over ranges of sketches: equal to registers put together by numpy, and refused where that is unsafe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.core.sketches.slidingunion import union_windows
from fastwin.errors import SketchError

SIZES = st.lists(st.sampled_from([0, 1, 3, 40, 1_500, 30_000]), min_size=1, max_size=9)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12)


def made(size: int, seed: int) -> Sketch:
    """Returns a sketch of some hashes, of which many raise the same registers, some of them high."""
    sketch = Sketch()
    hashes = np.random.default_rng(seed).integers(0, 2**63, size)
    hashes[::3] &= ~np.int64(0xFFFFF << 14)
    hashes[::5] &= ~np.int64(0xFF)
    sketch.add_hashes(hashes)
    return sketch


def joined(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    return offsets, np.frombuffer(b"".join(texts), dtype=np.uint8)


@given(SIZES, STEPS)
def test_windows_equal_a_model(sizes, steps):
    sketches = [made(size, seed) for seed, size in enumerate(sizes)]
    registers = [sketch.registers() for sketch in sketches]
    firsts, ends = [], []
    first = end = 0
    for step, more in steps:
        first = min(first + step, len(sizes))
        end = min(max(end, first) + more, len(sizes))
        firsts.append(first)
        ends.append(end)
    held = *joined([sketch.to_bytes() for sketch in sketches]), np.array(firsts, np.int64), np.array(ends, np.int64)
    counts = union_windows(*held, True)
    offsets, data = union_windows(*held, False)
    for i, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        found = Sketch()
        found.merge_string(data[offsets[i] : offsets[i + 1]])
        expected = np.max([np.zeros(16_384, np.uint8), *registers[first:end]], axis=0)
        assert (found.registers() == expected).all()
        assert counts[i] == found.estimate()
        whole = Sketch()
        for sketch in sketches[first:end]:
            whole.merge(sketch)
        assert bytes(data[offsets[i] : offsets[i + 1]]) == whole.to_bytes()


@pytest.mark.parametrize(
    ("firsts", "ends"),
    [([1], [0]), ([-1], [1]), ([0], [3]), ([1, 0], [1, 1]), ([0, 0], [2, 1])],
    ids=["ends before it begins", "before the first", "behind the last", "begins go back", "ends go back"],
)
def test_windows_that_are_none_are_refused(firsts, ends):
    held = joined([made(3, 1).to_bytes(), made(3, 2).to_bytes()])
    with pytest.raises(ValueError, match="must go on from"):
        union_windows(*held, np.array(firsts, np.int64), np.array(ends, np.int64), True)


def test_ends_for_each_first():
    with pytest.raises(ValueError, match="ends: needs 1 values"):
        union_windows(*joined([]), np.zeros(1, np.int64), np.zeros(2, np.int64), True)


@pytest.mark.parametrize("cut", [0, 3, 15, 17, 40])
@pytest.mark.parametrize("at", [0, 1])
def test_what_is_no_sketch_is_refused(cut, at):
    texts = [made(40, 1).to_bytes(), made(40, 2).to_bytes()]
    texts[at] = texts[at][:cut]
    held = joined(texts)
    with pytest.raises(SketchError, match=r"^sketch: "):
        union_windows(*held, np.array([0, 1], np.int64), np.array([2, 2], np.int64), True)


def test_no_windows():
    offsets, data = union_windows(*joined([]), np.zeros(0, np.int64), np.zeros(0, np.int64), False)
    assert offsets.tolist() == [0] and len(data) == 0
