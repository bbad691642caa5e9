"""ordered(): the order of rows by several columns, held to numpy's lexsort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.memory.ordering import ordered

FEW = st.integers(-2, 2)
MANY = st.integers(-(2**40), 2**40)
ALL = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, -1, 0])


@st.composite
def columns(draw: st.DrawFn) -> list[np.ndarray]:
    n = draw(st.integers(0, 80))
    kinds = draw(st.lists(st.sampled_from([FEW, MANY, ALL]), min_size=1, max_size=4))
    return [np.array(draw(st.lists(kind, min_size=n, max_size=n)), dtype=np.int64) for kind in kinds]


@given(columns())
def test_the_order_is_that_of_lexsort(given_columns):
    places, ties = ordered(given_columns)
    assert places.dtype == np.int32
    assert places.tolist() == np.lexsort(given_columns[::-1]).tolist()  # stable as well
    rows = list(zip(*(column[places].tolist() for column in given_columns), strict=True))
    assert ties == sum(a == b for a, b in zip(rows, rows[1:], strict=False))


@pytest.mark.parametrize("width", [1, 31, 32, 62, 63, 64])
def test_columns_that_just_fit_into_one_or_do_not(width):
    high = np.array([0, 2 ** (64 - width) - 1, 1, 0, 2 ** (64 - width) - 1], dtype=np.uint64).view(np.int64)
    low = np.array([2**width - 1, 0, 5 % 2**width, 0, 2**width - 1], dtype=np.uint64).view(np.int64)
    for given_columns in ([high, low], [low, high], [low], [high]):
        assert ordered(given_columns)[0].tolist() == np.lexsort(given_columns[::-1]).tolist()


def test_what_it_refuses():
    with pytest.raises(ValueError, match="columns: at least one"):
        ordered([])
    with pytest.raises(ValueError, match="columns: needs 2 values"):
        ordered([np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)])
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        ordered([np.zeros(2, dtype=np.int32)])
