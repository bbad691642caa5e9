"""Rows as they are saved: their keys in the order in which the rows name them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.state.rows import by_appearance


@given(st.data(), st.sampled_from([1, 7, 100, 10_000]))
def test_keys_come_in_the_order_in_which_rows_name_them(data: st.DataObject, top: int) -> None:
    held = np.array(data.draw(st.lists(st.integers(0, top - 1), max_size=200)), dtype=np.int32)
    ids, places = by_appearance(held, top)
    assert ids.tolist() == list(dict.fromkeys(held.tolist()))
    assert ids[places].tolist() == held.tolist()
    assert (ids.dtype, places.dtype) == (np.int32, np.int32)
