"""The picture of a timeline: a well-formed SVG for light and dark screens, files, and what is said without matplotlib."""

import importlib.util
import re
import warnings
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.timeline.layout import BAR_ROW, DOT_ROW, panel, reach
from fastwin.timeline.recorder import Recorder, Source
from fastwin.timeline.recording import Arrived, Fired, Moved
from fastwin.timeline.theme import COLOURS
from fastwin.timeline.timeline import Timeline

KEY = ("ann",)
ALL = Timeline(
    (
        Arrived(KEY, 1_000), Arrived(KEY, 4_000), Moved(3_999), Fired(KEY, 0, 4_000, "early & <odd>", "early"),
        Moved(9_999), Fired(KEY, 0, 10_000, "2"), Arrived(KEY, 500, "late"), Fired(KEY, 0, 10_000, "3", "late"),
        Fired(KEY, None, None, "all of time"), Arrived(KEY, 11_000, "in no window"), Moved(fw.MAX_TIMESTAMP),
        Fired(KEY, 0, 4_000, "deleted", "deleted"),
    ),
    key_names=("user",),
)  # fmt: skip


def _svg(timeline: Timeline) -> str:
    svg = timeline._repr_svg_()
    assert svg is not None
    ElementTree.fromstring(svg)  # well-formed, and one element
    return svg


def test_an_svg_has_texts_and_colours():
    svg = _svg(ALL)
    for text in ("early &amp; &lt;odd&gt;", "all of time", "user ann", "late element", "watermark", "fires on time",
                 "fires early", "fires again, late", "is deleted", "element in no window", "event time, seconds"):  # fmt: skip
        assert text in svg
    assert {"dot", "late dot", "watermark", "on time", "early", "late"} <= {
        name for name, colour in COLOURS.items() if colour in svg
    }


def test_dark_screens_have_other_colours():
    svg = _svg(ALL)
    style = svg[svg.index("<style>") : svg.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    drawn = set(re.findall(r"(?:fill|stroke): (#\w{6})", svg[svg.index("</style>") :]))
    assert drawn <= set(COLOURS.values()), "a colour that dark screens do not change"
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_the_same_timeline_gives_the_same_bytes():
    assert _svg(ALL) == _svg(Timeline(ALL.entries, key_names=("user",)))


def test_it_names_nothing_from_elsewhere():
    links = re.findall(r'(?:href|src)="([^"]*)"', _svg(ALL))
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize(("name", "begin"), [("a.svg", b"<svg"), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_files(tmp_path, name, begin):
    ALL.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(fw.SpecError, match=r"save: path must end in \.svg, \.png, \.pdf, got '.*a\.jpeg'"):
        ALL.save(tmp_path / "a.jpeg")


def test_without_matplotlib_there_is_text_and_a_hint(monkeypatch, tmp_path):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "matplotlib" else real(name, *more)
    )
    assert ALL._repr_svg_() is None
    assert repr(ALL) == "Timeline(4 elements, 1 of them late, 5 firings; to draw it: pip install 'fastwin[plot]')"
    with pytest.raises(
        fw.NotInstalledError, match=r"matplotlib, which is not installed: pip install 'fastwin\[plot\]'"
    ):
        ALL.save(tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_text_in_a_terminal():
    assert repr(ALL) == 'Timeline(4 elements, 1 of them late, 5 firings; save("timeline.svg") draws it)'


@pytest.mark.parametrize(
    "entries",
    [
        (Arrived(KEY, 5),),
        (Moved(5),),
        (Fired(KEY, None, None, "x"),),
        (Arrived(KEY, -(2**61)), Arrived(KEY, 2**61)),
        (Arrived(KEY, 1_700_000_000_000), Moved(fw.MAX_TIMESTAMP)),
        (Arrived((None,), 0), Arrived(("1 < 2 $x$",), 1)),
    ],
)
def test_odd_ones_are_drawn(entries):
    _svg(Timeline(entries, key_names=("user",)))


def test_an_empty_one_shows_no_picture():
    assert Timeline(())._repr_svg_() is None


@pytest.mark.parametrize(
    "zone, shown", [("+05:30", "+05:30"), ("Asia/Tokyo", "Asia/Tokyo"), ("Nowhere/Land", "UTC"), ("+5x", "UTC")]
)
def test_a_zone_that_is_not_known_is_utc(zone, shown):
    assert f"event time, {shown}<" in _svg(Timeline((Arrived(KEY, 1_700_000_000_000),), zone=zone))


def _room(bar: Fired) -> tuple[float, float]:
    return bar.start_ms, bar.end_ms


def test_bars_that_overlap_have_rows_of_their_own():
    bars = [Fired(KEY, 0, 10, ""), Fired(KEY, 10, 20, ""), Fired(KEY, 5, 15, ""), Fired(KEY, 20, 30, "")]
    placed = panel(Timeline(tuple(bars)), KEY, _room).bars
    heights = dict(placed)
    assert heights[bars[0]] == heights[bars[1]] == heights[bars[3]]
    assert heights[bars[2]] - heights[bars[0]] == BAR_ROW


def test_the_watermark_moves_between_what_is_before_and_behind():
    made = panel(Timeline((Arrived(KEY, 1), Moved(9), Fired(KEY, 0, 10, "")), True), KEY, _room)
    ((_, dot),), ((_, bar),) = made.dots, made.bars
    assert dot < made.path[1][1] < bar
    assert made.path[1][0] == 9


def test_elements_without_an_order_share_a_row():
    dots = tuple(Arrived(KEY, time) for time in range(5))
    heights = [{height for _, height in panel(Timeline(dots, ordered), KEY, _room).dots} for ordered in (False, True)]
    assert list(map(len, heights)) == [1, 5]
    assert max(heights[1]) - min(heights[1]) == pytest.approx(4 * DOT_ROW)


def test_the_axis_reaches_as_far_as_something_lies():
    low, high = reach(Timeline((Arrived(KEY, 0), Fired(KEY, 0, 100, ""), Moved(110), Moved(fw.MAX_TIMESTAMP))))
    assert low <= 0
    assert 110 <= high < 130


def test_a_text_that_is_longer_than_its_bar_stands_beside_it():
    svg = _svg(
        Timeline(
            (Fired(KEY, 0, 100_000, "wide"), Fired(KEY, 20_000, 20_100, "left"), Fired(KEY, 99_800, 99_900, "right"))
        )
    )
    places = {text: float(x) for x, text in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>(wide|left|right)<', svg)}
    wide, left, right = (float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"[^>]*miter"', svg))
    assert places["wide"] < wide - 100  # in the middle of its bar, whose mark is at its end
    assert places["left"] > left + 10
    assert places["right"] < right - 10


def test_watermarks_without_anything_between_them_are_one_step():
    recorder = Recorder(Source(("k",), "ts"))
    for key, time in (("a", 1), ("b", 5), ("b", 9), ("a", 10)):
        recorder.arrived(pa.table({"k": [key], "ts": [time]}))
        recorder.moved(time)
    recorder.moved(fw.MAX_TIMESTAMP)
    moved = [one.watermark_ms for one in recorder.timeline("a").entries if isinstance(one, Moved)]
    assert moved == [9, 10, fw.MAX_TIMESTAMP]


def test_three_and_a_half_days_have_an_axis_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _svg(Timeline(tuple(Arrived(KEY, 1_431_857_100_000 + hour * 3_600_000) for hour in range(0, 86, 5))))
