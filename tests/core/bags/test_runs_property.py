"""Runs of numbers: what a row is saved as equals sorted and counted values, however they came."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.bags.bag import Distinct, Listed, Ranked
from tests.support.bags import ROWS, BagRows

FIRST, LAST = -(2**63), 2**63 - 1

KINDS = {
    "distinct": (Distinct, True, False),
    "counts": (Ranked, True, True),
    "all": (Listed, False, False),
}
# What the bits of values are like decides how they are sorted.
DRAWS = {
    "few": lambda dice, n: dice.integers(0, 9, n),
    "near": lambda dice, n: dice.integers(-300, 300, n),
    "wide": lambda dice, n: dice.integers(FIRST, LAST, n, endpoint=True),
    "one far off": lambda dice, n: np.where(np.arange(n) == n // 2, LAST, dice.integers(0, 10**6, n)),
    "two heaps": lambda dice, n: dice.choice([FIRST, 2**40], n) + dice.integers(0, 500, n),
    "ends": lambda dice, n: dice.choice([FIRST, FIRST + 1, -1, 0, 1, LAST - 1, LAST], n),
    "ascending": lambda dice, n: np.sort(dice.integers(0, 10**9, n)),
    "descending": lambda dice, n: np.sort(dice.integers(0, 10**9, n))[::-1].copy(),
    "alike": lambda dice, n: np.full(n, 7),
}
sizes = st.sampled_from([1, 2, 3, 15, 31, 32, 33, 60, 129, 300, 2_000, 5_000])
steps = st.one_of(
    st.tuples(st.just("add"), sizes, st.sampled_from(sorted(DRAWS))),
    st.tuples(st.just("add"), sizes, st.sampled_from(sorted(DRAWS))),
    st.tuples(st.just("merge"), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)),
    st.tuples(st.just("read"), st.integers(0, ROWS - 1), st.none()),
)


def code_of(value: float) -> int:
    """The order of floats, as the state has it."""
    if value != value:
        return 0x7FF8000000000000
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ LAST


def take_steps(rows: BagRows, steps: list[tuple], seed: int, floats: bool) -> None:
    dice = np.random.default_rng(seed)
    for name, first, second in steps:
        if name == "add":
            values = DRAWS[second](dice, first).astype(np.int64)
            valid = dice.random(first) < 0.8 if dice.random() < 0.3 else None
            to = dice.integers(0, ROWS, first) if dice.random() < 0.7 else np.zeros(first, np.int64)
            if floats:
                given = values.view(np.float64) if dice.random() < 0.5 else values.astype(np.float64) / 7
                rows.add(to, given, [code_of(value) for value in given.tolist()], valid)
            else:
                rows.add(to, values, values.tolist(), valid)
        elif name == "merge":
            rows.merge(first, second)
        else:
            rows.read_back(first)
        if dice.random() < 0.3:
            rows.check()
    rows.check()


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(steps, min_size=1, max_size=8), st.integers(0, 2**32))
def test_rows_are_saved_as_counted_values_in_order(kind: str, dtype: str, taken: list[tuple], seed: int) -> None:
    make, distinct, counts = KINDS[kind]
    take_steps(BagRows(make(dtype), distinct, counts), taken, seed, dtype == "float64")


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 256, 257, 4_096, 70_000])
def test_values_of_any_bits_and_any_number(kind: str, draw: str, n: int) -> None:
    make, distinct, counts = KINDS[kind]
    rows = BagRows(make("int64"), distinct, counts)
    values = DRAWS[draw](np.random.default_rng(n), n).astype(np.int64)
    rows.add(np.zeros(n, np.int64), values, values.tolist())
    rows.check()
    rows.add(np.ones(n, np.int64), values[::-1].copy(), values[::-1].tolist())
    rows.merge(0, 1)
    rows.check()


def test_the_largest_values_come_first_and_no_more_than_asked_for() -> None:
    values = DRAWS["wide"](np.random.default_rng(1), 3_000)
    for limit in (None, 5, 700):
        rows = BagRows(Listed("int64", 0, "all", limit, True), False, False)
        rows.members.add_rows(rows.store, np.repeat(rows.slots[:1], len(values)), [(values, None)])
        offsets, _, found, _ = rows.members.results(rows.store, rows.slots)[0]
        assert found[: offsets[1]].tolist() == sorted(values.tolist(), reverse=True)[:limit]


def test_texts_with_equal_first_bytes_are_ordered_and_counted() -> None:
    dice = np.random.default_rng(2)
    words = [b"x" * int(dice.integers(0, 12)) + b"%d" % dice.integers(0, 40) for _ in range(3_000)]
    column = (np.cumsum([0, *map(len, words)]), np.frombuffer(b"".join(words), np.uint8), None)
    for keeps, largest in (("all", False), ("all", True), ("distinct", False)):
        rows = BagRows(Listed("text", 0, keeps, None, largest), keeps == "distinct", False)
        rows.members.add_rows(rows.store, np.repeat(rows.slots[:1], len(words)), [column])
        offsets, _, ends, data = rows.members.results(rows.store, rows.slots)[0]
        found = [data[ends[i] : ends[i + 1]].tobytes() for i in range(offsets[1])]
        assert found == sorted(set(words) if keeps == "distinct" else words, reverse=largest)
    rows = BagRows(Distinct("text"), True, False)
    rows.members.add_rows(rows.store, np.repeat(rows.slots[:1], len(words)), [column])
    assert rows.members.results(rows.store, rows.slots)[0][0].tolist() == [len(set(words)), 0, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kinds", [1, 9, 40, 700])
def test_a_run_takes_at_most_twice_what_its_records_do(kind: str, kinds: int) -> None:
    make, distinct, counts = KINDS[kind]
    rows, dice = BagRows(make("int64"), distinct, counts), np.random.default_rng(kinds)
    empty, record = rows.store.nbytes, 16 if counts else 8
    for _ in range(20):
        values = dice.integers(0, kinds, 300)
        rows.add(np.zeros(300, np.int64), values, values.tolist())
        held = len(rows.models[0]) if distinct else rows.models[0].total()
        assert rows.store.nbytes - empty <= max(2 * record * held + 32, 350)
    rows.check()
