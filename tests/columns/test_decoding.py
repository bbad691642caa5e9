"""What Arrow itself does not do: lists of nulls keep their values, views are taken, and text has more than 2 GiB."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
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


NANOS = pa.array([1, None, 3, 4, 5, 6], pa.time64("ns"))
MARKED = pa.StructArray.from_arrays([pa.nulls(6), NANOS], ["none", "time"])
HIDDEN = pa.array([False, True, False])


@pytest.mark.parametrize("cut", range(3))
@pytest.mark.parametrize(
    "array",
    [
        MARKED,
        pa.StructArray.from_arrays([pa.nulls(3), NANOS[:3]], ["none", "time"], mask=HIDDEN),
        pa.ListArray.from_arrays(pa.array([0, 2, 5, 6], pa.int32()), MARKED, mask=HIDDEN),
        pa.LargeListArray.from_arrays(pa.array([0, 0, 5, 6], pa.int64()), MARKED),
        pa.FixedSizeListArray.from_arrays(MARKED, 2, mask=HIDDEN),
        pa.MapArray.from_arrays([0, None, 2, 6], pa.array(list("abcdef")), MARKED),
    ],
    ids=["struct", "struct with nulls", "list", "large list", "fixed size list", "map"],
)
def test_values_beside_nulls_alone_stay_whole(array: pa.Array, cut: int) -> None:
    """Of times, Python objects hold the microseconds."""
    array = array.slice(cut)
    whole = _with_fields(array.type, pa.int64(), pa.time64("ns"))
    found = converted(array, whole)
    found.validate(full=True)
    assert found.type == whole
    counts = _with_fields(array.type, pa.null(), pa.int64())
    assert (
        converted(found, _with_fields(array.type, pa.int64(), pa.int64())).to_pylist() == array.cast(counts).to_pylist()
    )


def _with_fields(kind: pa.DataType, none: pa.DataType, time: pa.DataType) -> pa.DataType:
    """The type with others for the fields of its struct."""
    told = pa.struct([("none", none), ("time", time)])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, told)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(told, kind.list_size)
    if pa.types.is_struct(kind):
        return told
    return pa.large_list(told) if pa.types.is_large_list(kind) else pa.list_(told)


def test_lists_beside_nulls_become_lists_of_another_kind() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int32()), MARKED, mask=HIDDEN)
    told = pa.struct([("none", pa.string()), ("time", pa.time64("ns"))])
    for kind in (pa.large_list(told), pa.list_(told, 2)):
        found = converted(lists, kind)
        found.validate(full=True)
        assert found.to_pylist() == lists.to_pylist()
    with pytest.raises(pa.ArrowInvalid, match="a list has not 3 values"):
        converted(lists, pa.list_(told, 3))


def test_a_time_in_a_struct_keeps_its_nanoseconds() -> None:
    kind = pa.struct([("a", pa.int64()), ("t", pa.time64("ns"))])
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 s")).deduplicate("last")
    stream = spec.open(schema=pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("x", kind)]))
    given = pa.StructArray.from_arrays([pa.nulls(1), NANOS[:1]], ["a", "t"])
    stream.process(pa.table({"k": [1], "ts": [1], "x": given}))
    (found,) = stream.advance_watermark(999).main["x"].chunks
    assert found.field("t") == NANOS[:1]


CATEGORIES = pa.array(["b", "a", None, "b"]).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.string_view()))


@pytest.mark.parametrize(
    "array",
    [
        pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 4]), CATEGORIES, mask=HIDDEN),
        pa.StructArray.from_arrays([CATEGORIES[:3]], ["c"], mask=HIDDEN),
        pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([CATEGORIES], ["c"]), 2),
    ],
    ids=["lists", "structs", "lists of structs"],
)
def test_dictionaries_of_views_within_others(array: pa.Array) -> None:
    """Lists and structs of what polars calls Categorical and Enum."""
    for given in (array, array[1:]):
        found = taken(given)
        found.validate(full=True)
        assert found.to_pylist() == take_column(given, pa.array(range(len(given)))).to_pylist() == given.to_pylist()
        assert "dictionary" not in str(found.type)


@pytest.mark.parametrize("ending", [lambda spec: spec.deduplicate("last"), lambda spec: spec.aggregate(x=fw.Last("x"))])
@pytest.mark.parametrize("inner", [pl.Categorical(), pl.Enum(["a", "b"])])
def test_lists_and_structs_of_polars_categories(inner: pl.DataType, ending: Callable) -> None:
    spec = ending(fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 s")))
    for kind, value in ((pl.List(inner), ["b", None, "a"]), (pl.Struct({"c": inner}), {"c": "b"})):
        frame = pl.DataFrame({"k": [1], "ts": [5], "x": [value]}, schema_overrides={"x": kind})
        assert spec.run(frame).main["x"].to_pylist() == [value]


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


WORDS, CODES = pa.array(["long enough to be in a buffer", "", "short"]), pa.array([0, 2, None, 1, 2, 2], pa.int8())


@pytest.mark.parametrize("most", [2**31 - 1, 40])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("rows", [slice(0, 6), slice(1, 6), slice(4, 6), slice(0, 1), slice(6, 6)], ids=str)
def test_dictionaries_of_any_size_are_decoded(
    most: int, kind: pa.DataType, rows: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", most)
    column = pa.DictionaryArray.from_arrays(CODES, WORDS.cast(kind))[rows]
    is_text = kind in (pa.string(), pa.string_view())
    narrow, wide = (pa.string(), pa.large_string()) if is_text else (pa.binary(), pa.large_binary())
    found = decoded(column)
    found.validate(full=True)
    assert found.type == (wide if most < sum(len(value or "") for value in column.to_pylist()) else narrow)
    assert found.to_pylist() == column.to_pylist()


def test_a_dictionary_of_more_text_than_its_rows_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", 20)
    column = pa.DictionaryArray.from_arrays(pa.array([1, 2, 2, None]), WORDS.cast(pa.string_view()))
    found = decoded(column)
    assert found.type == pa.string()
    assert found.to_pylist() == ["", "short", "short", None]


def test_runs_of_any_size_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4, 6], pa.int32()), WORDS.take(pa.array([0, None, 1, 2])))
    texts = [*WORDS[:1].to_pylist() * 2, None, "", "short", "short"]
    assert taken(runs).type == pa.string()
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", 40)
    for cut, kind in ((0, pa.large_string()), (2, pa.string())):
        found = taken(runs[cut:])
        found.validate(full=True)
        assert found.type == kind
        assert found.to_pylist() == texts[cut:]


@pytest.mark.parametrize("most", [2**31 - 1, 40])
@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()], ids=str)
def test_windows_over_a_large_dictionary(most: int, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", most)
    column = pa.DictionaryArray.from_arrays(CODES.cast(pa.int32()), WORDS.cast(kind))
    table = pa.table({"ts": pa.array(range(6)), "k": column, "v": column})
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of("1 minute"))
    main = spec.aggregate(last=fw.Last("v"), most=fw.Max(pc.utf8_upper(pc.field("v")))).run(table).main
    assert main["k"].type == main["last"].type == main["most"].type == pa.string()
    found = {row["k"]: (row["last"], row["most"]) for row in main.to_pylist()}
    assert found == {word: (word, word and word.upper()) for word in column.to_pylist()}


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


@pytest.mark.parametrize("at_once", [True, False])
def test_dictionaries_of_short_floats_keep_their_values(at_once: bool) -> None:
    """Arrow makes one dictionary of several by the bits of such floats."""
    chunks = [pa.array(np.array(some, np.float16)).dictionary_encode() for some in ([1.5, 2.5], [3.5, 1.5])]
    table = pa.table({name: pa.chunked_array(chunks) for name in "kv"} | {"ts": pa.chunked_array([[1, 2], [3, 4]])})
    windows = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    sums = [(1.5, 3.0), (2.5, 2.5), (3.5, 3.5)]
    best = [(1.5, 1.5), (1.5, 1.5), (2.5, 2.5), (3.5, 3.5)]
    for spec, wanted in ((windows.aggregate(v=fw.Sum("v")), sums), (windows.top(2, by="v"), best)):
        stream = spec.open()
        parts = [stream.process(some).main for some in ([table] if at_once else table.to_batches())]
        found = pa.concat_tables([*parts, stream.advance_watermark(100).main])
        rows = sorted(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))
        assert rows == wanted
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, spec.run(table).main.to_pylist()))


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
    words = pa.array([*texts, None]).dictionary_encode()
    views = pa.DictionaryArray.from_arrays(words.indices, words.dictionary.cast(pa.string_view()))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 10), pa.int32()), pa.array(texts))
    for column in (words, views, runs):
        sizes = [sum(map(len, texts[at])) for at in within_reach(pa.record_batch({"word": column}))]
        assert sum(sizes) == sum(map(len, texts))
        assert all(size <= 11 for size in sizes if size != 20)
    assert within_reach(pa.record_batch({"word": pa.nulls(9).dictionary_encode()})) == [slice(0, 9)]
