"""Booleans and bits joined: all types, nulls, every operator, and what is refused."""

import re
from functools import reduce
from operator import and_, or_, xor

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.one_window import OPERATORS, run

EXTREMES = {
    pa.int8(): [-128, 127, 5], pa.uint8(): [255, 254, 7], pa.int32(): [-(2**31), -1, 6],
    pa.uint64(): [2**64 - 1, 2**63 + 5, 2**63 + 1], pa.int64(): [-(2**63), 2**63 - 1, 3],
}  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", EXTREMES, ids=str)
def test_bits_of_integers(operator, kind):
    values = EXTREMES[kind]
    table = pa.table({"ts": [500, 600, 700, 800], "v": pa.array([*values, None], kind), "z": pa.nulls(4, kind)})
    found = run(
        table, operator, a=fw.BitAnd("v"), o=fw.BitOr("v"), x=fw.BitXor("v"), none=fw.BitXor("z"), q=fw.BitAnd("z")
    )
    wanted = {"a": reduce(and_, values), "o": reduce(or_, values), "x": reduce(xor, values), "none": None, "q": None}
    assert found == wanted


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("values", [[True, None, True], [True, False, None], [False, None, False], [None, None, None]])
def test_booleans(operator, values):
    table = pa.table({"ts": [500, 600, 700], "b": pa.array(values, pa.bool_())})
    told = [value for value in values if value is not None]
    wanted = {"a": all(told) if told else None, "o": any(told) if told else None}
    assert run(table, operator, a=fw.BoolAnd("b"), o=fw.BoolOr("b")) == wanted


def test_types_of_results():
    table = pa.table({"ts": [1], "b": pa.array([True]).dictionary_encode(), "v": pa.array([3], pa.uint16())})
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    main = spec.aggregate(a=fw.BoolAnd("b"), x=fw.BitXor("v")).run(table).main
    assert [main.schema.field(name).type for name in "ax"] == [pa.bool_(), pa.uint16()]


@pytest.mark.parametrize(
    ("aggregate", "kind", "hint"),
    [
        (fw.BoolAnd("v"), pa.int64(), "; compare it, such as pyarrow.compute.field(name) != 0"),
        (fw.BoolOr("v"), pa.decimal128(25, 2), "; compare it, such as pyarrow.compute.field(name) != 0"),
        (fw.BoolOr("v"), pa.duration("ms"), ""),
        (fw.BitOr("v"), pa.decimal128(25, 2), "; cast it to int64"),
        (fw.BitXor("v"), pa.float64(), "; cast it to int64"),
        (fw.BitAnd("v"), pa.string(), ""),
    ],
    ids=str,
)
def test_a_refusal_says_what_the_aggregate_takes(aggregate, kind, hint):
    table = pa.table({"ts": [1], "v": pa.array([1], pa.int64()).cast(kind)})
    with pytest.raises(fw.SpecError, match=rf"but column 'v' is {re.escape(str(kind) + hint)}$"):
        run(table, a=aggregate)


def test_what_has_no_bits_is_refused():
    table = pa.table({"ts": [1], "b": [True], "x": [1.5]})
    with pytest.raises(fw.SpecError, match=r"BitAnd\('x'\): takes a column of integers, but column 'x' is double"):
        run(table, a=fw.BitAnd("x"))
    with pytest.raises(fw.SpecError, match=r"BitOr\('b'\): takes a column of integers, but column 'b' is bool"):
        run(table, a=fw.BitOr("b"))
    with pytest.raises(fw.SpecError, match=r"BoolOr\('x'\): takes a boolean column, but column 'x' is double"):
        run(table, a=fw.BoolOr("x"))
