"""Conditions and expressions of aggregates: what counts, what is computed, and what is refused."""

import pickle
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns import expressions
from fastwin.errors import SpecError, StateError, UserFunctionError

PRICE, SOLD = pc.field("price"), pc.field("sold")
DAY = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
TABLE = pa.table(
    {
        "k": ["a", "a", "b", "a"],
        "ts": [1, 2, 3, 4],
        "price": [5, 7, 9, None],
        "sold": [2, 3, 1, 4],
        "paid": [True, None, False, True],
        "what": pa.array(["x", "y", "x", "z"]).dictionary_encode(),
    }
)


class Spread(fw.NumpyAggregate):
    state: ClassVar = {"low": "float64", "high": "float64"}
    output = pa.float64()

    def lift(self, x):
        return np.asarray(x, float), np.asarray(x, float)

    def combine(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, state):
        return state[1] - state[0]


def results(aggregate, table=TABLE, spec=DAY):
    main = spec.aggregate(x=aggregate).run(table).main
    return dict(zip(main["k"].to_pylist(), main["x"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("aggregate", "wanted"),
    [
        (fw.Count(where="paid"), {"a": 2, "b": 0}),
        (fw.Count("price", where="paid"), {"a": 1, "b": 0}),
        (fw.Sum("price", where="paid"), {"a": 5, "b": None}),
        (fw.Sum(PRICE * SOLD), {"a": 31, "b": 9}),
        (fw.Sum(PRICE * SOLD, where=PRICE > 6), {"a": 21, "b": 9}),
        (fw.Mean("sold", where=pc.field("what") == "x"), {"a": 2.0, "b": 1.0}),
        (fw.First("what", where=SOLD > 2), {"a": "y", "b": None}),
        (fw.ArgMax("what", SOLD - PRICE, where="paid"), {"a": "x", "b": None}),
        (fw.HyperLogLog(pc.field("what"), where=~pc.field("paid")), {"a": 0, "b": 1}),
        (fw.Min(pc.if_else(pc.field("paid"), "yes", "no")), {"a": "yes", "b": "no"}),
        (fw.Sum(pc.scalar(2), where=pc.scalar(True)), {"a": 6, "b": 2}),
        (Spread("sold", where="paid"), {"a": 2.0, "b": None}),
        (Spread(SOLD * SOLD), {"a": 12.0, "b": 0.0}),
    ],
    ids=str,
)
def test_what_counts(aggregate, wanted):
    assert results(aggregate) == wanted
    kept = DAY.evictor(fw.CountEvictor.of(100))
    assert results(aggregate, spec=kept) == wanted


def test_an_expression_is_computed_once_for_all_aggregates_that_have_it(monkeypatch):
    computed = []
    whole = expressions._projected
    monkeypatch.setattr(expressions, "_projected", lambda some, table: computed.append(some) or whole(some, table))
    revenue, again = PRICE * SOLD, pc.field("price") * pc.field("sold")
    spec = DAY.aggregate(s=fw.Sum(revenue), m=fw.Mean(again), n=fw.Sum("sold", where=revenue > 10))
    stream = spec.open(schema=TABLE.schema)
    computed.clear()
    stream.process(TABLE)
    assert [len(some) for some in computed] == [2]
    assert len(fw.plan(spec, TABLE.schema).inputs.sources) == 2


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (3, "where must be the name of a boolean column, got 3; a pyarrow.compute Expression"),
        (True, "got True"),
        ("", "got ''"),
        (pc.field(0) > 1, "must name its columns"),
    ],
    ids=str,
)
def test_what_is_no_condition(where, sentence):
    with pytest.raises(SpecError, match=sentence):
        fw.Count(where=where)
    with pytest.raises(SpecError, match=sentence):
        Spread("sold", where=where)


@pytest.mark.parametrize(
    ("aggregate", "sentence"),
    [
        (fw.Sum("price", where="nope"), "where='nope'.*there is no column 'nope'; the input has k, ts"),
        (fw.Sum("price", where="sold"), "where must be boolean, but 'sold' is int64"),
        (fw.Sum("price", where=SOLD + 1), "where must be boolean, but .* is int64"),
        (fw.Sum(pc.field("nope") * 2), "there is no column 'nope'"),
        (fw.Sum(pc.field("what") * 2), "Arrow cannot compute it: .*no kernel"),
        (fw.Sum(pc.field("paid")["x"] if hasattr(pc.field("paid"), "__getitem__") else pc.field("paid", "x")), "paid"),
        (fw.Mean(pc.field("what")), r"Mean\(what\): takes"),
    ],
    ids=str,
)
def test_what_the_input_does_not_suit(aggregate, sentence):
    with pytest.raises(SpecError, match=sentence):
        fw.plan(DAY.aggregate(x=aggregate), TABLE.schema)


