"""Key interning: the key columns of a batch to dense ids, numbered as they first come."""

import numpy as np
import pandas as pd
import pyarrow as pa

from bench.race import Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.keycodec import KeyCodec

WORKS = Works()


def _draw(scale: Scale) -> tuple[np.ndarray, int]:
    distinct = scale.items // 10
    return np.random.default_rng(8).integers(0, distinct, scale.items), distinct


def _ours(columns: list[pa.Array]) -> Contender:
    codec = KeyCodec(tuple(pa.field(f"k{i}", column.type) for i, column in enumerate(columns)))

    def run(table):
        return KeyCodec.intern(table, codec.encode(columns, len(columns[0])))

    return Contender(run, setup=lambda: (codec.new_table(),), answer=np.ndarray.tolist)


def _dict(keys: list) -> Contender:
    def run() -> list[int]:
        ids: dict = {}
        return [ids.setdefault(key, len(ids)) for key in keys]

    return Contender(run, answer=list)


def _pandas(values: np.ndarray | pd.Series) -> Contender:
    return Contender(lambda: pd.factorize(values)[0], answer=np.ndarray.tolist)


def _arrow(column: pa.Array) -> Contender:
    return Contender(column.dictionary_encode, answer=lambda encoded: encoded.indices.to_pylist())


@WORKS.add("keys-int", "key", ("dict", "pandas.factorize", "pyarrow dictionary_encode"))
def ints(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    values = draw * 7_919 + 1_000_003
    column = pa.array(values)
    contenders = {
        "fastwin": _ours([column]),
        "dict": _dict(values.tolist()),
        "pandas.factorize": _pandas(values),
        "pyarrow dictionary_encode": _arrow(column),
    }
    return Entry(f"intern int keys, {amount(distinct)} distinct", len(values), contenders)


@WORKS.add("keys-string", "key", ("dict", "pandas.factorize", "pyarrow dictionary_encode"))
def strings(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    column = pa.array([f"device-{value * 7_919}" for value in draw.tolist()])
    contenders = {
        "fastwin": _ours([column]),
        "dict": _dict(column.to_pylist()),
        "pandas.factorize": _pandas(column.to_pandas()),
        "pyarrow dictionary_encode": _arrow(column),
    }
    return Entry(f"intern string keys, {amount(distinct)} distinct", len(column), contenders)


@WORKS.add("keys-composite", "key", ("dict of tuples", "pandas ngroup"))
def composite(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    number, text = draw // 50, [f"shop-{value % 50}" for value in draw.tolist()]
    columns = [pa.array(number), pa.array(text)]
    frame = pd.DataFrame({"a": number, "b": columns[1].to_pandas()})
    contenders = {
        "fastwin": _ours(columns),
        "dict of tuples": _dict(list(zip(number.tolist(), text, strict=True))),
        "pandas ngroup": Contender(
            lambda: frame.groupby(["a", "b"], sort=False).ngroup(), answer=lambda ids: ids.tolist()
        ),
    }
    return Entry(f"intern (int, string) keys, {amount(distinct)} distinct", len(draw), contenders)


@WORKS.parametrize
def test_keys(race, work, contender):
    race(work, contender)
