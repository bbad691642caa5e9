"""The parts below a store: panes of a spec, names of keys, spans, cells."""

import math
import re
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.errors import SpecError, StoreError
from fastwin.store import PaneStore
from fastwin.store.cells import from_cells, pack, to_cells, unpack
from fastwin.store.keytext import check_key_types, key_from_text, key_to_text, keys_to_text, texts_of
from fastwin.store.layout import Layout, Output
from fastwin.store.merging import outputs
from fastwin.store.spans import Level, coarse_width, cover, time_text
from tests.support.clicks import DAY, HOUR, MINUTE, clicks, spec_of

INT64 = st.integers(-(2**63), 2**63 - 1)
MEAN = Output("mean", "mean", ("mean__sum", "mean__count"))


# --- panes of a spec ---


def test_panes_tumble_and_keep_what_can_be_merged():
    spec = spec_of().allowed_lateness("5 minutes")
    panes = spec.panes("3 minutes")
    assert panes.assigner == fw.TumblingEventTimeWindows.of("3 minutes")
    assert panes.ending.names == ("pv", "total", "low", "high", "last", "mean__sum", "mean__count")
    assert panes.lateness_ms == spec.lateness_ms and panes.origin == spec
    assert spec.panes() == panes


def test_panes_keep_conditions_and_expressions():
    doubled = pc.field("v") * 2
    panes = spec_of(m=fw.Mean(doubled, where="f"), uv=fw.HyperLogLog("u", where="f")).panes().ending.aggregates
    assert panes == (
        ("m__sum", fw.Sum(doubled, where="f")),
        ("m__count", fw.Count(doubled, where="f")),
        ("uv", fw.HyperLogLog("u", "sketch", where="f")),
    )


def test_offset_of_windows_is_that_of_panes():
    windows = fw.SlidingEventTimeWindows.of("1 hour", "10 minutes", "-4 minutes")
    spec = fw.key_by().event_time("ts").window(windows).aggregate(n=fw.Count())
    assert spec.panes("5 minutes").assigner == fw.TumblingEventTimeWindows.of("5 minutes", "1 minute")


@pytest.mark.parametrize(
    ("spec", "width", "says"),
    [
        (spec_of(), "7 minutes", "7 min does not divide the size of the windows, 1 d"),
        (spec_of(), "6 minutes", "6 min does not divide the slide"),
        (spec_of(), 0, "at least 1 ms"),
        (
            fw.key_by().event_time("t").window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count()),
            5,
            "tumble",
        ),
        (spec_of().trigger(fw.CountTrigger.of(3)), None, "CountTrigger"),
        (spec_of(a=fw.Mean("v"), a__sum=fw.Sum("v")), None, "'a__sum' is there twice"),
    ],
)
def test_what_has_no_panes_is_refused(spec, width, says):
    with pytest.raises(SpecError, match=re.escape(says)):
        spec.panes(width)


def test_layout_survives_as_text():
    spec = spec_of()
    layout = Layout.of(spec, spec.panes().run(clicks(10)).main.schema)
    assert Layout.from_json(layout.to_json()) == layout
    assert (layout.pane_ms, layout.coarse_ms, layout.window_ms) == (3 * MINUTE, HOUR, DAY)
    for text in ("", "{}", "[]", '{"version": 1}'):
        with pytest.raises(StoreError):
            Layout.from_json(text)
    before = layout.to_json().replace('"version": 2', '"version": 1')
    assert Layout.from_json(before) == layout and Layout.from_json(before).version == 1
    with pytest.raises(StoreError, match="version 99"):
        Layout.from_json('{"version": 99}')


def test_no_aggregate_takes_the_place_of_the_keys(tmp_path):
    """In the rows of the JSON API, and on the page."""
    spec = spec_of(pv=fw.Count(), key=fw.Max("v"))
    told = re.escape("store: the aggregate key=Max('v') has the name under which rows of the JSON API have their keys;")
    with pytest.raises(SpecError, match=told + " give it another name"):
        Layout.of(spec, spec.panes().run(clicks(10)).main.schema)
    for one in (spec, spec.panes()):
        with pytest.raises(SpecError, match=told):
            PaneStore.open(f"rocksdb:{tmp_path / 'store'}", one)
    assert not (tmp_path / "store").exists()


def test_means_of_large_ints_are_the_nearest_floats():
    spec = spec_of()
    layout = replace(Layout.of(spec, spec.panes().run(clicks(10)).main.schema), outputs=(MEAN,))
    totals, counts = [2**62 + 1, -(2**53) - 3, None, 7], [3, 2, 0, 2]
    columns = [pa.array([0, 0, 0, 0]) for _ in layout.fields]
    names = [field.name for field in layout.fields]
    columns[names.index(MEAN.fields[0])] = pa.array(totals, pa.int64())
    columns[names.index(MEAN.fields[1])] = pa.array(counts, pa.int64())
    (means,) = outputs(layout, columns)
    assert means.to_pylist() == [(2**62 + 1) / 3, (-(2**53) - 3) / 2, None, 3.5]


# --- keys as text ---

FIELDS = (pa.field("a", pa.string()), pa.field("b", pa.int64()), pa.field("c", pa.bool_()), pa.field("d", pa.date32()))
VALUES = st.tuples(
    st.none() | st.text(max_size=50),
    st.none() | INT64,
    st.none() | st.booleans(),
    st.none() | st.dates(min_value=date(1000, 1, 1)),
)