def test_a_value_that_cannot_be_computed_is_named():
    with pytest.raises(UserFunctionError, match=r"divide_checked\(price, 0\): divide by zero"):
        DAY.aggregate(s=fw.Sum(PRICE * 2), x=fw.Sum(PRICE / 0)).run(TABLE)


def test_specs_tell_conditions_and_expressions():
    plain, some = DAY.aggregate(x=fw.Sum("price")), DAY.aggregate(x=fw.Sum("price", where="paid"))
    assert "where" not in str(plain)
    assert "Sum(column='price', where='paid', on_overflow='raise')" in str(some)
    assert plain.fingerprint != some.fingerprint
    product = DAY.aggregate(x=fw.Sum(PRICE * SOLD))
    assert product == DAY.aggregate(x=fw.Sum(pc.field("price") * pc.field("sold"))) != plain
    assert "computes: multiply_checked(price, sold); each once for a batch" in product.explain().text
    again = pickle.loads(pickle.dumps(product))
    assert again == product
    assert again.fingerprint == product.fingerprint
    assert hash(again) == hash(product)
    one, other = (fw.Count(where=pc.field("price").isin([*range(40), last])) for last in (50, 51))
    assert str(one) != str(other)
    assert str(fw.ArgMin("what", by=PRICE, where="paid")) == "ArgMin('what', by=price, where='paid')"


def test_state_is_of_one_condition_and_goes_on_with_another_option():
    stream = DAY.aggregate(x=fw.Sum("price", where=PRICE > 5)).open()
    stream.process(TABLE)
    saved = stream.snapshot()
    with pytest.raises(StateError, match="aggregate x was Sum"):
        DAY.aggregate(x=fw.Sum("price", where=PRICE > 6)).open().restore(saved)
    again = DAY.aggregate(x=fw.Sum("price", where=PRICE > 5, on_overflow="null")).open()
    again.restore(saved)
    assert sorted(again.advance_watermark(fw.MAX_TIMESTAMP).main["x"].to_pylist()) == [7, 9]


def test_only_columns_that_are_read_are_taken():
    # "k" and "o" are in the text of the expression, but it does not read "o".
    table = TABLE.append_column("o", pa.array([1, 2, 3, 4]))
    plan = fw.plan(DAY.aggregate(x=fw.Sum(SOLD * 2, where=pc.field("paid"))), table.schema)
    assert plan.input_columns == ["k", "ts", "sold", "paid"]


def test_columns_of_an_expression_may_be_in_the_index_of_a_frame():
    frame = TABLE.to_pandas().set_index(["sold", "k"])
    main = DAY.aggregate(x=fw.Sum(SOLD * 2, where="paid")).run(frame).main
    assert main["x"].to_pylist() == [12, None]


@pytest.mark.parametrize("n", [0, 1, 40_000])
def test_any_number_of_rows(n):
    table = pa.table({"k": [1] * n, "ts": range(n), "v": range(n), "f": [i % 3 == 0 for i in range(n)]})
    types = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("f", pa.bool_())])
    spec = DAY.aggregate(x=fw.Sum(pc.field("v") + 1, where="f"))
    for slice_ in (table.cast(types), table.cast(types).slice(n // 3)):
        values = zip(slice_["v"].to_pylist(), slice_["f"].to_pylist(), strict=True)
        wanted = [sum(v + 1 for v, f in values if f)] if slice_.num_rows else []
        assert spec.run(slice_).main["x"].to_pylist() == wanted
        assert spec.run(slice_, threads=2).main["x"].to_pylist() == wanted


def test_a_condition_of_nulls_alone_is_never_true():
    table = pa.table({"k": ["a"], "ts": [1], "f": pa.nulls(1)})
    assert results(fw.Count(where="f"), table) == {"a": 0}


def test_literals_that_arrow_writes_alike_are_told_apart() -> None:
    ints, floats = (fw.Count(where=pc.field("sold") / by > 1) for by in (2, 2.0))
    assert ints != floats
    assert str(ints) != str(floats)
    assert str(fw.Count(where=pc.field("sold") > 1.5)) == "Count(where=(sold > 1.5))"
