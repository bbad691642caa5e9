"""Columns of a file as Spark's reader would give them: times of any unit are those of the process."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastwin.columns.checking import event_times
from fastwin.errors import SourceError
from spark_glue.sources.columns import columns_in, conformed

UTC = pa.timestamp("us", tz="UTC")
MOST = 2**63 - 1
VALUES = {
    "s": [0, -1, 1_700_000_000, 18_446_744_073_710, -18_446_744_073_710, MOST, -MOST, 253_402_300_800],
    "ms": [0, -1, 1_700_000_000_000, 18_446_744_073_709_552, -18_446_744_073_709_552, MOST, -MOST - 1],
    "us": [0, -1, -1_000, 1_700_000_000_000_000, MOST, -MOST - 1],
    "ns": [0, -1, -100, -1_000, -1_001, 999, 1_700_000_000_000_000_999, MOST, -MOST - 1],
}


@pytest.mark.parametrize("unit", VALUES)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_are_those_of_the_process(unit, zone):
    nulls = [None if i % 3 == 1 else value for i, value in enumerate(VALUES[unit])]
    for values in (VALUES[unit], nulls, nulls[::-1], [None], []):
        column = pa.array([7, *values], pa.timestamp(unit, tz=zone))[1:]
        found = conformed(column, UTC)
        assert found.type == UTC
        assert found.is_valid().equals(column.is_valid())
        (times, reasons), (expected, why) = event_times(found), event_times(column)
        assert np.array_equal(times, expected)
        none = np.zeros(len(column), np.uint8)
        assert np.array_equal(none if reasons is None else reasons, none if why is None else why)


def test_times_that_are_of_the_type_are_as_they_were():
    column = pa.array([1, None, -MOST], UTC)
    assert conformed(column, UTC) is column
    plain = pa.timestamp("us")
    assert conformed(pa.array([1_700, None], pa.timestamp("ms")), plain).to_pylist() == [
        *pa.array([1_700_000, None], plain).to_pylist()
    ]


def names_in(tmp_path, names: list[str], needed: list[str], case_sensitive: bool) -> list[str]:
    pq.write_table(pa.table({name: [1] for name in names}), tmp_path / "a.parquet")
    schema = pa.schema([(name, pa.int64()) for name in needed])
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        return columns_in(file, "a.parquet", schema, case_sensitive)


def test_names_are_found_in_any_case_where_it_does_not_count(tmp_path):
    assert names_in(tmp_path, ["V", "K", "k"], ["k", "v"], False) == ["k", "V"]
    with pytest.raises(SourceError, match=r"a.parquet: 'user' may be any of the columns User, USER; .*caseSensitive"):
        names_in(tmp_path, ["User", "USER"], ["user"], False)
    with pytest.raises(SourceError, match="there is no column 'w'; it has V, K, k"):
        names_in(tmp_path, ["V", "K", "k"], ["w"], False)
    assert names_in(tmp_path, ["V", "K", "k"], ["k", "K"], True) == ["k", "K"]
    with pytest.raises(SourceError, match="there is no column 'v'"):
        names_in(tmp_path, ["V", "K", "k"], ["v"], True)
