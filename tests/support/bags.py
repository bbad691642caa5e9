"""Rows of one accumulator that owns a block, beside rows of counted keys: both take the same steps."""

from collections import Counter

import numpy as np

from fastwin.core.accumulators.accumulator_set import Accumulator, AccumulatorSet
from fastwin.core.accumulators.exchange import adopt_rows, tidy_rows

__all__ = ["CELL", "ROWS", "BagRows"]

ROWS = 3
CELL = 3


class BagRows:
    """Rows of an accumulator. Each step leaves what they hold, but for what it says. counts: that of each key, so that
    an element is a record of two words; else of one. keys: those of values, int64[n]. readers: of the same cells."""

    def __init__(self, member: Accumulator, distinct: bool, counts: bool, *readers: Accumulator) -> None:
        self.members = AccumulatorSet([member, *readers])
        self.store = self.members.new_rows()
        self.slots = self.store.fresh(np.zeros(ROWS, np.int32), np.zeros(ROWS, np.int64))
        self.models = [Counter[int]() for _ in range(ROWS)]
        self.distinct, self.counts = distinct, counts

    def at(self, row: int) -> np.ndarray:
        return self.slots[row : row + 1]

    def add(self, rows: np.ndarray, values: np.ndarray, keys: list[int], valid: np.ndarray | None = None) -> None:
        """Adds values to rows[i]. keys: what they are kept as."""
        self.members.add_rows(self.store, self.slots[rows], [(values, valid)])
        for i, (row, key) in enumerate(zip(rows.tolist(), keys, strict=True)):
            if valid is None or valid[i]:
                self.models[row][key] += 1

    def merge(self, row: int, other: int) -> None:
        if row != other:
            self.members.merge_rows(self.store, self.at(row), self.store, self.at(other))
            self.models[row] += self.models[other]

    def read_back(self, row: int) -> None:
        """Saves a row and reads it again."""
        tidy_rows(self.members, self.store, self.at(row))
        self.store.set_blobs(self.at(row), CELL, *self.store.blobs(self.at(row), CELL))
        adopt_rows(self.members, self.store, self.at(row))

    def add_record(self, row: int, key: int, count: int) -> None:
        """Puts a record into a saved row that has none of this key yet."""
        self.models[row][key] += count
        self.write(row)

    def write(self, row: int) -> None:
        """Makes a row a saved one of what its model has."""
        data = np.array(self.wanted(row), np.int64).view(np.uint8)
        self.store.set_blobs(self.at(row), CELL, np.array([0, len(data)]), data)
        adopt_rows(self.members, self.store, self.at(row))

    def is_counted(self, row: int) -> bool:
        """Whether a row holds a counter for each bucket, instead of a run of records."""
        return self.store.blobs(self.at(row), CELL)[1][:8].view(np.int64).tolist() == [-1]

    def wanted(self, row: int) -> list[int]:
        """What a row is saved as: how many records are in order, all, and these."""
        model = self.models[row]
        if self.counts:
            words = [word for key in sorted(model) for word in (key, model[key])]
        else:
            words = sorted(model) if self.distinct else sorted(model.elements())
        return [len(words) // (1 + self.counts), *words] if words else []

    def check(self) -> None:
        tidy_rows(self.members, self.store, self.slots)
        for row in range(ROWS):
            _, data = self.store.blobs(self.at(row), CELL)
            assert data.view(np.int64).tolist() == self.wanted(row)
