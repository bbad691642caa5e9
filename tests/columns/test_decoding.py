"""What Arrow itself does not do: lists of nulls keep their values, views are taken, and may be of more than 2 GiB."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.decoding import converted, decoded, take_column, taken, within_reach

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


VIEWS = pa.array(["long enough to be in a buffer", None, "short", "", "longer than twelve bytes"]).cast(
    pa.string_view()
)


@pytest.mark.parametrize("most", [2**31 - 1, 40, 1])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("cut", [0, 1, 5])
def test_views_of_any_size_are_taken_and_decoded(
    most: int, kind: pa.DataType, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", most)
    views = VIEWS.cast(kind).slice(cut)
    narrow, wide = (pa.string(), pa.large_string()) if kind == pa.string_view() else (pa.binary(), pa.large_binary())
    found = decoded(views)
    assert found.type == (wide if most < sum(len(value or "") for value in views.to_pylist()) else narrow)
    assert found.to_pylist() == views.to_pylist()
    places = np.arange(len(views)).repeat(3)[::-1].copy()
    for indices in (pa.array(places), pa.array(places, mask=places % 2 == 1), pa.array([], pa.int64())):
        found = take_column(views, indices)
        found.validate(full=True)
        assert found.type == kind
        assert found.to_pylist() == views.cast(wide).take(indices).to_pylist()


@pytest.mark.parametrize("most", [2**31 - 1, 40])
def test_a_bad_row_among_large_views_is_dropped(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", most)
    table = pa.table({"ts": pa.array([None, 1, 2, 3, 4], pa.int64()), "k": VIEWS, "v": VIEWS})
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute")).bad_rows("drop")
    spec = spec.side_output_late_data().aggregate(last=fw.Last("v"))
    main = spec.run(table).main
    assert main["k"].type == pa.string()
    assert sorted(main["k"].to_pylist(), key=str) == sorted(VIEWS.to_pylist()[1:], key=str)
    assert [row["k"] for row in main.to_pylist()] == [row["last"] for row in main.to_pylist()]


# Buffers know their pool, so it lives as long as they may.
POOL = pa.proxy_memory_pool(pa.default_memory_pool())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([f"the text {i} of many" for i in range(100_000)]).cast(pa.string_view()),
        pa.array([f"the text {i} of many" for i in range(100_000)])
        .dictionary_encode()
        .cast(pa.dictionary(pa.int32(), pa.string_view())),
    ],
    ids=["views", "dictionary of views"],
)
@pytest.mark.parametrize("call", [take_column, lambda column, _: decoded(column[17:20])], ids=["take", "decode"])
def test_a_few_of_many_views_cost_no_more_than_they_are(column: pa.Array, call: Callable) -> None:
    indices, before = pa.array([7, 99_999, 7]), pa.default_memory_pool()
    assert column.nbytes > 3_000_000
    pa.set_memory_pool(POOL)
    try:
        found = call(column, indices)
    finally:
        pa.set_memory_pool(before)
    assert 0 < POOL.max_memory() < 100_000
    wanted = [7, 99_999, 7] if found.type == column.type else [17, 18, 19]
    assert found.to_pylist() == [f"the text {i} of many" for i in wanted]


def test_a_dictionary_of_views_is_taken_as_it_is() -> None:
    column = TEXT.cast(pa.dictionary(pa.int32(), pa.string_view()))[1:]
    found = take_column(column, pa.array([3, None, 0]))
    found.validate(full=True)
    assert found.type == column.type
    assert found.to_pylist() == ["b", None, "b"]
    assert found.dictionary.buffers()[1].address == column.dictionary.buffers()[1].address


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_of_nothing_are_taken(kind: pa.DataType) -> None:
    for column in (pa.array([], kind), pa.nulls(3, kind), pa.nulls(3, kind)[3:]):
        found = take_column(column, pa.array([None, None], pa.int64()))
        found.validate(full=True)
        assert found == pa.nulls(2, kind)
        words = pa.DictionaryArray.from_arrays(pa.array([None], pa.int32()), column)
        assert decoded(words).to_pylist() == [None]


def test_rows_are_cut_where_their_text_is_more_than_one_array_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["x" * size for size in (0, 5, 5, 1, 20, 3, 3, 3, 3)]
    rows = pa.record_batch({"n": range(9), "text": pa.array(texts, pa.string_view()), "other": pa.array(texts)})
    assert within_reach(rows) == [slice(0, 9)]
    assert within_reach(rows[:0]) == [slice(0, 0)]
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", 11)
    found = within_reach(rows)
    assert [at for one in found for at in range(one.start, one.stop)] == list(range(9))
    sizes = [sum(map(len, texts[at])) for at in found]
    assert all(size <= 11 for at, size in zip(found, sizes, strict=True) if at.stop - at.start > 1)
    assert max(sizes) == 20
    assert within_reach(rows.select(["n", "other"])) == [slice(0, 9)]
