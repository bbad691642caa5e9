"""Results as pandas and polars, and how they show themselves."""

import importlib
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.streams import BASE, rows, table


@pytest.fixture
def result() -> fw.Result:
    stream = BASE.side_output_late_data().bad_rows("divert").aggregate(n=fw.Count()).open()
    stream.advance_watermark(9)
    stream.process(table(("a", 12, 1)))
    stream.process(table(("a", 11, 1), ("b", None, 2)))
    return stream.process(table(("c", 1, 3), ("d", 2, 4), ("b", None, 2)))


def test_main_by_default() -> None:
    result = BASE.aggregate(n=fw.Count()).run(table(("a", 1, 1), ("a", 2, 1)))
    pandas, polars = result.to_pandas(), result.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert pandas["n"].tolist() == polars["n"].to_list() == [2]
    assert pandas.columns.tolist() == polars.columns == result.main.column_names


@pytest.mark.parametrize("output", ["main", "late", "bad"])
def test_other_outputs(result: fw.Result, output: str) -> None:
    wanted: pa.Table = getattr(result, output)
    assert result.to_pandas(output).shape == result.to_polars(output).shape == (wanted.num_rows, wanted.num_columns)
    assert result.to_polars(output).to_dicts() == wanted.to_pylist()


def test_side_outputs_by_tag() -> None:
    side = {"odd": pa.table({"v": [1, 3]})}
    result = fw.Result(pa.table({}), pa.table({}), pa.table({}), side)
    assert result.to_pandas("odd")["v"].tolist() == result.to_polars(output="odd")["v"].to_list() == [1, 3]
    for call in (result.to_pandas, result.to_polars):
        with pytest.raises(fw.SpecError, match="output must be one of 'odd', 'main', 'late', 'bad', got 'even'"):
            call("even")


@pytest.mark.parametrize("tag", ["main", "late", "bad", "no name", None])
def test_tags_of_other_outputs_are_refused(tag: Any) -> None:
    with pytest.raises(fw.SpecError, match="side_output: tag must be a name, and none of main, late, bad, got"):
        BASE.side_output(tag, "n bigint")


def test_what_is_put_into_a_result_is_in_no_later_one() -> None:
    stream = BASE.aggregate(n=fw.Count()).open(schema=table().schema)
    stream.advance_watermark(1).side["mine"] = pa.table({})
    assert stream.advance_watermark(2).side == {}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, library: str, result: fw.Result) -> None:
    real = importlib.import_module

    def missing(name: str, *arguments: Any) -> Any:
        if name == library:
            raise ImportError(f"No module named {name!r}")
        return real(name, *arguments)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(fw.NotInstalledError, match=f"to_{library}: {library} is not installed; the outputs"):
        getattr(result, f"to_{library}")()


def test_how_a_result_shows_itself(result: fw.Result) -> None:
    assert repr(result) == "Result(main: 0 rows of k, window_start, window_end, n; late: 2 rows; bad: 1 rows)"
    plain = BASE.aggregate(n=fw.Count()).run(table(("a", 1, 1)))
    assert repr(plain) == "Result(main: 1 rows of k, window_start, window_end, n)"
    assert rows(plain) == [("a", 0, 10, 1)]