@given(VALUES, VALUES)
def test_keys_come_back_from_their_text(first, second):
    texts = [key_to_text(values) for values in (first, second)]
    assert (texts[0] == texts[1]) == (first == second)
    assert key_from_text(texts[0], FIELDS) == first
    assert not re.search(r"[\x00-\x20{}:]", texts[0])


@given(st.lists(st.one_of(VALUES, st.sampled_from([("a", 1, True, None), (None,) * 4])), max_size=12))
def test_keys_of_columns_have_the_texts_of_their_rows(rows):
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(FIELDS)]
    assert keys_to_text(columns, len(rows)) == list(map(key_to_text, rows))
    assert keys_to_text([], len(rows)) == [""] * len(rows)


def test_empty_text_is_not_null():
    fields = (pa.field("a", pa.string()),)
    assert key_from_text(key_to_text([""]), fields) == ("",)
    assert key_from_text(key_to_text([None]), fields) == (None,)
    assert key_from_text(key_to_text(["~"]), fields) == ("~",)
    assert key_from_text("", ()) == ()
    with pytest.raises(StoreError, match="store: 'x' is no key of no columns"):
        key_from_text("x", ())


def test_odd_keys_are_refused():
    with pytest.raises(StoreError, match="1024 bytes"):
        key_to_text(["x" * 1_025])
    with pytest.raises(SpecError, match="keys: at most 1024 bytes in a key's text, got 1027: 'xxx"):
        texts_of(["x" * 1_024 + ","], FIELDS[:1])
    with pytest.raises(StoreError, match="no key of a, b"):
        key_from_text("x,y", FIELDS[:2])
    with pytest.raises(SpecError, match="'x' is double"):
        check_key_types([pa.field("x", pa.float64())])


# --- spans ---


@given(
    st.integers(-500, 500),
    st.integers(1, 700),
    st.sampled_from([2, 3, 20]),
    st.integers(0, 2).map(lambda offset: offset * MINUTE),
)
def test_spans_cover_a_range_without_gap_or_overlap(first, length, ratio, offset):
    pane = 3 * MINUTE
    start, end = first * pane + offset, (first + length) * pane + offset
    coarse = Level(ratio * pane, offset)
    at = start
    for span in cover(start, end, coarse):
        assert span.start == at < span.end
        width = coarse.width_ms if span.level else pane
        assert (span.start - offset) % width == 0 and (span.end - offset) % width == 0
        at = span.end
    assert at == end


@pytest.mark.parametrize("minute", range(0, 60, 3))
def test_a_day_is_at_most_43_panes(minute):
    widths = {0: 3 * MINUTE, 1: HOUR}
    spans = list(cover(minute * MINUTE, DAY + minute * MINUTE, Level(HOUR)))
    panes = sum((span.end - span.start) // widths[span.level] for span in spans)
    assert panes == (24 if minute == 0 else 43)


def test_coarse_panes_are_multiples_of_panes():
    assert coarse_width(3 * MINUTE, DAY) == HOUR
    assert coarse_width(MINUTE, MINUTE) is None
    assert coarse_width(7 * MINUTE, DAY) is None or coarse_width(7 * MINUTE, DAY) % (7 * MINUTE) == 0


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_000, "1970-01-01T00:00:01Z"),
        (-62_135_596_800_000, "0001-01-01T00:00Z"),
        (-62_135_596_800_001, "-62135596800001"),
        (253_402_300_740_000, "9999-12-31T23:59Z"),
    ],
)
def test_times_as_text(ms, text):
    assert time_text(ms) == text


# --- cells ---


@given(st.lists(st.none() | INT64))
def test_ints_are_decimal_text(values):
    cells = to_cells(pa.array(values, pa.int64()))
    assert cells == [None if value is None else str(value).encode() for value in values]
    assert from_cells(cells, pa.int64(), "n").to_pylist() == values


@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_floats_come_back_exactly(values):
    assert from_cells(to_cells(pa.array(values, pa.float64())), pa.float64(), "x").to_pylist() == values


def test_odd_floats_and_times_come_back():
    found = from_cells(to_cells(pa.array([math.nan, math.inf, -math.inf, -0.0])), pa.float64(), "x").to_pylist()
    assert math.isnan(found[0]) and found[1:3] == [math.inf, -math.inf] and math.copysign(1, found[3]) == -1
    for kind in (pa.timestamp("us", tz="UTC"), pa.date32(), pa.time32("s"), pa.int8(), pa.float32()):
        column = pa.array([None, 1], pa.int32()).cast(
            pa.int64() if kind == pa.timestamp("us", tz="UTC") else pa.int32()
        )
        column = column.cast(kind)
        assert from_cells(to_cells(column), kind, "t").equals(column), kind


def test_a_cell_that_is_no_number_is_named():
    with pytest.raises(StoreError, match="'pv' of a pane holds what is no number"):
        from_cells([b"hello"], pa.int64(), "pv")


@given(st.tuples(st.integers(0, 2**53 - 1), st.integers(0, 2**53 - 1)), st.lists(st.none() | st.binary(min_size=1)))
def test_records_come_back(revision, cells):
    record = pack(revision, cells)
    assert unpack(record) == (revision, cells)
    if cells and cells[-1]:
        with pytest.raises(StoreError):
            unpack(record[:-1])
