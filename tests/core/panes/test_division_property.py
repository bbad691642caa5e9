"""Division beside lists: elements of several parts, with keys of one column, of several and of none, in shares."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.panes.division import Divider, Division, most_shares
from tests.support.keycolumns import SHAPES, batches, columns_of, key_of

NONE = np.zeros(0, np.int64)


FAR = 2**62


@given(
    batches,
    st.sampled_from(SHAPES),
    st.lists(st.integers(-9, 9) | st.sampled_from([-FAR, -FAR + 1, FAR - 1, FAR]), min_size=2, unique=True),
    st.data(),
    st.booleans(),
)
def test_elements_of_a_key_and_pane_are_together_in_their_order(
    parts: list, texts: tuple, edges: list, data: st.DataObject, wide: bool
) -> None:
    edges = sorted(edge if abs(edge) > 9 else 10 * edge + 3 for edge in edges)
    widths = data.draw(st.lists(st.integers(1, 4), min_size=len(edges) - 1, max_size=len(edges) - 1))
    firsts, shares = np.cumsum([0, *widths]).tolist(), sum(widths)
    divider, known, n = Divider(texts, np.array(edges), np.array(widths)), {}, 0
    assert divider.shares == shares
    for elements in parts:
        keys = [key_of(texts, one) for one, *_ in elements]
        times = np.array([time for _, time, _ in elements], np.int64)
        division = divider.divide(columns_of(texts, keys, wide), times, 10, 3)
        panes = [(time - 3) // 10 * 10 + 3 for time in times.tolist()]
        bands = [bisect_right(edges, pane) - 1 for pane in panes]
        taken = [0 <= band < len(widths) for band in bands]
        assert division.counts.sum() == len(elements)
        assert division.counts[shares] == taken.count(False)
        starts = np.cumsum(division.counts[:shares]) - division.counts[:shares]
        places = np.full(taken.count(True), -1)
        division.spread(np.arange(len(elements)), starts, places)
        for share, (at, count) in enumerate(zip(starts, division.counts[:shares], strict=True)):
            here = places[at : at + count].tolist()
            assert here == sorted(here)
            assert all(known.setdefault((keys[i], panes[i]), share) == share for i in here)
            assert all(firsts[bands[i]] <= share < firsts[bands[i] + 1] for i in here)
            n += len(here)
        assert sorted(places.tolist()) == [i for i, one in enumerate(taken) if one]
        marks = np.zeros(len(places), np.uint8)
        division.spread((times % 2).astype(np.uint8), starts, marks)
        assert marks.tolist() == (times[places] % 2).tolist()
    assert n <= sum(map(len, parts))


@given(st.lists(st.integers(-(2**61), 2**61) | st.integers(0, 3_000), min_size=2, max_size=300, unique=True))
def test_a_band_is_found_wherever_its_edges_are(edges: list[int]) -> None:
    """Edges may be close to each other, far from others, and so many that several are in a cell."""
    edges = sorted(edges)
    times = np.unique([time for edge in edges for time in (edge - 1, edge, edge + 1) if abs(time) <= 2**61])
    divider = Divider([False], np.array(edges), np.ones(len(edges) - 1, np.int64))
    division = divider.divide([(times * 7, None)], times, 1, 0)
    bands = np.searchsorted(edges, times, side="right") - 1
    inside = (bands >= 0) & (bands < len(edges) - 1)
    assert division.counts.tolist() == [*np.bincount(bands[inside], minlength=len(edges) - 1), (~inside).sum()]


def of_two(width: int = 2) -> Divider:
    return Divider([False], np.array([-FAR, FAR]), np.array([width]))


@given(st.lists(st.text("abü", max_size=9), max_size=60), st.integers(1, 5), st.integers(0, 3))
def test_texts_lie_one_behind_the_other(words: list[str], shares: int, before: int) -> None:
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([before, *map(len, encoded)])
    data = np.frombuffer(b"-" * before + b"".join(encoded), np.uint8)
    numbers = np.arange(len(words)) * 7
    division = of_two(shares).divide([(numbers, None)], numbers, 10, 0)
    starts = np.cumsum(division.counts[:shares]) - division.counts[:shares]
    sizes = division.text_bytes(offsets)
    order, into, out = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64), np.zeros(sizes.sum(), np.uint8)
    division.spread(np.arange(len(words)), starts, order)
    division.spread_texts(offsets, data, starts, np.cumsum(sizes[:shares]) - sizes[:shares], into, out)
    ends = [*into.tolist(), len(out)]
    found = [bytes(out[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    assert found == [encoded[i] for i in order]


def divided(n: int = 3) -> Division:
    numbers = np.arange(n)
    return of_two().divide([(numbers, None)], numbers, 10, 0)


def test_what_does_not_suit_is_refused() -> None:
    for width in (0, most_shares + 1):
        with pytest.raises(
            ValueError, match=f"widths: must be at least 1, and {most_shares} in all at most, got {width}"
        ):
            of_two(width)
    for edges in ([0, 1], [0, 1, 2, 3], []):
        with pytest.raises(ValueError, match=f"edges: must be one more than widths, .* got {len(edges)} and 2"):
            Divider([False], np.array(edges, np.int64), np.array([1, 1]))
    with pytest.raises(ValueError, match=r"edges: must be one more than widths, .* got 1 and 0"):
        Divider([False], np.array([1]), NONE)
    with pytest.raises(ValueError, match="edges: must ascend, got 5 before 5"):
        Divider([False], np.array([1, 5, 5]), np.array([1, 1]))
    divider, numbers = of_two(), np.arange(3)
    with pytest.raises(ValueError, match="slide: must be at least 1 ms"):
        divider.divide([(numbers, None)], numbers, 0, 0)
    with pytest.raises(ValueError, match="offset: must be below slide=10, got 10"):
        divider.divide([(numbers, None)], numbers, 10, 10)
    with pytest.raises(ValueError, match="keys: column 0: needs 3 values"):
        divider.divide([(numbers[:2], None)], numbers, 10, 0)
    with pytest.raises(ValueError, match=r"times: must be within"):
        divider.divide([(numbers, None)], numbers + 2**62, 10, 0)
    assert divider.divide([(NONE, None)], NONE, 10, 0).counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("starts", [[0], [0, 0, 0]])
def test_starts_of_another_number_of_shares_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="starts: needs 2 values"):
        divided().spread(np.arange(3), np.array(starts), np.zeros(3, np.int64))


@pytest.mark.parametrize("starts", [[-1, 0], [0, 3], [4, 0], [2**63 - 1, 0]])
def test_places_out_of_bounds_are_refused(starts: list[int]) -> None:
    division, places = divided(40), np.array(starts)
    with pytest.raises(ValueError, match="starts: elements must be within 3 places"):
        division.spread(np.arange(40), places, np.zeros(3, np.int64))
    offsets, data = np.arange(41), np.zeros(40, np.uint8)
    with pytest.raises(ValueError, match="starts: elements must be within 3 places"):
        division.spread_texts(offsets, data, places, np.array([0, 0]), np.zeros(3, np.int64), data)
    into = np.zeros(80, np.int64)
    with pytest.raises(ValueError, match="first_bytes: texts must be within 3 bytes"):
        division.spread_texts(offsets, data, np.array([0, 40]), places, into, np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="values: needs 40 values"):
        division.spread(np.arange(39), np.array([0, 0]), np.zeros(40, np.int64))
    with pytest.raises(ValueError, match="offsets: needs 40 values"):
        division.text_bytes(np.arange(40))
    with pytest.raises(ValueError, match="offsets"):
        division.spread_texts(offsets[::-1].copy(), data, np.array([0, 40]), np.array([0, 0]), into, data)
