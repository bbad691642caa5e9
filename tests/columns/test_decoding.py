"""Lists of nulls alone keep their values where columns are decoded: Arrow's cast of them loses some."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from fastwin.columns.decoding import converted, decoded, taken

LISTS = pa.array([[None] * 3, [None], None, [None] * 5, []], pa.list_(pa.null()))
TEXT = pa.array(list("abcab")).dictionary_encode()


@pytest.mark.parametrize("change", [taken, decoded, lambda array: converted(array, array.type)])
@pytest.mark.parametrize("cut", range(5))
def test_lists_of_nulls_keep_their_values(change: Callable, cut: int) -> None:
    array = pa.StructArray.from_arrays([LISTS, TEXT], ["lists", "text"]).slice(cut)
    for given in (array, LISTS.slice(cut)):
        found = change(given)
        found.validate(full=True)
        assert found.to_pylist() == given.to_pylist()


def test_chunks_of_lists_of_nulls() -> None:
    found = converted(pa.chunked_array([LISTS, LISTS.slice(2)]), pa.list_(pa.int64()))
    found.validate(full=True)
    assert found.to_pylist() == LISTS.to_pylist() + LISTS.to_pylist()[2:]
