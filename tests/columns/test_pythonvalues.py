"""Values of Arrow columns in Python: held to what Arrow itself says, one by one."""

import datetime
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from fastwin.columns.exact import Exact
from fastwin.columns.pythonvalues import exact_array, exact_values, python_values

DAY = 86_400_000_000
# Where clocks change in Berlin: forward, and back (an hour that is there twice).
CHANGES = [1_711_846_799_999_999, 1_711_846_800_000_000, 1_729_987_200_000_000, 1_729_990_800_000_000]
TIMES = [0, -1, 1, -DAY, 1_700_000_000_123_456, -62_000_000_000_000_000, *CHANGES]
ZONES = [None, "UTC", "Europe/Berlin", "+05:30", "Etc/UTC"]
COLUMNS = {
    **{f"timestamp {zone}": pa.array([*TIMES, None], pa.timestamp("us", zone)) for zone in ZONES},
    **{
        f"timestamp {unit}": pa.array([-1, 0, None, 1_700_000_000], pa.timestamp(unit, "UTC"))
        for unit in ("s", "ms", "us")
    },
    "years 1 and 9999": pa.array([-62_135_596_800, 253_402_300_799], pa.timestamp("s")),
    "years 1 and 9999, UTC": pa.array([-62_135_596_800, 253_402_300_799], pa.timestamp("s", "UTC")),
    "no time known": pa.array([None, None], pa.timestamp("ms", "Europe/Berlin")),
    "no time": pa.array([], pa.timestamp("ms", "Europe/Berlin")),
    "date": pa.array([0, -1, None, 19_000, -719_162, 2_932_896], pa.date32()),
    "date64": pa.array([0, None, 86_400_000], pa.date64()),
    "time": pa.array([0, None, 86_399_999_999], pa.time64("us")),
    "duration": pa.array([0, -1, None, 9_000_000_000_000_000_000], pa.duration("us")),
    "duration s": pa.array([0, None, -999_999_999 * 86_400], pa.duration("s")),
    "bool": pa.array([True, False]),
    "bool with null": pa.array([True, None, False]),
    "int": pa.array([1, None, -(2**63)]),
    "uint": pa.array([1, None, 2**64 - 1], pa.uint64()),
    "float": pa.array([1.5, None, float("inf")]),
    "text": pa.array(["", None, "ä"]),
    "binary": pa.array([b"", None, b"\xff"]),
    "dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.50"), None]),
    "list of times": pa.array([[0, None], None], pa.list_(pa.timestamp("ms", "UTC"))),
    "struct": pa.array([{"a": 1}, None]),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("cut", ["whole", "slice", "chunks"])
def test_values_are_those_of_arrow(name, cut):
    column = COLUMNS[name]
    if cut == "slice":
        column = column[1:]
    elif cut == "chunks":
        column = pa.chunked_array([column, column[:1]])
    found = python_values(column)
    told = column.to_pylist()
    assert found == told
    assert [type(value) for value in found] == [type(value) for value in told]
    for one, other in zip(found, told, strict=True):
        if isinstance(one, datetime.datetime):
            assert (one.tzinfo, one.fold, one.utcoffset()) == (other.tzinfo, other.fold, other.utcoffset())


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("ns"), pa.time64("ns")]
)
def test_nanoseconds_are_cut(kind):
    fine = pa.array([1_999, None, 43_200_000_000_001], kind)
    coarse = {"timestamp": pa.timestamp("us", getattr(kind, "tz", None)), "duration": pa.duration("us")}
    told = pa.array([1, None, 43_200_000_000], coarse.get(str(kind).partition("[")[0], pa.time64("us")))
    assert python_values(fine) == told.to_pylist()


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("s")])
@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_what_python_cannot_say_is_an_error_as_in_arrow(kind, far):
    with pytest.raises((OverflowError, ValueError)):
        python_values(pa.array([0, far], kind))


@pytest.mark.parametrize("name", COLUMNS)
def test_exact_values_of_what_python_has_are_those_values(name):
    column = COLUMNS[name]
    assert exact_values(column) == column.to_pylist()
    assert exact_array(exact_values(column), column.type).equals(column)


FINE = [-1, 0, None, 1_999, 2_000, 43_200_000_000_001]
FAR = {
    **{f"{kind}": pa.array(FINE, kind) for kind in (pa.timestamp("ns", "Europe/Berlin"), pa.duration("ns"))},
    "time ns": pa.array(FINE[1:], pa.time64("ns")),
    "timestamp s": pa.array([0, 2**62, None, -(2**62), 253_402_300_800, -62_135_596_801, 5], pa.timestamp("s")),
    "zone": pa.array([253_402_300_799, None, 0], pa.timestamp("s", "+05:30")),
    "date": pa.array([2_932_896, 2_932_897, None, -719_163, -719_162], pa.date32()),
    "date64": pa.array([0, None, 2**62 // 86_400_000 * 86_400_000], pa.date64()),
    "duration": pa.array([0, 2**62, None], pa.duration("s")),
    "text": pa.array([b"a", None, b"\xff", b"b"]).view(pa.string()),
    "large text": pa.array([b"a", None, b"\xff", b"b"], pa.large_binary()).view(pa.large_string()),
    "list": pa.array([[0], None, [2**62, 1]], pa.list_(pa.timestamp("s"))),
    "dictionary": pa.array([0, 2**62, None, 2**62], pa.timestamp("s")).dictionary_encode(),
}


@pytest.mark.parametrize("name", FAR)
def test_what_python_has_no_object_for_is_kept_exactly(name):
    column = FAR[name]
    values = exact_values(column)
    assert Exact in set(map(type, values))
    assert [value is None for value in values] == [not value.is_valid for value in column]
    for found in (values, [pickle.loads(pickle.dumps(value)) for value in values]):
        assert exact_array(found, column.type).equals(column)


def test_exact_times_suit_columns_of_other_units():
    (value,) = exact_values(pa.array([1_999], pa.timestamp("ns")))
    assert exact_array([value], pa.timestamp("us")).cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(pa.ArrowException):
        exact_array([value], pa.duration("ns"))
    (far,) = exact_values(pa.array([10**12], pa.timestamp("s")))
    assert exact_array([None, far], pa.timestamp("ms")).cast(pa.int64()).to_pylist() == [None, 10**15]
    with pytest.raises(pa.ArrowInvalid):
        exact_array([far], pa.timestamp("ns"))


def test_values_that_are_none_are_refused_as_before():
    with pytest.raises(pa.ArrowException):
        exact_array(["a", object()], pa.timestamp("ns"))
