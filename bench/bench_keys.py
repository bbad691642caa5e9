"""Key interning: the key columns of a batch to dense ids, numbered as they first come."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from bench.race import Contender, Entry, Unavailable, Works, need
from bench.scale import Scale, amount
from fastwin.columns.keys import KeyCodec

WORKS = Works()
_ARROW = "pyarrow dictionary_encode"


def _draw(scale: Scale) -> tuple[np.ndarray, int]:
    distinct = scale.items // 10
    return np.random.default_rng(8).integers(0, distinct, scale.items), distinct


def _counts(ids: np.ndarray) -> list[int]:
    """How often each key came, in the order of the ids: what all contenders can tell."""
    return np.bincount(ids).tolist()


def _ours(columns: list[pa.Array]) -> Contender:
    codec = KeyCodec(tuple(pa.field(f"k{i}", column.type) for i, column in enumerate(columns)))

    def run(table):
        return KeyCodec.intern(table, codec.encode(columns, len(columns[0])))

    return Contender(run, setup=lambda: (codec.new_table(),), answer=_counts)


def _dict(keys: list) -> Contender:
    def run() -> list[int]:
        ids: dict = {}
        return [ids.setdefault(key, len(ids)) for key in keys]

    return Contender(run, answer=_counts)


def _pandas(values: np.ndarray | pd.Series) -> Contender:
    return Contender(lambda: pd.factorize(values)[0], answer=_counts)


def _arrow(column: pa.Array) -> Contender:
    return Contender(
        lambda: column.dictionary_encode(null_encoding="encode"), answer=lambda encoded: _counts(encoded.indices)
    )


def _polars(columns: list[pa.Array]) -> Contender | Unavailable:
    """Has no ids; counts the rows of each key, in the order in which they first come."""
    pl = need("polars")
    if isinstance(pl, Unavailable):
        return pl
    frame = pl.from_arrow(pa.table({f"k{i}": column for i, column in enumerate(columns)}))
    return Contender(
        lambda: frame.group_by(frame.columns, maintain_order=True).len(),
        answer=lambda found: found["len"].to_list(),
        threads=pl.thread_pool_size(),
    )


@WORKS.add("keys-int", "key", ("polars", "dict", "pandas.factorize", _ARROW))
def ints(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    values = draw * 7_919 + 1_000_003
    column = pa.array(values)
    contenders = {
        "fastwin": _ours([column]),
        "polars": _polars([column]),
        "dict": _dict(values.tolist()),
        "pandas.factorize": _pandas(values),
        _ARROW: _arrow(column),
    }
    return Entry(f"intern int keys, {amount(distinct)} distinct", len(values), contenders)


@WORKS.add("keys-string", "key", ("polars", "dict", "pandas.factorize", _ARROW))
def strings(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    column = pa.array([f"device-{value * 7_919}" for value in draw.tolist()])
    contenders = {
        "fastwin": _ours([column]),
        "polars": _polars([column]),
        "dict": _dict(column.to_pylist()),
        "pandas.factorize": _pandas(column.to_pandas()),
        _ARROW: _arrow(column),
    }
    return Entry(f"intern string keys, {amount(distinct)} distinct", len(column), contenders)


@WORKS.add("keys-composite", "key", ("polars", "dict of tuples", "pandas ngroup"))
def composite(scale: Scale) -> Entry:
    draw, distinct = _draw(scale)
    number, text = draw // 50, [f"shop-{value % 50}" for value in draw.tolist()]
    columns = [pa.array(number), pa.array(text)]
    frame = pd.DataFrame({"a": number, "b": columns[1].to_pandas()})
    contenders = {
        "fastwin": _ours(columns),
        "polars": _polars(columns),
        "dict of tuples": _dict(list(zip(number.tolist(), text, strict=True))),
        "pandas ngroup": Contender(lambda: frame.groupby(["a", "b"], sort=False).ngroup(), answer=_counts),
    }
    return Entry(f"intern (int, string) keys, {amount(distinct)} distinct", len(draw), contenders)


def _fixed(words: list[np.ndarray], kind: pa.DataType) -> pa.Array:
    """An array of fixed-width values made of int64 words, the low one first."""
    return pa.Array.from_buffers(kind, len(words[0]), [None, pa.py_buffer(np.stack(words, axis=1).tobytes())])


_SHOPS = pa.array([f"shop-{i}" for i in range(1_000)])

# Columns of other types, made of numbers below 100,000.
_COLUMNS: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "int32": lambda draw: pa.array(draw * 7_919, pa.int32()),
    "float": lambda draw: pa.array(draw * 0.5),
    "boolean": lambda draw: pa.array(draw % 2 == 0),
    "date": lambda draw: pa.array(draw, pa.int32()).view(pa.date32()),
    "timestamp": lambda draw: pa.array(draw * 60_000_000).view(pa.timestamp("us")),
    "decimal": lambda draw: _fixed([draw, np.zeros_like(draw)], pa.decimal128(18, 2)),
    "binary": lambda draw: _fixed([draw * 7_919, draw], pa.binary(16)).cast(pa.binary()),
    "short string": lambda draw: pa.array(draw).cast(pa.string()),
    "few strings": lambda draw: _SHOPS.take(pa.array(draw % len(_SHOPS))),
    "dictionary": lambda draw: pa.DictionaryArray.from_arrays(pa.array(draw % len(_SHOPS), pa.int32()), _SHOPS),
    "int with nulls": lambda draw: pa.array(draw, mask=draw % 10 == 0),
    "string with nulls": lambda draw: pa.array(draw, mask=draw % 10 == 0).cast(pa.string()),
}


def _briefly(contender: Contender | Unavailable) -> Contender | Unavailable:
    return contender if isinstance(contender, Unavailable) else replace(contender, attempts=7)


def _of_type(name: str) -> None:
    peers = ("polars",) if name == "dictionary" else ("polars", _ARROW)

    def make(scale: Scale) -> Entry:
        draw, _ = _draw(scale)
        column = _COLUMNS[name](draw)
        every = {"fastwin": _ours([column]), "polars": _polars([column]), _ARROW: _arrow(column)}
        chosen = {one: _briefly(every[one]) for one in ("fastwin", *peers)}
        return Entry(f"intern {name} keys", len(column), chosen)

    WORKS.add(f"keys-{name.replace(' ', '-')}", "key", peers)(make)


for _name in _COLUMNS:
    _of_type(_name)


@WORKS.parametrize
def test_keys(race, work, contender):
    race(work, contender)
