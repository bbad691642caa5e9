"""KeyTable in lockstep with a dict from keys to ids."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.keys.keytable import KeyTable
from tests.support.kernel_models import int64s

TEXTS = st.one_of(st.binary(max_size=3), st.binary(max_size=40), st.sampled_from([b"", b"\0", b"\0\0", b"a" * 8]))
STEP = st.one_of(
    st.tuples(st.just("intern"), st.lists(st.integers(0, 10**6), max_size=30)),
    st.tuples(st.just("retain"), st.lists(st.integers(0, 10**6), max_size=20)),
    st.tuples(st.just("release"), st.lists(st.integers(0, 10**6), max_size=20)),
    st.tuples(st.just("sweep"), st.none()),
)


def offsets_of(keys: list[bytes | None], dtype: type, lead: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Arrow's layout, with some bytes in front that belong to no key."""
    ends = np.cumsum([lead, *(len(key or b"") for key in keys)])
    return ends.astype(dtype), np.frombuffer(b"x" * lead + b"".join(key or b"" for key in keys), np.uint8)


def intern(table: KeyTable, keys: list, wide: bool = False) -> list[int]:
    valid = np.array([key is not None for key in keys], np.uint8) if None in keys else None
    if table.is_bytes:
        return table.intern_bytes(*offsets_of(keys, np.int64 if wide else np.int32, 3), valid).tolist()
    return table.intern_int64(np.array([99 if key is None else key for key in keys], np.int64), valid).tolist()


def take(table: KeyTable, ids: list[int]) -> list:
    wanted = np.array(ids, np.int32)
    if table.is_bytes:
        offsets, data, valid = table.take_bytes(wanted)
        keys = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    else:
        values, valid = table.take_int64(wanted)
        keys = values.tolist()
    marks = [True] * len(ids) if valid is None else valid.tolist()
    return [key if mark else None for key, mark in zip(keys, marks, strict=True)]


class Model:
    """Keys in use with their ids and how many rows hold them, and those new since the last sweep."""

    def __init__(self) -> None:
        self.ids: dict = {}
        self.rows: Counter = Counter()
        self.new: set = set()
        self.most = 0  # keys at a time, since the table was empty

    def took(self, keys: list, ids: list[int]) -> None:
        for key, got in zip(keys, ids, strict=True):
            if key in self.ids:
                assert self.ids[key] == got, f"{key!r} was {self.ids[key]} and is now {got}"
            else:
                assert got not in self.ids.values(), f"{key!r} got the id of another key"
                self.ids[key] = got
                self.new.add(key)
        self.most = max(self.most, len(self.ids))

    def release(self, key: object) -> None:
        self.rows[key] -= 1
        if self.rows[key] == 0 and key not in self.new:
            del self.ids[key]

    def sweep(self) -> None:
        for key in self.new:
            if self.rows[key] == 0:
                del self.ids[key]
        self.new.clear()
        if not self.ids:
            self.most = 0


@pytest.mark.parametrize("kind", ["int64", "bytes"])
@given(data=st.data())
def test_keys_have_ids_while_rows_hold_them(kind: str, data: st.DataObject) -> None:
    pool = [None, *data.draw(st.lists(int64s if kind == "int64" else TEXTS, max_size=60, unique=True))]
    table, model = KeyTable(kind), Model()
    for action, argument in data.draw(st.lists(STEP, max_size=20)):
        if action == "intern":
            keys = [pool[i % len(pool)] for i in argument]
            model.took(keys, intern(table, keys, wide=len(keys) % 2 == 0))
        elif action == "sweep":
            table.sweep()
            model.sweep()
        else:
            known = sorted(model.ids, key=repr) if action == "retain" else sorted(model.rows.elements(), key=repr)
            for i in argument if known else []:
                key = known[i % len(known)]
                if action == "retain":
                    table.retain_ids(np.array([model.ids[key]], np.int32))
                    model.rows[key] += 1
                elif model.rows[key]:
                    table.release_ids(np.array([model.ids[key]], np.int32))
                    model.release(key)
        table._check()
        assert len(table) == len(model.ids)
        assert table.ids().tolist() == sorted(model.ids.values())
        assert take(table, list(model.ids.values())) == list(model.ids)
        assert table.top <= model.most, "an id was not used again"


@pytest.mark.parametrize("kind", ["int64", "bytes"])
@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(1, 8))
def test_many_keys_come_and_go(kind: str, seed: int, rounds: int) -> None:
    """Sizes at which the index grows, gaps in it are closed and the arena is compacted."""
    rng = np.random.default_rng(seed)
    table, model = KeyTable(kind), Model()
    for _ in range(rounds):
        numbers = rng.integers(0, 10 ** rng.integers(1, 5), rng.integers(0, 300)).tolist()
        keys = numbers if kind == "int64" else [str(number).encode() * (number % 4) for number in numbers]
        keys = [None if number == 0 else key for number, key in zip(numbers, keys, strict=True)]
        ids = intern(table, keys)
        model.took(keys, ids)
        some = [key for key in dict.fromkeys(keys) if rng.random() < 0.7]
        table.retain_ids(np.array([model.ids[key] for key in some], np.int32))
        model.rows.update(some)
        table.sweep()
        model.sweep()
        for key in [key for key in model.rows.elements() if rng.random() < 0.6]:
            table.release_ids(np.array([model.ids[key]], np.int32))
            model.release(key)
        table._check()
        assert take(table, list(model.ids.values())) == list(model.ids)
        assert table.top <= model.most
