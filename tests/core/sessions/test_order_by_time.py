"""order_by_time beside numpy's stable sort."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.sessions.scan import order_by_time


@given(
    st.lists(st.integers(0, 30), min_size=64, max_size=200),
    st.sampled_from([0, -17, 2**61, -(2**61), 2**63 - 31, -(2**63)]),
    st.sampled_from([1, 2, 3, 8, 300]),
)
def test_times_near_each_other_are_put_in_order(offsets: list[int], first: int, threads: int) -> None:
    times = np.array([first + offset for offset in offsets], dtype=np.int64)
    order = order_by_time(times, map, threads)
    assert order is not None
    assert order.tolist() == np.argsort(times, kind="stable").tolist()


def test_threads_put_them_in_the_same_order() -> None:
    times = np.random.default_rng(3).integers(0, 40_000, 300_000)
    with ThreadPoolExecutor(3) as pool:
        for threads in (2, 3, 7):
            assert np.array_equal(order_by_time(times, pool.map, threads), np.argsort(times, kind="stable"))


@pytest.mark.parametrize("times", [[], [5], [0, 4], [-(2**63), 2**63 - 1], [2**62, -(2**62), 0]], ids=str)
def test_few_times_that_are_far_apart_are_not(times: list[int]) -> None:
    assert order_by_time(np.array(times, dtype=np.int64)) is None
