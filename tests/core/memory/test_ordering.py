"""ordered(): the order of rows by several columns, held to numpy's lexsort; distinct(), to its unique."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.memory.ordering import distinct, ordered, unique

FEW = st.integers(-2, 2)
MANY = st.integers(-(2**40), 2**40)
STEPS = st.integers(-3, 3).map(lambda step: step * 86_400_000 + 2**45)
ALL = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, -1, 0])


@st.composite
def columns(draw: st.DrawFn) -> list[np.ndarray]:
    n = draw(st.integers(0, 80))
    kinds = draw(st.lists(st.sampled_from([FEW, MANY, STEPS, ALL]), min_size=1, max_size=4))
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


@pytest.mark.parametrize("columns_n", [1, 2, 3])
@pytest.mark.parametrize("high", [1, 1_000, 2**29, 2**62])
def test_many_rows_are_sorted_by_long_digits(high, columns_n):
    random = np.random.default_rng(high + columns_n)
    many = [random.integers(-high, high, 20_000) for _ in range(columns_n)]
    assert ordered(many)[0].tolist() == np.lexsort(many[::-1]).tolist()
    in_order = [column[np.lexsort(many[::-1])] for column in many]
    assert ordered(in_order)[0].tolist() == list(range(20_000))


def test_bounds_of_windows_take_few_bits_beside_other_columns():
    random = np.random.default_rng(3)
    starts = random.integers(-(2**14), 2**14, 20_000) * 86_400_000  # 42 bits, or 15 in steps of a day
    keys = random.integers(0, 2**31, 20_000)
    assert ordered([starts, keys])[0].tolist() == np.lexsort((keys, starts)).tolist()


@given(st.lists(FEW | MANY | ALL, max_size=80))
def test_distinct_values(values):
    found = distinct(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))


def test_distinct_of_more_values_than_it_remembers():
    values = np.random.default_rng(5).integers(-6_000, 6_000, 50_000)
    assert distinct(values).tolist() == np.unique(values).tolist()


@given(st.lists(FEW | MANY | ALL, max_size=80), st.sampled_from([np.int32, np.int64]))
def test_unique_values(values, kind):
    values = np.array(values, np.int64).astype(kind)
    found = unique(values)
    assert found.dtype == kind and found.tolist() == sorted(set(values.tolist()))


def test_what_it_refuses():
    with pytest.raises(ValueError, match="columns: at least one"):
        ordered([])
    with pytest.raises(ValueError, match="columns: needs 2 values"):
        ordered([np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)])
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        ordered([np.zeros(2, dtype=np.int32)])


def test_columns_that_fit_into_a_word_without_places():
    random = np.random.default_rng(9)
    starts, keys = random.integers(0, 2**40, 3_000), random.integers(0, 2**20, 3_000) - 2**19  # 60 bits, and 12
    assert ordered([starts, keys])[0].tolist() == np.lexsort((keys, starts)).tolist()
    wide = random.integers(-(2**63), 2**63 - 1, 3_000)
    assert ordered([wide])[0].tolist() == np.argsort(wide, kind="stable").tolist()
    assert ordered([keys, wide])[0].tolist() == np.lexsort((wide, keys)).tolist()
