"""Registers of rows as lists, tables and all of them: equal to registers that numpy raises, whatever form they take."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fastwin import hyperloglog
from fastwin.columns.buffers import text_values
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import adopt_rows, tidy_rows
from fastwin.core.sketches.hyperloglog import (
    HyperLogLog,
    redis_hash_float64,
    redis_hash_int64,
    redis_hash_text,
    redis_hash_uint64,
)

REGISTERS = 16_384
CELL = 3
ROWS = 3
EDGES = [sign * (10**power + more) for power in range(19) for more in (-1, 0, 1) for sign in (1, -1)]

sizes = st.sampled_from([1, 2, 4, 5, 6, 13, 14, 60, 128, 129, 900, 1_500, 1_540, 2_044, 2_045, 2_046, 6_000])
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, ROWS - 1), sizes, st.sampled_from([1, 3, 100, 1_535, 1_537, 10**6])),
    st.tuples(st.sampled_from(["merge", "copy"]), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)),
    st.tuples(st.sampled_from(["save", "read"]), st.integers(0, ROWS - 1)),
)


class Model:
    """Rows of registers, one array each."""

    def __init__(self) -> None:
        self.rows = [np.zeros(REGISTERS, np.uint8) for _ in range(ROWS)]

    def add(self, row: int, hashes: np.ndarray) -> None:
        for number in hashes.view(np.uint64).tolist():
            rest, value = number >> 14 | 1 << 50, 1
            while not rest & 1:
                rest, value = rest >> 1, value + 1
            index = number & (REGISTERS - 1)
            self.rows[row][index] = max(self.rows[row][index], value)


class Rows:
    """The rows under test; each step leaves them as it finds them, but for what it says."""

    def __init__(self) -> None:
        self.members = AccumulatorSet([HyperLogLog(output="sketch")])
        self.store = self.members.new_rows()
        self.slots = self.store.fresh(np.zeros(ROWS, np.int32), np.zeros(ROWS, np.int64))

    def at(self, row: int) -> np.ndarray:
        return self.slots[row : row + 1]

    def add(self, row: int, hashes: np.ndarray) -> None:
        self.members.add_rows(self.store, np.full(len(hashes), self.slots[row], np.int32), [(hashes, None)])

    def merge(self, row: int, other: int) -> None:
        self.members.merge_rows(self.store, self.at(row), self.store, self.at(other))

    def copy(self, row: int, other: int) -> None:
        """Puts the bytes of a row into another one, as restoring does."""
        tidy_rows(self.members, self.store, self.at(other))
        self.store.set_blobs(self.at(row), CELL, *self.store.blobs(self.at(other), CELL))
        adopt_rows(self.members, self.store, self.at(row))

    def save(self, row: int) -> None:
        tidy_rows(self.members, self.store, self.at(row))
        offsets, data = self.store.blobs(self.at(row), CELL)
        _check_saved(data[offsets[0] : offsets[1]])

    def registers(self, row: int) -> np.ndarray:
        offsets, data, _ = self.members.results(self.store, self.at(row))[0]
        return hyperloglog.registers(data[offsets[0] : offsets[1]].tobytes())


def _check_saved(block: np.ndarray) -> None:
    """Saved states of all versions hold a table, behind how many of its places are taken, or all registers."""
    if len(block) in (0, REGISTERS):
        return
    words = block.view(np.uint32)
    places = len(words) - 1
    assert 4 <= places <= 2_048
    assert places & (places - 1) == 0
    assert words[0] == np.count_nonzero(words[1:]) <= 3 * places // 4
    assert len(set((words[1:] >> 8)[words[1:] != 0].tolist())) == words[0]


@given(st.lists(steps, max_size=14), st.integers(0, 2**32 - 1))
def test_rows_equal_registers_of_numpy(steps: list[tuple], seed: int) -> None:
    random, model, rows = np.random.default_rng(seed), Model(), Rows()
    for name, row, *rest in steps:
        if name == "add":
            size, distinct = rest
            hashes = redis_hash_int64(random.integers(0, distinct, size))
            rows.add(row, hashes)
            model.add(row, np.unique(hashes))
        elif name == "merge":
            rows.merge(row, rest[0])
            model.rows[row] = np.maximum(model.rows[row], model.rows[rest[0]])
        elif name == "copy":
            rows.copy(row, rest[0])
            model.rows[row] = model.rows[rest[0]].copy()
        elif name == "save":
            rows.save(row)
        else:
            assert np.array_equal(rows.registers(row), model.rows[row])
    found = AccumulatorSet([HyperLogLog()]).results(rows.store, rows.slots)[0][0]
    for row in range(ROWS):
        assert np.array_equal(rows.registers(row), model.rows[row])
        assert found[row] == hyperloglog.estimate(rows.members.results(rows.store, rows.at(row))[0][1].tobytes())


def test_a_few_values_again_and_again_stay_few_bytes() -> None:
    rows = Rows()
    for _ in range(20):
        rows.add(0, redis_hash_int64(np.arange(50_000) % 3))
    assert rows.store.nbytes < Rows().store.nbytes + 64


def test_many_values_take_no_more_than_all_registers() -> None:
    rows = Rows()
    rows.add(0, redis_hash_int64(np.arange(100_000)))
    assert rows.store.nbytes <= Rows().store.nbytes + 16 + REGISTERS


def _hashes_of_text(values: list[int]) -> np.ndarray:
    return redis_hash_text(*text_values(pa.array([str(value) for value in values], pa.large_string())))


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**9), 10**9), st.sampled_from(EDGES))))
def test_numbers_hash_as_their_text_does(values: list[int]) -> None:
    assert np.array_equal(redis_hash_int64(np.array(values, np.int64)), _hashes_of_text(values))


@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(10**19 - 2, 10**19 + 2))))
def test_unsigned_numbers_hash_as_their_text_does(values: list[int]) -> None:
    assert np.array_equal(redis_hash_uint64(np.array(values, np.uint64)), _hashes_of_text(values))


def test_numbers_at_the_powers_of_ten_hash_as_their_text_does() -> None:
    assert np.array_equal(redis_hash_int64(np.array(EDGES, np.int64)), _hashes_of_text(EDGES))


@given(
    st.lists(
        st.one_of(
            st.floats(),
            st.floats(width=32),
            st.integers(0, 2**64 - 1).map(lambda bits: float(np.array(bits, np.uint64).view(np.float64))),
            st.floats(-(2.0**-1022), 2.0**-1022),
            st.sampled_from([sign * 10.0**power for power in range(-325, 309) for sign in (1, -1)]),
        )
    )
)
def test_floats_hash_as_their_repr_does(values: list[float]) -> None:
    texts = pa.array([repr(value) for value in values], pa.large_string())
    assert np.array_equal(redis_hash_float64(np.array(values, np.float64)), redis_hash_text(*text_values(texts)))
