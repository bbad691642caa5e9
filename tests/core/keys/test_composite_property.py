"""Composite keys: what goes in comes out, and equal rows, only those, have equal bytes."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.keys.keycolumns import decode_rows, encode_rows
from tests.support.kernel_models import int64s


def encoded(values: list, is_fixed: bool, wide: bool) -> tuple:
    valid = np.array([value is not None for value in values], np.uint8)
    marks = None if valid.all() else valid
    if is_fixed:
        return np.array([3 if value is None else value for value in values], np.int64), marks
    texts = [b"garbage" if value is None else value for value in values]
    offsets = np.cumsum([2, *map(len, texts)]).astype(np.int64 if wide else np.int32)
    return offsets, np.frombuffer(b"::" + b"".join(texts), np.uint8), marks


def decoded(column: tuple) -> list:
    if len(column) == 2:
        values = column[0].tolist()
    else:
        offsets, data, _ = column
        values = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    return [value if mark else None for value, mark in zip(values, column[-1].tolist(), strict=True)]


@given(data=st.data())
def test_rows_survive_the_round_trip(data: st.DataObject) -> None:
    fixed = data.draw(st.lists(st.booleans(), max_size=4))
    kinds = [st.one_of(st.none(), int64s if is_fixed else st.binary(max_size=12)) for is_fixed in fixed]
    rows = data.draw(st.lists(st.tuples(*kinds), max_size=12))
    columns = [encoded([row[i] for row in rows], is_fixed, i % 2 == 1) for i, is_fixed in enumerate(fixed)]
    offsets, body = encode_rows(columns, len(rows))
    found = [decoded(column) for column in decode_rows(offsets, body, fixed)]
    assert [tuple(column[i] for column in found) for i in range(len(rows))] == rows
    keys = [body[a:b].tobytes() for a, b in pairwise(offsets)]
    for row, key in zip(rows, keys, strict=True):
        for other, other_key in zip(rows, keys, strict=True):
            assert (row == other) == (key == other_key)
