"""Buckets of quantiles: what a row is saved as, and what is read of it, equals logarithms and counts of its values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.bags.quantile import Quantile
from tests.support.bags import CELL, ROWS, BagRows

SMALLEST = 2.2250738585072014e-308
NAN, HIGHEST, LOWEST = 2**63 - 1, 2**63 - 2, -(2**63)
QS = (0, 0.1, 0.5, 0.93, 1)

DRAWS = {
    "uniform": lambda dice, n: dice.random(n),
    "lognormal": lambda dice, n: dice.lognormal(0, 3, n),
    "both signs": lambda dice, n: dice.normal(0, 10, n),
    "below zero": lambda dice, n: -dice.lognormal(3, 1, n),
    "integers": lambda dice, n: dice.integers(0, 300, n).astype(np.float64),
    "far apart": lambda dice, n: np.exp(dice.uniform(-700, 700, n)) * dice.choice([-1.0, 1.0], n),
    "special": lambda dice, n: dice.choice([0.0, -0.0, 5e-324, math.inf, -math.inf, math.nan, 1.0, -1.0], n),
    "some special": lambda dice, n: np.where(
        dice.random(n) < 0.02, dice.choice([0.0, math.inf, -math.inf, math.nan, 1e300, -1e-300], n), dice.random(n) + 1
    ),
    "growing": lambda dice, n: np.exp(np.linspace(0, 8, n)),
    "shrinking": lambda dice, n: np.exp(-np.linspace(0, 8, n)),
}
sizes = st.sampled_from([1, 2, 15, 16, 17, 60, 129, 300, 2_000])
steps = st.one_of(
    st.tuples(st.just("add"), sizes, st.sampled_from(sorted(DRAWS))),
    st.tuples(st.just("add"), sizes, st.sampled_from(sorted(DRAWS))),
    st.tuples(st.just("merge"), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)),
    st.tuples(st.just("read"), st.integers(0, ROWS - 1), st.none()),
    st.tuples(st.just("copy"), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)),
    st.tuples(st.just("ask"), st.none(), st.none()),
)


def bucket_of(value: float, error: float) -> int:
    size = abs(value)
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return HIGHEST if value > 0 else LOWEST
    if size < SMALLEST:
        return 0
    scale = 1 / math.log1p(2 * error / (1 - error))
    found = math.ceil(710 * scale) + math.ceil(math.log(size) * scale)
    return found if value > 0 else -found


class QuantileRows(BagRows):
    """Rows of buckets, of which several quantiles are read."""

    def __init__(self, error: float) -> None:
        owner = Quantile("float64", 0, QS[0], error)
        super().__init__(owner, True, True, *(Quantile("float64", 0, q, error, owner) for q in QS[1:]))
        self.error = error
        self.ends = [(math.inf, -math.inf)] * ROWS

    def add(self, rows: np.ndarray, values: np.ndarray, keys: list[int], valid: np.ndarray | None = None) -> None:
        super().add(rows, values, keys, valid)
        for i, (row, value) in enumerate(zip(rows.tolist(), values.tolist(), strict=True)):
            if (valid is None or valid[i]) and math.isfinite(value):
                self.ends[row] = (min(self.ends[row][0], value), max(self.ends[row][1], value))

    def put(self, row: int, values: np.ndarray) -> None:
        """Adds values to one row."""
        self.add(np.full(len(values), row), values, [bucket_of(value, self.error) for value in values.tolist()])

    def merge(self, row: int, other: int) -> None:
        super().merge(row, other)
        (least, most), (lower, higher) = self.ends[row], self.ends[other]
        self.ends[row] = (min(least, lower), max(most, higher))

    def copy(self, row: int, other: int) -> None:
        """Makes a row a copy of another one, in the form that this has."""
        ends = np.array([CELL + 1, CELL + 2], np.int32)
        self.store.set_blobs(self.at(row), CELL, *self.store.blobs(self.at(other), CELL))
        self.store.set_cells(self.at(row), ends, list(self.store.gather(self.at(other), ends)))
        self.store.set_bits(self.at(row), self.store.bits(self.at(other)))
        self.models[row], self.ends[row] = self.models[other].copy(), self.ends[other]

    def quantile(self, row: int, q: float) -> float:
        model, scale = self.models[row], 1 / math.log1p(2 * self.error / (1 - self.error))
        last = model.total() - 1
        rank = behind = int(q * last)
        for key in sorted(model):
            if behind < model[key]:
                break
            behind -= model[key]
        if key in (LOWEST, HIGHEST, NAN):
            return {LOWEST: -math.inf, HIGHEST: math.inf, NAN: math.nan}[key]
        if rank in (0, last):
            return self.ends[row][rank > 0]
        size = math.exp((abs(key) - math.ceil(710 * scale)) / scale + math.log(1 - self.error)) if key else 0.0
        return min(max(math.copysign(size, key), self.ends[row][0]), self.ends[row][1])

    def check_results(self) -> None:
        for q, (found, valid) in zip(QS, self.members.results(self.store, self.slots), strict=True):
            for row in range(ROWS):
                assert (valid is None or bool(valid[row])) == bool(self.models[row])
                if self.models[row]:
                    assert found[row] == pytest.approx(self.quantile(row, q), rel=1e-9, abs=0, nan_ok=True)


def rows_of(error: float) -> QuantileRows:
    return QuantileRows(error)


@given(st.lists(steps, min_size=1, max_size=8), st.integers(0, 2**32), st.sampled_from([0.01, 0.2, 0.0005]))
def test_rows_are_saved_as_counted_buckets_in_order(taken: list[tuple], seed: int, error: float) -> None:
    dice, rows = np.random.default_rng(seed), rows_of(error)
    for name, first, second in taken:
        if name == "add":
            values = DRAWS[second](dice, first)
            valid = dice.random(first) < 0.8 if dice.random() < 0.3 else None
            to = dice.integers(0, ROWS, first) if dice.random() < 0.7 else np.zeros(first, np.int64)
            rows.add(to, values, [bucket_of(value, error) for value in values.tolist()], valid)
        elif name == "merge":
            rows.merge(first, second)
        elif name == "read":
            rows.read_back(first)
        elif name == "copy":
            rows.copy(first, second)
        else:
            rows.check_results()
        if dice.random() < 0.3:
            rows.check()
    rows.check_results()
    rows.check()


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("error", [0.00001, 0.01, 0.3, 0.999])
def test_many_values_are_counted_by_their_logarithms(draw: str, error: float) -> None:
    values, rows = DRAWS[draw](np.random.default_rng(5), 20_000), rows_of(error)
    rows.add(np.zeros(len(values), np.int64), values, [bucket_of(value, error) for value in values.tolist()])
    rows.check()


@pytest.mark.parametrize("error", [0.00001, 0.003, 0.01, 0.5, 0.999])
def test_values_at_the_bounds_of_buckets_are_where_the_logarithm_says(error: float) -> None:
    scale, dice = 1 / math.log1p(2 * error / (1 - error)), np.random.default_rng(6)
    powers = [math.exp(k / scale) for k in dice.integers(int(-708 * scale) + 1, int(709 * scale), 800).tolist()]
    powers += [2.0**k for k in range(-1_022, 1_024, 7)] + [1.0, 10.0, 1e-5, SMALLEST, 1.7976931348623157e308]
    values = [math.nextafter(one, to) for one in powers for to in (0, one, math.inf)]
    values = np.array([value for value in values if SMALLEST <= value < math.inf] * 2)
    values[: len(values) // 2] *= -1
    rows = rows_of(error)
    rows.add(np.zeros(len(values), np.int64), values, [bucket_of(value, error) for value in values.tolist()])
    rows.check()


def test_counts_grow_beyond_32_bits() -> None:
    rows, values = rows_of(0.01), np.random.default_rng(7).random(3_000) + 1
    keys = [bucket_of(value, 0.01) for value in values.tolist()]
    full = keys[0]
    rows.add_record(0, full, 2**32 - 4)
    rows.add_record(1, full, 2**32 + 4)
    for row in (0, 1, 0, 1):
        rows.add(np.full(len(keys), row), values, keys)
    rows.check()
    assert rows.models[0][full] > 2**32
    rows.merge(0, 1)
    rows.check()


def test_buckets_far_from_each_other_take_no_more_room_than_records() -> None:
    rows = rows_of(0.01)
    values = np.exp(np.random.default_rng(8).uniform(-700, 700, 2_000))
    before = rows.store.nbytes
    rows.add(np.zeros(len(values), np.int64), values, [bucket_of(value, 0.01) for value in values.tolist()])
    assert rows.store.nbytes - before <= 32 * len(rows.models[0]) + 64
    rows.add(
        np.zeros(3_000, np.int64), np.linspace(1, 2, 3_000), [bucket_of(v, 0.01) for v in np.linspace(1, 2, 3_000)]
    )
    rows.check()


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("other", ["uniform", "both signs", "below zero", "integers", "some special", "shrinking"])
def test_rows_of_many_values_are_merged(draw: str, other: str) -> None:
    dice, rows = np.random.default_rng(9), rows_of(0.01)
    for row, name, n in ((0, draw, 3_000), (1, other, 2_000), (1, other, 500)):
        values = DRAWS[name](dice, n)
        rows.add(np.full(n, row), values, [bucket_of(value, 0.01) for value in values.tolist()])
    rows.merge(2, 0)  # a row that has nothing
    rows.merge(0, 1)
    rows.merge(0, 2)
    rows.check()


def test_counts_of_two_rows_grow_beyond_32_bits() -> None:
    rows, values = rows_of(0.01), np.random.default_rng(10).random(3_000) + 1
    keys = [bucket_of(value, 0.01) for value in values.tolist()]
    for row in (0, 1):
        rows.add_record(row, keys[0], 2**31 + 5)
        rows.add(np.full(len(keys), row), values, keys)
    rows.merge(0, 1)
    rows.check()
    assert rows.models[0][keys[0]] > 2**32


FORMS = {
    "nothing": lambda dice: np.zeros(0),
    "a value": lambda dice: np.array([1.5]),
    "few": lambda dice: dice.random(12) + 1,
    "few on both sides": lambda dice: dice.normal(0, 1, 12),
    "far apart": lambda dice: np.exp(np.linspace(-600, 600, 200)),
    "one far off": lambda dice: np.append(dice.random(400) + 1, 1e300),
    "many": lambda dice: dice.random(3_000) + 1,
    "many next to them": lambda dice: dice.random(3_000) + 2,
    "many on both sides": lambda dice: dice.normal(0, 10, 3_000),
    "special": lambda dice: DRAWS["special"](dice, 300),
}


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("mine", FORMS)
def test_rows_of_any_form_are_merged_and_the_other_one_keeps_its_form(mine: str, other: str) -> None:
    dice, rows = np.random.default_rng(11), rows_of(0.01)
    rows.put(0, FORMS[mine](dice))
    rows.put(1, FORMS[other](dice))
    counted = rows.is_counted(1)
    for _ in range(2):
        rows.merge(0, 1)
        rows.check_results()
    assert rows.is_counted(1) == counted == other.startswith("many")
    assert rows.is_counted(0) or not counted or mine in ("far apart", "one far off", "few on both sides")
    rows.put(0, FORMS["few"](dice))
    rows.put(1, FORMS["few on both sides"](dice))
    rows.check_results()
    rows.check()


@pytest.mark.parametrize("other", ["nothing", "a value", "few"])
def test_counters_stay_where_little_is_merged(other: str) -> None:
    rows = rows_of(0.01)
    for row, form in ((0, "many"), (1, other)):
        rows.put(row, FORMS[form](np.random.default_rng(12)))
    for _ in range(3):
        rows.merge(0, 1)
        assert rows.is_counted(0)
    rows.check()


def test_counters_are_made_for_all_that_another_row_counts() -> None:
    rows = rows_of(0.01)
    rows.put(0, np.tile(np.linspace(20, 50, 40), 2))
    rows.put(1, np.exp(np.random.default_rng(13).uniform(-7, 7, 5_000)))
    assert rows.is_counted(0)
    assert rows.is_counted(1)
    held = rows.store.blobs(rows.at(1), CELL)[1].tolist()
    rows.merge(0, 1)
    assert rows.is_counted(0)
    assert rows.store.blobs(rows.at(1), CELL)[1].tolist() == held
    rows.check()


def test_runs_that_are_merged_become_counters() -> None:
    dice, rows = np.random.default_rng(14), rows_of(0.01)
    for _ in range(30):
        rows.copy(1, 2)
        rows.put(1, dice.random(12) + 1)
        rows.merge(0, 1)
    assert rows.is_counted(0)
    rows.check_results()
    rows.check()


def test_reading_leaves_counters_as_they_are() -> None:
    dice, rows = np.random.default_rng(15), rows_of(0.01)
    for row in range(ROWS):
        rows.put(row, np.concatenate([dice.normal(0, 10, 2_000), DRAWS["special"](dice, row * 50)]))
    before = [rows.store.blobs(rows.at(row), CELL)[1].tolist() for row in range(ROWS)], rows.store.nbytes
    rows.check_results()
    assert before == ([rows.store.blobs(rows.at(row), CELL)[1].tolist() for row in range(ROWS)], rows.store.nbytes)
    assert all(rows.is_counted(row) for row in range(ROWS))
    rows.read_back(0)
    assert not rows.is_counted(0)
    rows.check_results()
    rows.put(0, dice.normal(0, 10, 2_000))
    assert rows.is_counted(0)
    rows.check_results()


def test_a_copy_of_counters_goes_its_own_way() -> None:
    dice, rows = np.random.default_rng(16), rows_of(0.01)
    rows.put(0, dice.random(2_000) + 1)
    rows.copy(1, 0)
    assert rows.is_counted(1)
    for row, values in ((0, dice.random(500) + 1.5), (1, dice.random(500) + 3), (0, -dice.random(9)), (1, np.zeros(5))):
        rows.put(row, values)
        rows.check_results()
    rows.check()


def test_a_run_that_is_nearly_full_when_it_is_in_order_gets_room() -> None:
    values, rows = np.exp(np.linspace(-600, 600, 100)), rows_of(0.01)  # too far apart for counters
    for value in values.tolist():
        rows.add_record(0, bucket_of(value, 0.01), 1)
    del rows.models[0][bucket_of(values[-1], 0.01)]
    rows.write(0)  # in a block for one record more
    before = rows.store.nbytes
    rows.put(0, values[:10])
    grown = rows.store.nbytes
    assert grown >= before + 16 * 90
    rows.put(0, np.tile(values[:-1], 10))
    assert rows.store.nbytes == grown
    rows.check()


def test_a_saved_run_without_records_takes_values() -> None:
    rows = rows_of(0.01)
    for row in range(2):
        rows.store.set_blobs(rows.at(row), CELL, np.array([0, 8]), np.zeros(8, np.uint8))
    rows.put(0, np.array([1.0, 2.0]))
    rows.merge(0, 1)
    rows.merge(1, 0)
    rows.check_results()
    rows.check()


def test_saved_counts_of_more_values_than_there_can_be_are_refused() -> None:
    rows = rows_of(0.01)
    rows.add_record(0, 5, 2**53 - 1)
    rows.add_record(0, -7, 1)
    with pytest.raises(ValueError, match="Quantile: a row holds what is none of its forms"):
        rows.add_record(0, 6, 1)
    for count in (2**53 + 1, 2**63 - 1):
        with pytest.raises(ValueError, match="Quantile: a row holds what is none of its forms"):
            rows_of(0.01).add_record(0, 5, count)
